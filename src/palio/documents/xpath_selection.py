"""An XPath expression as a filter about documents: as those who know no other language write it.

    /c:card/c:price < 10 and /c:card/c:brand = 'Acme'
    family card where xpath("/card/price") < 10 and xpath("/card/brand") = "Acme"

It is true of a document exactly where XPath 1.0 says so; what it comes to is made a truth, as `boolean()` does.

1. The family is the one whose root its paths begin with; the prefixes are those of whoever writes it.
2. What `and`, `or` and `not` join become conditions of their own, on the path and not on its comparison: so
   documents are read for one path however many numbers it is compared with, and such filters cover each other.
   That is done where our comparison is the same as that of XPath: of numbers with a path of numbers (but not
   `!=`, which of an element that is nil is true), and of strings with a path of strings.
3. Everything else is an attribute by itself, which is true or false.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from palio.documents.errors import UnnamedFamily
from palio.documents.family_paths import FamilyPaths
from palio.documents.reserved import FAMILY
from palio.documents.xpath import (
    BOOLEAN,
    NODES,
    FilteredPath,
    LocationPath,
    NameTest,
    XPathCall,
    XPathExpression,
    XPathNegation,
    XPathNumber,
    XPathOperation,
    XPathString,
    XPathSyntaxError,
    read_xpath,
    type_of,
    write_xpath,
)
from palio.documents.xpath.path import naming_of
from palio.model.expression import literal

_OF_NUMBERS: Final = frozenset(("=", "<", "<=", ">", ">="))
_OF_STRINGS: Final = frozenset(("=", "!="))


def xpath_selection(text: str, prefixes: Mapping[str, str], families: Mapping[str, FamilyPaths]) -> str:
    """The text of the filter about documents of one of these families.

    Raises what reading an XPath does, `UnknownPath`, and `UnnamedFamily` if its paths begin with the root of no
    family.
    """
    tree = read_xpath(text, prefixes).tree
    family = _family_of(text, tree, families)
    return f"{FAMILY} = {literal(family.family.name)} and ({_ConditionWriter(text, family).condition(tree)})"


def _family_of(text: str, tree: XPathExpression, families: Mapping[str, FamilyPaths]) -> FamilyPaths:
    roots = set(_roots(tree))
    for name in families:
        family = families[name].family
        if (family.namespace, family.root) in roots:
            return families[name]
    raise UnnamedFamily(text, "a path that begins with the root of its documents, in their namespace,")


def _roots(tree: XPathExpression) -> Iterator[tuple[str, str]]:
    """The namespaces and names with which paths begin."""
    match tree:
        case LocationPath(True, steps) if steps and steps[0].axis == "child":
            test = steps[0].test
            if isinstance(test, NameTest) and test.local is not None:
                yield test.namespace or "", test.local
        case FilteredPath(nodes):
            yield from _roots(nodes)
        case XPathOperation(_, left, right):
            yield from _roots(left)
            yield from _roots(right)
        case XPathNegation(operand):
            yield from _roots(operand)
        case XPathCall(_, operands):
            for one in operands:
                yield from _roots(one)


class _ConditionWriter:
    """Writes conditions about documents of one family."""

    def __init__(self, text: str, family: FamilyPaths) -> None:
        self._text, self._family = text, family
        self._naming = naming_of(family.family.prefixes)

    def condition(self, tree: XPathExpression) -> str:
        match tree:
            case XPathOperation("and" | "or" as word, left, right):
                return f"({self.condition(left)} {word} {self.condition(right)})"
            case XPathCall("not", (operand,)):
                return f"not ({self.condition(operand)})"
            case XPathCall("boolean", (operand,)):
                return self.condition(operand)
            case XPathOperation(operator, left, XPathNumber(value)) if operator in _OF_NUMBERS:
                if type_of(left) == NODES and self._kind(left) in ("int", "float"):
                    return f"{self._path(left)} {operator} {literal(value)}"
            case XPathOperation(operator, left, XPathString(value)) if operator in _OF_STRINGS:
                if type_of(left) == NODES and self._kind(left) == "string":
                    return f"{self._path(left)} {operator} {literal(value)}"
        if type_of(tree) == NODES:
            return f"exists({self._path(tree)})"
        return f"{self._path(tree if type_of(tree) == BOOLEAN else XPathCall('boolean', (tree,)))} = true"

    def _kind(self, path: XPathExpression) -> str:
        return self._family.find(self._written(path)).kind

    def _path(self, tree: XPathExpression) -> str:
        return f"xpath({literal(self._written(tree))})"

    def _written(self, tree: XPathExpression) -> str:
        """Its text with the prefixes of the family."""
        try:
            return write_xpath(tree, self._naming)
        except KeyError as unknown:
            problem = f"the family {self._family.family.name!r} has no prefix for the namespace {unknown}."
            raise XPathSyntaxError(self._text, 1, problem) from None
