"""The text of a filter about documents: the filter language, with XPaths in the place of names.

    family card where xpath("/card/price") < 10 and not xpath("/card/brand") = "Acme"

    selection = "family" name [ "where" filter ] | filter
    attribute = … | "xpath" "(" string ")"

All other rules are those of filters. A name that has been read knows where it stood and whether it is an XPath;
which path of which family that is becomes clear when all is read (`selection`), so that `xml.family = "card"`
may stand anywhere. A name in backticks that begins with `/` is an XPath, too: the attribute is called so.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from palio.model.expression import Expression, literal
from palio.model.parser import CalculatingReader

_NAME: Final = r"(?:[^\W\d][\w.-]*|\"[^\"\\]+\"|`[^`\\]+`)"
_FAMILY: Final = re.compile(rf"\s*(?:family|FAMILY)\s+({_NAME})(?:\s+(where|WHERE)(?!\w)|\s*\Z)")
# What else stands behind an attribute that is called `family`.
_TESTS: Final = frozenset(("is", "like", "regex"))


class WrittenName(str):
    """A name in a filter: what it was called, the column where it stood, and its XPath if it is one."""

    __slots__ = ("column", "xpath")

    column: int
    xpath: str | None

    def __new__(cls, name: str, column: int, xpath: str | None = None) -> WrittenName:
        made = super().__new__(cls, name)
        made.column, made.xpath = column, xpath
        return made


class SelectionText(msgspec.Struct, frozen=True):
    """What a text says: the family in front, if one is there, and an expression whose names are as written."""

    family: str | None
    expression: Expression | None  # none for the whole family


def read_selection_text(text: str) -> SelectionText:
    """What a text says. Raises `FilterSyntaxError` or `FilterTooLarge`."""
    reader = _SelectionReader(text)
    family = reader.family()
    if family is not None and reader.kind == "end" and not reader.is_conditional:
        return SelectionText(family, None)
    expression = reader.alternative()
    reader.expect_end("`and`, `or` or the end of the filter")
    return SelectionText(family, expression)


class _SelectionReader(CalculatingReader):
    """The rules of filters, where an attribute may be an XPath."""

    is_conditional = False  # whether a family in front is followed by `where`

    def family(self) -> str | None:
        """The family in front; None if the text begins otherwise."""
        if not self.says("family"):
            return None
        found = _FAMILY.match(self.text)
        if found is None:
            start = self.at
            self.advance()
            if self.kind in ("word", "string", "name") and self.raw.lower() not in _TESTS:
                self.advance()
                self.fail(f"expected `where` behind the name of the family, found {self.found()}.")
            self._tokens = self.tokens.finditer(self.text, start)
            self.advance()
            return None
        self.is_conditional = found[2] is not None
        self._tokens = self.tokens.finditer(self.text, found.end())
        self.advance()
        return found[1].strip('"`')

    def name(self) -> str:
        column, raw = self.at + 1, self.raw
        if self.kind == "word" and raw == "xpath" and self.text.startswith("(", self.at + len(raw)):
            self.advance()
            self.expect("(")
            if self.kind != "string":
                self.fail(f"expected an XPath in quotes, found {self.found()}.", 'Write `xpath("/…")`.')
            column, path = self.at + 1, self._unquoted()
            self.advance()
            self.expect(")")
            name = WrittenName(f"xpath({literal(path)})", column, path)
        else:
            quoted, found = self.kind == "name", super().name()
            name = WrittenName(found, column, found if quoted and found.startswith("/") else None)
        self.subject_name = name
        return name
