"""What a schema says about where elements and attributes may be, read from its files.

It is read after libxml2 has compiled it, so it is a right one; what is read is less than that: names, how
often, and what the texts are. A content model is a tree of particles, shared where groups are, so it is as
small as the schema is written, whatever it stands for. What an element contains is read when it is asked for.

Where an instance can do what the declaration does not say, it is said here: an element stands for those of its
substitution group, a type for all of the schema's types that are derived from it (`xsi:type`), a wildcard for
whatever it lets in.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from palio.documents.errors import SchemaRefused
from palio.documents.schemas import XSD, SchemaSource
from palio.documents.simple_types import SimpleTypes

QName = tuple[str | None, str]

MAX_NESTING: Final = 64  # groups within groups, types derived from types; more is nothing that anybody wrote
_GLOBALS: Final = {
    "element": "element",
    "attribute": "attribute",
    "complexType": "type",
    "simpleType": "type",
    "group": "group",
    "attributeGroup": "attributeGroup",
}
_GROUPS: Final = ("sequence", "choice", "all", "group")


class SchemaPlace(msgspec.Struct, frozen=True):
    """What the file around a declaration says: its target namespace, and whether local names are in it."""

    source: str
    namespace: str | None
    elements: bool
    attributes: bool
    chameleon: bool


class ElementDeclaration(msgspec.Struct, eq=False, frozen=True):
    """An element as it may be in one place."""

    namespace: str | None
    name: str
    written: Any  # the element of the schema that declares it
    place: SchemaPlace


class AttributeDeclaration(msgspec.Struct, eq=False, frozen=True):
    namespace: str | None
    name: str
    kind: str


class SchemaWildcard(msgspec.Struct, frozen=True):
    """Any name in some namespaces: in `namespaces` or, where these are `excluded`, in the others. What is
    declared is as it is declared, unless `skipped`; where it is `strict`, there is nothing else.
    """

    namespaces: frozenset[str | None]
    excluded: bool
    strict: bool
    skipped: bool

    def allows(self, namespace: str | None) -> bool:
        return (namespace in self.namespaces) is not self.excluded


class ElementParticle(msgspec.Struct, eq=False, frozen=True):
    """One of some elements; `many` where there may be several, one after the other."""

    elements: tuple[ElementDeclaration, ...]
    many: bool


class WildcardParticle(msgspec.Struct, eq=False, frozen=True):
    wildcard: SchemaWildcard
    many: bool


class GroupParticle(msgspec.Struct, eq=False, frozen=True):
    """One part after the other or, as a choice, one of them."""

    choice: bool
    parts: tuple[SchemaParticle, ...]
    many: bool


SchemaParticle = ElementParticle | WildcardParticle | GroupParticle


class ContentType(msgspec.Struct, eq=False, frozen=True):
    """What is within an element: a content model or, with a `kind`, text of that kind alone. `anything` has no
    declaration at all.
    """

    kind: str | None = None
    mixed: bool = False
    anything: bool = False
    content: SchemaParticle | None = None
    attributes: dict[QName, AttributeDeclaration] = {}
    wildcards: tuple[SchemaWildcard, ...] = ()


ANYTHING: Final = ContentType(mixed=True, anything=True)
_EMPTY: Final = ContentType()


class SchemaStructure:
    """The declarations of all sources of a schema."""

    def __init__(self, sources: tuple[SchemaSource, ...]) -> None:
        self._declared: dict[tuple[str, QName], tuple[Any, SchemaPlace]] = {}
        self._members: dict[QName, list[QName]] = {}  # of substitution groups
        self._derived: dict[QName, list[QName]] = {}
        self._types: dict[Any, ContentType] = {}
        self._groups: dict[QName, SchemaParticle | None] = {}
        self._elements: dict[QName, ElementDeclaration] = {}
        self._attributes: dict[QName, AttributeDeclaration] = {}
        self._possible: dict[Any, tuple[ContentType, ...]] = {}
        self._nesting = 0
        self._gather(sources)
        self._simple = SimpleTypes(self.resolve, self.declared)

    # What is asked

    def element(self, name: QName) -> ElementDeclaration | None:
        """The global element of that name."""
        if name not in self._elements and (found := self._declared.get(("element", name))):
            self._elements[name] = ElementDeclaration(*name, *found)
        return self._elements.get(name)

    def elements(self) -> list[ElementDeclaration]:
        """All global elements that an instance may have."""
        names = [name for kind, name in self._declared if kind == "element"]
        found = (self.element(name) for name in names)
        return [one for one in found if one is not None and not _true(one.written, "abstract")]

    def attribute(self, name: QName) -> AttributeDeclaration | None:
        """The global attribute of that name."""
        if name not in self._attributes and (found := self._declared.get(("attribute", name))):
            self._attributes[name] = AttributeDeclaration(*name, self._simple.of_declaration(*found))
        return self._attributes.get(name)

    def possible_types(self, element: ElementDeclaration) -> tuple[ContentType, ...]:
        """The types that an instance of an element may have."""
        key = element.written, element.place
        if key not in self._possible:
            self._possible[key] = self._possible_types(*key)
        return self._possible[key]

    def declared(self, kind: str, name: QName) -> tuple[Any, SchemaPlace] | None:
        """What declares a global of that kind (element, type, group …), and where."""
        return self._declared.get((kind, name))

    def resolve(self, written: Any, place: SchemaPlace, name: str) -> QName:
        """A name as a schema writes it, with its prefix."""
        prefix, _, local = name.strip().rpartition(":")
        namespace = written.nsmap.get(prefix or None)
        if namespace is None and not prefix and place.chameleon:
            namespace = place.namespace
        return namespace, local

    # How it is read

    def _gather(self, sources: tuple[SchemaSource, ...]) -> None:
        waiting = [(0, sources[0].namespace)]
        seen = set(waiting)
        while waiting:
            number, namespace = waiting.pop()
            source = sources[number]
            root = source.root
            place = SchemaPlace(
                source.name,
                namespace,
                root.get("elementFormDefault") == "qualified",
                root.get("attributeFormDefault") == "qualified",
                chameleon=namespace != source.namespace,
            )
            for written in root.iterchildren(tag=etree_tags(_GLOBALS)):
                self._declare(written, place)
            found = [(one, sources[one].namespace or namespace) for one in source.includes]
            found += [(one, sources[one].namespace) for one in source.imports]
            for one in found:
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)

    def _declare(self, written: Any, place: SchemaPlace) -> None:
        word = written.tag.removeprefix(XSD)
        name = (place.namespace, written.get("name") or "")
        self._declared.setdefault((_GLOBALS[word], name), (written, place))
        if word == "element":
            for head in (written.get("substitutionGroup") or "").split():
                self._members.setdefault(self.resolve(written, place, head), []).append(name)
        elif word == "complexType":
            for derivation in written.iter(f"{XSD}extension", f"{XSD}restriction"):
                if derivation.getparent().getparent() is written:
                    base = self.resolve(derivation, place, derivation.get("base") or "")
                    self._derived.setdefault(base, []).append(name)

    def _possible_types(self, written: Any, place: SchemaPlace) -> tuple[ContentType, ...]:
        inline = written.find(f"{XSD}complexType")
        if inline is not None:
            return (self._complex(inline, place),)
        if written.find(f"{XSD}simpleType") is not None:
            return (ContentType(kind=self._simple.of_declaration(written, place)),)
        if name := written.get("type"):
            return self._named_types(self.resolve(written, place, name))
        if head := (written.get("substitutionGroup") or "").split()[:1]:
            heads = self.element(self.resolve(written, place, head[0]))
            if heads is not None and heads.written is not written:
                with _Nested(self, place):
                    return self.possible_types(heads)
        return (ANYTHING,)

    def _named_types(self, name: QName) -> tuple[ContentType, ...]:
        """The type of that name and all that are derived from it, without those that nothing can have."""
        names, seen = [name], {name}
        for one in names:  # it grows meanwhile
            names += [derived for derived in self._derived.get(one, ()) if derived not in seen]
            seen.update(self._derived.get(one, ()))
        found = []
        for one in names:
            declared = self._declared.get(("type", one))
            if declared is None or not _true(declared[0], "abstract"):
                found.append(self._named(one))
        return tuple(found) or (_EMPTY,)

    def _named(self, name: QName) -> ContentType:
        declared = self._declared.get(("type", name))
        if name == (XSD[1:-1], "anyType"):
            return ANYTHING
        if declared is None or declared[0].tag == f"{XSD}simpleType":
            return ContentType(kind=self._simple.of_name(name))
        return self._complex(*declared)

    def _complex(self, written: Any, place: SchemaPlace) -> ContentType:
        key = written, place
        if key not in self._types:
            with _Nested(self, place):
                self._types[key] = self._read_complex(written, place)
        return self._types[key]

    def _read_complex(self, written: Any, place: SchemaPlace) -> ContentType:
        attributes: dict[QName, AttributeDeclaration] = {}
        wildcards: list[SchemaWildcard] = []
        content = written.find(f"{XSD}simpleContent")
        simple = content is not None
        content = written.find(f"{XSD}complexContent") if content is None else content
        if content is None:
            self._read_attributes(written, place, attributes, wildcards)
            mixed = _true(written, "mixed")
            return ContentType(None, mixed, False, self._content(written, place), attributes, tuple(wildcards))
        derivation = next(content.iterchildren(f"{XSD}extension", f"{XSD}restriction"), None)
        if derivation is None:
            return _EMPTY
        base = self._named(self.resolve(derivation, place, derivation.get("base") or ""))
        extends = derivation.tag == f"{XSD}extension"
        if not base.anything:
            attributes |= base.attributes
            wildcards += base.wildcards if extends else ()
        self._read_attributes(derivation, place, attributes, wildcards)
        if simple:
            kind = self._simple.restricted(derivation, place, base.kind or "string")
            return ContentType(kind, False, False, None, attributes, tuple(wildcards))
        own = self._content(derivation, place)
        if extends and base.content is not None:
            own = base.content if own is None else GroupParticle(False, (base.content, own), False)
        mixed = _true(content, "mixed") or _true(written, "mixed") or (extends and base.mixed)
        return ContentType(None, mixed, False, own, attributes, tuple(wildcards))

    def _content(self, written: Any, place: SchemaPlace) -> SchemaParticle | None:
        """The content model among the children of a declaration."""
        first = next(written.iterchildren(tag=etree_tags(_GROUPS)), None)
        return None if first is None else self._particle(first, place)

    def _particle(self, written: Any, place: SchemaPlace) -> SchemaParticle | None:
        most = written.get("maxOccurs", "1").strip().lstrip("0")
        if not most:
            return None
        many = most != "1"
        word = written.tag.removeprefix(XSD)
        if word == "element":
            return self._element_particle(written, place, many)
        if word == "any":
            return WildcardParticle(_wildcard(written, place), many)
        if word == "group":
            inner = self._group(self.resolve(written, place, written.get("ref") or ""))
            return None if inner is None else GroupParticle(False, (inner,), many)
        with _Nested(self, place):
            inside = written.iterchildren(tag=etree_tags((*_GROUPS, "element", "any")))
            parts = tuple(part for one in inside if (part := self._particle(one, place)) is not None)
        return GroupParticle(word == "choice", parts, many)

    def _element_particle(self, written: Any, place: SchemaPlace, many: bool) -> ElementParticle:
        if written.get("ref") is None:
            form = written.get("form")
            qualified = place.elements if form is None else form == "qualified"
            namespace = place.namespace if qualified else None
            local = ElementDeclaration(namespace, written.get("name") or "", written, place)
            return ElementParticle((local,), many)
        names = [self.resolve(written, place, written.get("ref"))]
        seen = set(names)
        for name in names:  # it grows meanwhile
            names += [one for one in self._members.get(name, ()) if one not in seen]
            seen.update(self._members.get(name, ()))
        found = [one for one in map(self.element, names) if one is not None]
        return ElementParticle(tuple(one for one in found if not _true(one.written, "abstract")), many)

    def _group(self, name: QName) -> SchemaParticle | None:
        if name not in self._groups:
            declared = self._declared.get(("group", name))
            if declared is None:
                return None
            with _Nested(self, declared[1]):
                self._groups[name] = self._content(*declared)
        return self._groups[name]

    def _read_attributes(
        self,
        written: Any,
        place: SchemaPlace,
        attributes: dict[QName, AttributeDeclaration],
        wildcards: list[SchemaWildcard],
    ) -> None:
        for one in written.iterchildren(tag=etree_tags(("attribute", "attributeGroup", "anyAttribute"))):
            word = one.tag.removeprefix(XSD)
            if word == "anyAttribute":
                wildcards.append(_wildcard(one, place))
            elif word == "attributeGroup":
                declared = self._declared.get(
                    ("attributeGroup", self.resolve(one, place, one.get("ref") or ""))
                )
                if declared is not None:
                    with _Nested(self, place):
                        self._read_attributes(*declared, attributes, wildcards)
            else:
                self._read_attribute(one, place, attributes)

    def _read_attribute(
        self, written: Any, place: SchemaPlace, attributes: dict[QName, AttributeDeclaration]
    ) -> None:
        if ref := written.get("ref"):
            name = self.resolve(written, place, ref)
            found = self.attribute(name) or AttributeDeclaration(*name, "string")
        else:
            form = written.get("form")
            qualified = place.attributes if form is None else form == "qualified"
            name = (place.namespace if qualified else None, written.get("name") or "")
            found = AttributeDeclaration(*name, self._simple.of_declaration(written, place))
        attributes[name] = found
        if written.get("use") == "prohibited":
            del attributes[name]


class _Nested:
    """One level deeper in what a schema has within each other; more than some levels are refused."""

    def __init__(self, structure: SchemaStructure, place: SchemaPlace) -> None:
        self._structure, self._place = structure, place

    def __enter__(self) -> None:
        self._structure._nesting += 1
        if self._structure._nesting > MAX_NESTING:
            said = (
                f"Its groups and types are nested more than {MAX_NESTING} deep; write them with fewer levels."
            )
            raise SchemaRefused(self._place.source, said)

    def __exit__(self, *_: object) -> None:
        self._structure._nesting -= 1


def etree_tags(words: Any) -> tuple[str, ...]:
    """The elements of schemas with these names."""
    return tuple(f"{XSD}{one}" for one in words)


def _true(written: Any, attribute: str) -> bool:
    return (written.get(attribute) or "").strip() in ("true", "1")


def _wildcard(written: Any, place: SchemaPlace) -> SchemaWildcard:
    processed = written.get("processContents", "strict")
    strict, skipped = processed == "strict", processed == "skip"
    said = written.get("namespace", "##any").split()
    if said == ["##any"]:
        return SchemaWildcard(frozenset(), True, strict, skipped)
    if said == ["##other"]:
        return SchemaWildcard(frozenset((place.namespace, None)), True, strict, skipped)
    special: dict[str, str | None] = {"##local": None, "##targetNamespace": place.namespace}
    return SchemaWildcard(frozenset(special.get(one, one) for one in said), False, strict, skipped)
