"""How long an evaluation can take at most: a bound that is known before there is a document.

An evaluation by libxml2 cannot be stopped, so what could take too long is refused when a path is added. The
bound is counted in visits of nodes, for a document of n nodes that are nested d deep; a visit takes 1 to 10 ns
(measured with libxml2 2.14).

1. An expression is evaluated in `contexts`: once at the document, or in a predicate once for each node that
   comes to it. `Spread` says how many pairs of a context and a node there are, whether each node is in one pair
   only (`apart`), whether each context has at most one node (`single`), and whether none is within another one
   (`flat`).
2. Children and attributes of nodes that are apart are apart again, and all of them are at most n. Once nodes
   are not apart, each pair may have n children of its own.
3. The axes that leave the subtree (siblings, following, preceding) cost n for each pair; those that go up, d.
4. libxml2 joins what several nodes of one context find by comparing each with each. Only children and
   attributes are appended without that.
5. So do a union, and a comparison of two sets of nodes.
6. A string or a number that is made of a node reads its whole subtree: all nodes that are apart together n · d,
   and n if they are flat.
   A comparison and `sum` read all nodes of a set, everything else the first one.
7. A document has one element.
8. What a walk finds (`walkable`) is found in one visit of each node for each step and predicate.
"""

from __future__ import annotations

from typing import NamedTuple

from palio.documents.parsing import DocumentLimits
from palio.documents.xpath.expression import (
    COMPARISONS,
    NODES,
    FilteredPath,
    LocationPath,
    LocationStep,
    NameTest,
    XPathCall,
    XPathExpression,
    XPathNegation,
    XPathOperation,
    type_of,
)
from palio.documents.xpath.walkable import walk_paths

# A second at 10 ns a visit, the slowest that was measured: what one path may take of the worst document.
MAX_PATH_STEPS = 100_000_000

_DOWN = frozenset(("child", "attribute", "namespace"))
_SEARCHING = frozenset(("descendant", "descendant-or-self"))
_UP = frozenset(("ancestor", "ancestor-or-self"))
_OF_NAMES = frozenset(("count", "local-name", "namespace-uri", "name", "boolean", "not"))


class Extent(NamedTuple):
    """How large a document may be: its nodes (elements, attributes, texts), and how deep they are nested."""

    nodes: int
    depth: int


def extent_of(limits: DocumentLimits) -> Extent:
    """The extent of the largest document within limits: before and behind each node there can be a text."""
    return Extent(2 * limits.nodes + limits.attributes, limits.depth)


class Spread(NamedTuple):
    """Nodes over all contexts of an evaluation; see the head of this file."""

    contexts: int
    pairs: int
    apart: bool
    single: bool
    flat: bool


USUAL_EXTENT = extent_of(DocumentLimits())


def path_steps(expression: XPathExpression, extent: Extent = USUAL_EXTENT) -> int:
    """How many nodes an evaluation at the document can visit at most."""
    walked = walk_paths(expression)
    if walked is not None:
        asked = sum(len(path.steps) + 1 + sum(len(step.predicates) for step in path.steps) for path in walked)
        return extent.nodes * asked
    return _CostBound(extent).expression(expression, Spread(1, 1, apart=True, single=True, flat=True))


class _CostBound:
    def __init__(self, extent: Extent) -> None:
        self.nodes = extent.nodes
        self.depth = min(extent.depth, extent.nodes)
        # What is known already: the same part is asked for by several ways, and without this by ever more of
        # them at each level. The expression outlives this, so an id is that of one part.
        self._bounds: dict[tuple[int, Spread], int] = {}
        self._paths: dict[tuple[int, Spread], tuple[int, Spread]] = {}

    def expression(self, expression: XPathExpression, at: Spread) -> int:
        key = (id(expression), at)
        if (known := self._bounds.get(key)) is None:
            known = self._bounds[key] = self._expression(expression, at)
        return known

    def _expression(self, expression: XPathExpression, at: Spread) -> int:
        match expression:
            case LocationPath() | FilteredPath():
                return self.path(expression, at)[0]
            case XPathOperation(operator, left, right):
                return self.operation(operator, left, right, at)
            case XPathNegation(operand):
                return self.value(operand, at, whole=False)
            case XPathCall(function, operands):
                if function in _OF_NAMES:
                    return at.pairs + sum(self.expression(one, at) for one in operands)
                return at.pairs + sum(self.value(one, at, whole=function == "sum") for one in operands)
            case _:
                return at.pairs

    def operation(self, operator: str, left: XPathExpression, right: XPathExpression, at: Spread) -> int:
        sets = type_of(left) == type_of(right) == NODES
        if operator in ("and", "or"):
            return self.expression(left, at) + self.expression(right, at)
        whole = operator in COMPARISONS
        steps = self.value(left, at, whole=whole) + self.value(right, at, whole=whole)
        if operator == "|" or (whole and sets):
            steps += sum(self.joining(self.path(one, at)[1]) for one in (left, right))
        return steps

    def value(self, expression: XPathExpression, at: Spread, *, whole: bool) -> int:
        """The bound where the strings of nodes are read, too: of the `whole` set, or of the first in it."""
        if type_of(expression) != NODES:
            return self.expression(expression, at)
        steps, found = self.path(expression, at)
        read = (found.pairs if whole else min(found.pairs, found.contexts)) * self.nodes
        if found.apart:
            read = min(read, self.nodes if found.flat else self.nodes * self.depth)
        return steps + read

    def path(self, expression: XPathExpression, at: Spread) -> tuple[int, Spread]:
        """The bound of what comes to nodes, and these."""
        key = (id(expression), at)
        if (known := self._paths.get(key)) is None:
            known = self._paths[key] = self._path(expression, at)
        return known

    def _path(self, expression: XPathExpression, at: Spread) -> tuple[int, Spread]:
        match expression:
            case LocationPath(absolute, steps):
                if not absolute:
                    return self.steps(steps, at, at.pairs)
                once = Spread(at.contexts, at.contexts, apart=at.contexts == 1, single=True, flat=True)
                if not steps or steps[0].axis != "child" or not isinstance(steps[0].test, NameTest):
                    return self.steps(steps, once, at.pairs)
                return self.steps(steps[1:], once, at.pairs + self.predicates(steps[0].predicates, once))
            case FilteredPath(nodes, predicates, steps):
                before, found = self.path(nodes, at)
                before += self.predicates(predicates, found)
                return self.steps(steps, found, before)
            case XPathOperation(_, left, right):  # a union
                pairs = self.path(left, at)[1].pairs + self.path(right, at)[1].pairs
                found = Spread(at.contexts, pairs, at.contexts == 1, single=False, flat=False)
                return self.expression(expression, at), found
            case _:  # id()
                pairs = at.contexts * self.nodes
                found = Spread(at.contexts, pairs, at.contexts == 1, single=False, flat=False)
                return self.expression(expression, at) + pairs, found

    def steps(self, steps: tuple[LocationStep, ...], at: Spread, before: int) -> tuple[int, Spread]:
        for step in steps:
            work, at = self.step(step, at)
            before += work + self.predicates(step.predicates, at)
        return before, at

    def step(self, step: LocationStep, at: Spread) -> tuple[int, Spread]:
        nodes, once = self.nodes, at.contexts == 1
        if step.axis == "self":
            return at.pairs, at
        if step.axis == "parent" and at.single:
            return at.pairs, at._replace(apart=once, flat=False)
        if step.axis in _DOWN:
            pairs = nodes if at.apart else at.pairs * nodes
            return pairs, Spread(at.contexts, pairs, at.apart, single=False, flat=at.flat)
        if step.axis in _SEARCHING and at.apart:
            pairs = nodes if once else nodes * self.depth
        elif step.axis in _UP:
            pairs = at.pairs * self.depth
        else:
            pairs = at.pairs if step.axis == "parent" else at.pairs * nodes
        found = Spread(at.contexts, min(pairs, at.contexts * nodes), once, single=False, flat=False)
        return pairs + (0 if at.single else self.joining(found)), found

    def joining(self, found: Spread) -> int:
        """Comparing the nodes of each context with each other."""
        each = self.nodes * self.nodes
        return each if found.apart else each * found.contexts

    def predicates(self, predicates: tuple[XPathExpression, ...], found: Spread) -> int:
        """What is asked of each node that comes to them, which is a context of its own."""
        each = Spread(found.pairs, found.pairs, found.apart, single=True, flat=found.flat)
        return sum(self.expression(one, each) for one in predicates)
