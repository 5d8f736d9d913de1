"""The files of an XML Schema, handed over: what they include and import is looked up among them, never fetched.

1. A location is a name. It is looked up as it is written, then from the folder of the file that refers to it,
   then by its last part, and for an import by its namespace; the first that is found counts. So schemas can be
   handed over as they lie in an archive, or flat, and who refers to an address means the file of that name.
2. What is not found is refused before anything is compiled. Only the namespace of `xml:lang` and its like is
   there without being handed over.
3. When it is compiled, every location has been replaced by one that libxml2 can only ask us for (`palio:3`).
4. Files are read as documents of strangers are: no DOCTYPE, within limits. `xs:redefine` is refused: nobody who
   reads the files could say what a name means.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from palio.documents.errors import DocumentRefused, DocumentTooLarge, SchemaRefused
from palio.documents.family import MAX_SCHEMA_BYTES, MAX_SCHEMAS, SchemaFile
from palio.documents.libxml import etree_module
from palio.documents.parsing import DocumentLimits, parse_document

XSD: Final = "{http://www.w3.org/2001/XMLSchema}"
XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
LIMITS: Final = DocumentLimits(
    size=MAX_SCHEMA_BYTES,
    nodes=250_000,  # UBL's largest file, of 2.4 MB, has a tenth of the names, and much of it is documentation
    attributes=150_000,
)
_ATTRIBUTES_OF_XML: Final = SchemaFile(
    "xml.xsd",
    b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="%s">
<xs:attribute name="lang"><xs:simpleType><xs:union memberTypes="xs:language"><xs:simpleType>
<xs:restriction base="xs:string"><xs:enumeration value=""/></xs:restriction></xs:simpleType></xs:union>
</xs:simpleType></xs:attribute>
<xs:attribute name="space"><xs:simpleType><xs:restriction base="xs:NCName">
<xs:enumeration value="default"/><xs:enumeration value="preserve"/></xs:restriction></xs:simpleType>
</xs:attribute><xs:attribute name="base" type="xs:anyURI"/><xs:attribute name="id" type="xs:ID"/>
<xs:attributeGroup name="specialAttrs"><xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/>
<xs:attribute ref="xml:space"/><xs:attribute ref="xml:id"/></xs:attributeGroup></xs:schema>"""
    % XML_NAMESPACE.encode(),
)


class SchemaSource(msgspec.Struct, frozen=True, eq=False):
    """A file that was read: its tree, with locations replaced, and the numbers of what they mean."""

    name: str
    root: Any  # the element `xs:schema`
    namespace: str | None
    includes: tuple[int, ...]
    imports: tuple[int, ...]


def read_sources(schemas: tuple[SchemaFile, ...]) -> tuple[SchemaSource, ...]:
    """The first file and all that it needs, in that order. Raises `SchemaRefused`."""
    if not schemas:
        raise SchemaRefused("", "No schema was handed over.")
    if len(schemas) > MAX_SCHEMAS:
        raise SchemaRefused(schemas[0].name, f"There are {len(schemas)} files; the limit is {MAX_SCHEMAS}.")
    if sum(len(one.content) for one in schemas) > MAX_SCHEMA_BYTES:
        limit = f"{MAX_SCHEMA_BYTES:,} bytes"
        raise SchemaRefused(schemas[0].name, f"All files together have more than {limit}, which is the limit.")
    if len({one.name for one in schemas}) < len(schemas):
        raise SchemaRefused(schemas[0].name, "Two of the files have the same name.")
    return _Sources(schemas).read()


def compile_schema(sources: tuple[SchemaSource, ...]) -> Any:
    """An `lxml.etree.XMLSchema`, in this process, however long that takes. Raises `SchemaRefused`."""
    etree = etree_module()

    def resolve(resolver: Any, location: str, public: str | None, context: Any) -> Any:
        number = location.removeprefix("palio:")
        if not number.isdecimal() or int(number) >= len(sources):
            raise SchemaRefused(location, "It was not handed over, and nothing is fetched.")
        return resolver.resolve_string(etree.tostring(sources[int(number)].root), context, base_url=location)

    only_ours = type("HandedOver", (etree.Resolver,), {"resolve": resolve})
    parser = etree.XMLParser(no_network=True, resolve_entities=False)
    parser.resolvers.add(only_ours())
    try:
        return etree.XMLSchema(etree.fromstring(etree.tostring(sources[0].root), parser))
    except (etree.XMLSchemaParseError, etree.XMLSyntaxError) as problem:
        raise _refusal(sources, problem) from None


def _refusal(sources: tuple[SchemaSource, ...], problem: Any) -> SchemaRefused:
    entry = next(iter(problem.error_log), None)
    place = (entry.filename or "") if entry is not None else ""
    number = place.removeprefix("palio:")
    source = sources[int(number)] if number.isdecimal() and int(number) < len(sources) else sources[0]
    said = entry.message if entry is not None else str(problem)
    return SchemaRefused(source.name, said.replace(XSD, "xs:").replace(f"{{{XML_NAMESPACE}}}", "xml:"))


class _Sources:
    """Reads files as they are needed, and gives them numbers."""

    def __init__(self, schemas: tuple[SchemaFile, ...]) -> None:
        self._files = {one.name: one for one in schemas}
        self._trees: dict[str, Any] = {}
        self._numbers = {schemas[0].name: 0}
        self._order = [schemas[0]]

    def read(self) -> tuple[SchemaSource, ...]:
        found: list[SchemaSource] = []
        for file in self._order:  # it grows meanwhile
            root = self._root(file)
            includes: list[int] = []
            imports: list[int] = []
            for reference in root.iterchildren(
                f"{XSD}include", f"{XSD}import", f"{XSD}redefine", f"{XSD}override"
            ):
                if (number := self._referred(file, root, reference)) is not None:
                    (imports if reference.tag == f"{XSD}import" else includes).append(number)
            namespace = root.get("targetNamespace")
            found.append(SchemaSource(file.name, root, namespace, tuple(includes), tuple(imports)))
        return tuple(found)

    def _referred(self, file: SchemaFile, root: Any, reference: Any) -> int | None:
        """The number of the source that is referred to. Its location becomes what libxml2 asks for."""
        kind = reference.tag.removeprefix(XSD)
        location, namespace = reference.get("schemaLocation"), reference.get("namespace")
        if kind in ("redefine", "override"):
            raise SchemaRefused(
                file.name, f"xs:{kind} is not read; write out what it makes.", reference.sourceline
            )
        meant = next(self._candidates(file, location, namespace if kind == "import" else None), None)
        if kind == "import":
            if meant is None and namespace == XML_NAMESPACE:
                meant = self._files.setdefault(_ATTRIBUTES_OF_XML.name, _ATTRIBUTES_OF_XML)
            if meant is None and location is None:
                return None  # it says that names of that namespace may be used; whether they are is seen later
        if meant is None:
            said = (
                f"It refers to {location!r}, which was not handed over; nothing is fetched. Hand it over, too."
            )
            raise SchemaRefused(file.name, said, reference.sourceline)
        declared = self._root(meant).get("targetNamespace")
        if kind == "import" and declared != namespace:
            said = f"{meant.name!r} was handed over for the namespace {namespace!r}, but is of {declared!r}."
            raise SchemaRefused(file.name, said, reference.sourceline)
        if meant.name not in self._numbers:
            self._numbers[meant.name] = len(self._order)
            self._order.append(meant)
        number = self._numbers[meant.name]
        reference.set("schemaLocation", f"palio:{number}")
        return number

    def _candidates(
        self, file: SchemaFile, location: str | None, namespace: str | None
    ) -> Iterator[SchemaFile]:
        """The files that a location may mean, the best first."""
        if location is not None:
            location = location.strip()
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(file.name), location))
            yield from (self._files[name] for name in (location, beside) if name in self._files)
            last = posixpath.basename(location)
            same = [
                one for one in self._files.values() if posixpath.basename(one.name) == last and one is not file
            ]
            if len(same) == 1:
                yield from same
        if namespace is not None:
            of_it = [one for one in self._files.values() if self._root(one).get("targetNamespace") == namespace]
            if len(of_it) == 1:
                yield from of_it

    def _root(self, file: SchemaFile) -> Any:
        if file.name not in self._trees:
            try:
                root = parse_document(file.content, LIMITS).getroot()
            except DocumentRefused as problem:
                raise SchemaRefused(file.name, problem.reason, problem.line) from None
            except DocumentTooLarge as problem:
                said = f"It exceeds the limit of {problem.limit:,} for its {problem.what}."
                raise SchemaRefused(file.name, said) from None
            if root.tag != f"{XSD}schema":
                raise SchemaRefused(file.name, f"Its root is {root.tag}, not {XSD}schema.", root.sourceline)
            self._trees[file.name] = root
        return self._trees[file.name]
