"""A path of a family: an XPath expression under the one name that it has, however it was spelt.

It is evaluated at the document, so a path without a leading `/` is the same as with it, and what asks for the
node that is looked at (`string()`, `name()`) is about the document; what asks for a position there means
nothing and is refused. Namespaces are called by the family's prefixes: of several for one namespace the
shortest, and of these the first in the alphabet. Where the family binds the empty prefix, names of elements
without a prefix are in that namespace.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from palio.documents.libxml import etree_module
from palio.documents.xpath.cost import MAX_PATH_STEPS, USUAL_EXTENT, Extent, path_steps
from palio.documents.xpath.errors import XPathSyntaxError, XPathTooCostly, XPathTooLong
from palio.documents.xpath.expression import (
    DOCUMENT,
    FUNCTIONS,
    FilteredPath,
    LocationPath,
    XPathCall,
    XPathExpression,
    XPathNegation,
    XPathOperation,
    XPathType,
    type_of,
)
from palio.documents.xpath.reader import XML_NAMESPACE, read_tree
from palio.documents.xpath.walkable import walk_paths
from palio.documents.xpath.writing import Naming, write_xpath
from palio.model.values import MAX_NAME_CHARACTERS

# What is only known where a step or a predicate looks at one node after the other.
_OF_PREDICATES = frozenset(("position", "last", "lang"))


class XPath(msgspec.Struct, frozen=True):
    """An expression that is evaluated at a document: its canonical text, its tree and what it comes to."""

    text: str
    tree: XPathExpression
    type: XPathType


def read_xpath(text: str, prefixes: Mapping[str, str]) -> XPath:
    """An expression, whatever it costs. Raises `XPathSyntaxError`."""
    tree = _rooted(text, read_tree(text, prefixes))
    return XPath(write_xpath(tree, naming_of(prefixes)), tree, type_of(tree))


def read_path(
    text: str, prefixes: Mapping[str, str], extent: Extent = USUAL_EXTENT, *, most: int = MAX_PATH_STEPS
) -> XPath:
    """An expression that can be the name of an attribute, and be evaluated in every document of that `extent`.

    Raises `XPathSyntaxError`, `XPathTooLong` and `XPathTooCostly`.
    """
    path = read_xpath(text, prefixes)
    if len(path.text) > MAX_NAME_CHARACTERS:
        raise XPathTooLong(path.text, len(path.text), MAX_NAME_CHARACTERS)
    steps = path_steps(path.tree, extent)
    if steps > most:
        raise XPathTooCostly(path.text, steps, most, extent.nodes)
    _require_evaluable(path, text)
    return path


def _require_evaluable(path: XPath, text: str) -> None:
    """libxml2 reads fewer names in an XPath than in a document: those of XML's fourth edition. So a path with
    other ones is only for the walk.
    """
    if path.text.isascii() or walk_paths(path.tree) is not None:
        return
    etree = etree_module()
    try:
        etree.XPath(write_xpath(path.tree, lambda *_: ""))
    except etree.XPathSyntaxError:
        problem = "it has a name that libxml2 cannot look for, except in a plain path."
        raise XPathSyntaxError(text, 1, problem, "Take a path of child steps, or another name.") from None


def naming_of(prefixes: Mapping[str, str]) -> Naming:
    """What a family calls namespaces. It raises `KeyError` for one that has no prefix."""
    shortest = {XML_NAMESPACE: "xml"}
    for prefix in sorted(prefixes, key=lambda one: (len(one), one)):
        if prefix:
            shortest.setdefault(prefixes[prefix], prefix)
    default = prefixes.get("")

    def prefix_of(namespace: str, axis: str) -> str:
        if namespace == default and axis not in ("attribute", "namespace"):
            return ""
        return shortest[namespace]

    return prefix_of


def _rooted(text: str, expression: XPathExpression) -> XPathExpression:
    """The same expression, where the node that is looked at is the document."""
    match expression:
        case LocationPath(_, steps):
            return LocationPath(True, steps)
        case FilteredPath(nodes, predicates, steps):
            return FilteredPath(_rooted(text, nodes), predicates, steps)
        case XPathOperation(operator, left, right):
            return XPathOperation(operator, _rooted(text, left), _rooted(text, right))
        case XPathNegation(operand):
            return XPathNegation(_rooted(text, operand))
        case XPathCall(function, operands):
            if function in _OF_PREDICATES:
                problem = f"`{function}()` has no meaning outside of a predicate."
                raise XPathSyntaxError(text, text.find(function) + 1, problem, "Put it into `[…]`.")
            if not operands and FUNCTIONS[function].of_context:
                return XPathCall(function, (DOCUMENT,))
            return XPathCall(function, tuple(_rooted(text, one) for one in operands))
        case _:
            return expression
