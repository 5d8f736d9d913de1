"""What the texts of a schema's simple types can be held as: `int`, `float`, `bool`, `time` or `string`.

1. Kinds of integers are `int`, `xs:decimal`, `xs:float` and `xs:double` are `float`, `xs:boolean` is `bool`.
2. `xs:dateTime` may be without a zone, and then it is no moment: it is `time` only where every value has one,
   by a pattern of the schema or as `xs:dateTimeStamp`. Whether a pattern demands a zone is tried on times that
   have none. Otherwise it is `string`, and a path may say that it is `time` nevertheless.
3. A restriction is of the kind of what it restricts, a list is `string`, and so is a union of several kinds;
   only integers and decimals together are `float`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from palio.documents.family import KINDS, PathKind
from palio.documents.libxml import etree_module
from palio.documents.schemas import XSD

if TYPE_CHECKING:
    from palio.documents.structure import QName, SchemaPlace

_INTS: Final = (
    "integer nonPositiveInteger negativeInteger nonNegativeInteger positiveInteger long int short byte "
    "unsignedLong unsignedInt unsignedShort unsignedByte"
)
_UNZONED: Final = "moment"  # what `xs:dateTime` is as long as no pattern demands a zone
_KINDS: Final = dict.fromkeys(_INTS.split(), "int") | {
    "decimal": "float",
    "double": "float",
    "float": "float",
    "boolean": "bool",
    "dateTime": _UNZONED,
    "dateTimeStamp": "time",
}
_WITHOUT_ZONE: Final = tuple(
    f"{day}T{time}"
    for day in ("2026-11-19", "1999-12-31", "2000-02-29", "-0044-03-15", "12026-01-01")
    for time in ("00:00:00", "23:59:59", "12:30:00.5", "12:30:00.123456")
)
_DEEPEST: Final = 64  # types derived from types; what is deeper is taken for `string`


def joined_kind(kinds: Iterable[str]) -> PathKind:
    """The kind that holds values of all of these."""
    different = set(kinds)
    if different == {"int", "float"}:
        return "float"
    (one,) = different if len(different) == 1 else ("string",)
    return next((kind for kind in KINDS if kind == one), "string")


class SimpleTypes:
    """Finds kinds by following types through the declarations of a schema."""

    def __init__(
        self,
        resolve: Callable[[Any, SchemaPlace, str], QName],
        declared: Callable[[str, QName], tuple[Any, SchemaPlace] | None],
    ) -> None:
        self._resolve, self._declared = resolve, declared
        self._known: dict[QName, str] = {}
        self._depth = 0

    def of_declaration(self, written: Any, place: SchemaPlace) -> str:
        """The kind of an element or attribute that has a simple type."""
        inline = written.find(f"{XSD}simpleType")
        if inline is not None:
            return joined_kind([self._of_type(inline, place)])
        if name := written.get("type"):
            return self.of_name(self._resolve(written, place, name))
        return "string"

    def of_name(self, name: QName) -> str:
        """The kind of a simple type."""
        return joined_kind([self._of_name(name)])

    def restricted(self, written: Any, place: SchemaPlace, base: str) -> str:
        """The kind of text in an extension or restriction of text of another kind."""
        inline = written.find(f"{XSD}simpleType")
        return joined_kind(
            [self._demanding(written, self._of_type(inline, place) if inline is not None else base)]
        )

    def _of_name(self, name: QName) -> str:
        if name[0] == XSD[1:-1]:
            return _KINDS.get(name[1], "string")
        if name not in self._known:
            found = self._declared("type", name)
            if found is None or self._depth >= _DEEPEST:
                return "string"
            self._depth += 1
            self._known[name] = self._of_type(*found)
            self._depth -= 1
        return self._known[name]

    def _of_type(self, written: Any, place: SchemaPlace) -> str:
        inner = next(written.iterchildren(f"{XSD}restriction", f"{XSD}list", f"{XSD}union"), None)
        if inner is None or inner.tag == f"{XSD}list":
            return "string"
        types = [self._of_type(one, place) for one in inner.iterchildren(f"{XSD}simpleType")]
        named = inner.get("memberTypes" if inner.tag == f"{XSD}union" else "base") or ""
        kinds = [*types, *(self._of_name(self._resolve(inner, place, one)) for one in named.split())]
        if inner.tag == f"{XSD}union":
            return kinds[0] if len(set(kinds)) == 1 else joined_kind(kinds)
        return self._demanding(inner, kinds[0] if kinds else "string")

    def _demanding(self, restriction: Any, kind: str) -> str:
        """The kind once the patterns of a restriction are known."""
        patterns = [one.get("value") or "" for one in restriction.iterchildren(f"{XSD}pattern")]
        return "time" if kind == _UNZONED and patterns and not _match_any(patterns, _WITHOUT_ZONE) else kind


def _match_any(patterns: list[str], texts: Iterable[str]) -> bool:
    """Whether one of the texts is matched by one of the patterns, as libxml2 reads these."""
    etree = etree_module()
    root = etree.Element(f"{XSD}schema", nsmap={"xs": XSD[1:-1]})
    type = etree.SubElement(etree.SubElement(root, f"{XSD}element", name="a"), f"{XSD}simpleType")
    restriction = etree.SubElement(type, f"{XSD}restriction", base="xs:dateTime")
    for one in patterns:
        etree.SubElement(restriction, f"{XSD}pattern", value=one)
    try:
        schema = etree.XMLSchema(root)
    except etree.XMLSchemaParseError:
        return True
    for text in texts:
        document = etree.Element("a")
        document.text = text
        if schema.validate(document):
            return True
    return False
