"""What a path is, from the schema of its family: the kind of its values, whether it may have several, and
whether there can be any at all.

A path that can select nothing is refused, also because of a predicate that no node can have; and so is a number
or a truth that is made of a path that selects nothing, `count(/card/colour)`. The nearest path that exists is
found by mending the step that leads nowhere.

Without a schema nothing is known: values are strings, and one each, unless the path says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from palio.documents.errors import FamilyRefused, UnknownPath
from palio.documents.family import PathKind
from palio.documents.listing import (
    LeadsNowhere,
    ListedPath,
    PathType,
    likely_path,
    list_paths,
    mended_trees,
)
from palio.documents.reach import (
    ANY_ELEMENT,
    DOCUMENT_NODE,
    NONE,
    SEVERAL_TEXTS,
    VISIT,
    Amount,
    SchemaNode,
    SchemaReach,
    Worth,
    both,
    either,
)
from palio.documents.schemas import SchemaSource
from palio.documents.simple_types import joined_kind
from palio.documents.structure import SchemaStructure
from palio.documents.xpath.expression import (
    BOOLEAN,
    COMPARISONS,
    NODES,
    NUMBER,
    FilteredPath,
    LocationPath,
    LocationStep,
    XPathCall,
    XPathExpression,
    XPathNegation,
    XPathOperation,
    asks_position,
    type_of,
)
from palio.documents.xpath.path import XPath
from palio.documents.xpath.writing import Naming, write_xpath
from palio.model.effort import Meter, metered, spend
from palio.model.errors import TooHard

# Predicates at nodes that are remembered while one path is looked at: some 20 MB.
MOST_KNOWN: Final = 100_000
# Steps of looking for what is meant by a path that leads nowhere: less than `limits.steps`.
MOST_GUESSING: Final = 2_000_000


class PathTyping:
    """Answers for one family: its schema and its root."""

    def __init__(
        self, family: str, sources: tuple[SchemaSource, ...], namespace: str, root: str, naming: Naming
    ) -> None:
        """Raises `FamilyRefused` if the schema does not declare the root."""
        self._family, self._naming = family, naming
        self._reach: SchemaReach | None = None
        # Of the path that is looked at, which predicates can be true of which nodes: without this they are
        # asked again by ever more ways at each level. They are held here, so that no other has the id of one.
        self._known: dict[tuple[int, SchemaNode], tuple[XPathExpression, bool]] = {}
        if sources:
            structure = SchemaStructure(sources)
            declared = structure.element((namespace or None, root))
            if declared is None:
                there = ", ".join(sorted({one.name for one in structure.elements()})[:10]) or "none"
                said = (
                    f"Its schema declares no root {root!r} in the namespace {namespace!r}; there are: {there}."
                )
                raise FamilyRefused(family, said)
            self._reach = SchemaReach(structure, declared)

    def type(self, path: XPath) -> PathType:
        """What a path is. Raises `UnknownPath` for one that can select nothing, and `TooHard`."""
        try:
            return self._type(path)
        finally:
            self._known.clear()

    def _type(self, path: XPath) -> PathType:
        try:
            amount = self._amount(path.tree, self._final) if path.type == NODES else self._checked(path.tree)
        except LeadsNowhere as problem:
            raise UnknownPath(path.text, self._family, self._nearest(path, problem)) from None
        if path.type == BOOLEAN:
            return PathType("bool", False)
        if path.type == NUMBER:
            return PathType("float", False)
        if path.type != NODES or self._reach is None:
            return PathType("string", False)
        return PathType(joined_kind(amount.kinds), amount.number > 1)

    def paths(self) -> Iterator[ListedPath]:
        """The paths of the schema, short ones first; see `listing`."""
        return iter(()) if self._reach is None else list_paths(self._reach, self._naming)

    # How much there is of it

    def _final(self, node: SchemaNode) -> Amount:
        return Amount(1, frozenset((self._kind(node),)))

    def _kind(self, node: SchemaNode) -> PathKind:
        return joined_kind([self._reach.kind(node) if self._reach is not None else "string"])

    def _checked(self, expression: XPathExpression) -> Amount:
        self._forward(expression, {DOCUMENT_NODE})
        return NONE

    def _forward(self, expression: XPathExpression, nodes: set[SchemaNode]) -> set[SchemaNode]:
        """What an expression comes to from some nodes, if it comes to nodes. Raises `LeadsNowhere`."""
        match expression:
            case LocationPath(absolute, steps):
                return self._walk(expression, steps, {DOCUMENT_NODE} if absolute else nodes)[-1]
            case FilteredPath(inner, predicates, steps):
                found = self._forward(inner, nodes)
                for predicate in predicates:
                    found = self._passing(predicate, found)
                if not found:
                    raise LeadsNowhere(expression, None, nodes)
                return self._walk(expression, steps, found)[-1]
            case XPathOperation("|", left, right):
                return self._either_side(left, right, nodes)
            case XPathOperation(_, left, right):
                self._forward(left, nodes)
                self._forward(right, nodes)
            case XPathNegation(operand):
                self._forward(operand, nodes)
            case XPathCall(_, operands):
                for operand in operands:
                    self._forward(operand, nodes)
                return {ANY_ELEMENT} if type_of(expression) == NODES else set()
        return set()

    def _walk(
        self, path: LocationPath | FilteredPath, steps: tuple[LocationStep, ...], nodes: set[SchemaNode]
    ) -> list[set[SchemaNode]]:
        """The nodes before the first step, and after each. Raises `LeadsNowhere`."""
        found = [nodes]
        for number, step in enumerate(steps):
            reached = self._reach.next(nodes, step) if self._reach is not None else {ANY_ELEMENT}
            for predicate in step.predicates:
                reached = self._passing(predicate, reached)
            if not reached:
                raise LeadsNowhere(path, number, nodes)
            nodes = reached
            found.append(nodes)
        return found

    def _either_side(
        self, left: XPathExpression, right: XPathExpression, nodes: set[SchemaNode]
    ) -> set[SchemaNode]:
        """What two sides of a union come to; one of them may come to nothing."""
        found: set[SchemaNode] = set()
        with suppress(LeadsNowhere):
            found = self._forward(left, nodes)
        try:
            return found | self._forward(right, nodes)
        except LeadsNowhere:
            if not found:
                raise
            return found

    def _passing(self, predicate: XPathExpression, nodes: set[SchemaNode]) -> set[SchemaNode]:
        """The nodes of which a predicate can be true. Raises `LeadsNowhere` if it can say why none."""
        found = {node for node in nodes if self._may_hold(predicate, node)}
        if nodes and not found:
            self._forward(predicate, nodes)
        return found

    def _may_hold(self, predicate: XPathExpression, node: SchemaNode) -> bool:
        """Whether a predicate can be true of a node. What it comes to is not looked at, only whether it can."""
        spend(VISIT)
        match predicate:
            case XPathOperation("and", left, right):
                return self._may_hold(left, node) and self._may_hold(right, node)
            case XPathOperation("or", left, right):
                return self._may_hold(left, node) or self._may_hold(right, node)
            case XPathOperation(operator, left, right) if operator in COMPARISONS:
                if BOOLEAN in (type_of(left), type_of(right)):  # no nodes are equal to `false()`
                    return True
                return all(self._may_hold(one, node) for one in (left, right) if type_of(one) == NODES)
            case LocationPath() | FilteredPath():
                return self._leads_on(predicate, node)
        return True

    def _leads_on(self, path: LocationPath | FilteredPath, node: SchemaNode) -> bool:
        """Whether a path leads somewhere from a node."""
        key = id(path), node
        if (known := self._known.get(key)) is not None:
            return known[1]
        try:
            self._forward(path, {node})
            found = True
        except LeadsNowhere:
            found = False
        if len(self._known) < MOST_KNOWN:
            self._known[key] = path, found
        return found

    def _amount(self, expression: XPathExpression, worth: Worth) -> Amount:
        """How much there is of what an expression comes to, if each is worth so much. Raises `LeadsNowhere`."""
        match expression:
            case LocationPath(_, steps):
                before = self._walk(expression, steps, {DOCUMENT_NODE})
                return self._stepped(before, steps, worth)(DOCUMENT_NODE)
            case FilteredPath(inner, predicates, steps):
                nodes = self._forward(inner, {DOCUMENT_NODE})
                for predicate in predicates:
                    nodes = self._passing(predicate, nodes)
                each = self._stepped(self._walk(expression, steps, nodes), steps, worth)
                if not any(map(asks_position, predicates)):
                    return self._amount(inner, each)
                found = NONE
                for node in nodes:
                    found = either(found, each(node))
                return found
            case XPathOperation("|", left, right):
                return both(self._side(left, worth), self._side(right, worth))
        return SEVERAL_TEXTS

    def _side(self, expression: XPathExpression, worth: Worth) -> Amount:
        try:
            return self._amount(expression, worth)
        except LeadsNowhere:
            return NONE

    def _stepped(self, before: list[set[SchemaNode]], steps: tuple[LocationStep, ...], worth: Worth) -> Worth:
        """How much a node is worth before some steps, if each is worth so much behind them."""
        if self._reach is None:
            return lambda node: SEVERAL_TEXTS
        worth = _known({node: worth(node) for node in before[-1]})
        for nodes, step in zip(reversed(before[:-1]), reversed(steps), strict=True):
            worth = _known(self._reach.worths(list(nodes), step, worth))
        return worth

    def _nearest(self, path: XPath, problem: LeadsNowhere) -> str | None:
        """What is most likely meant, or None if that is not found soon."""
        meter = Meter(MOST_GUESSING)
        found = None
        with suppress(TooHard), metered(meter):
            found = self._likely(path, problem)
        spend(meter.spent)
        return found

    def _likely(self, path: XPath, problem: LeadsNowhere) -> str | None:
        """The path with the wrong step mended, or else one that ends or reads like it."""
        if self._reach is None:
            return None
        for tree in mended_trees(self._reach, path.tree, problem):
            with suppress(LeadsNowhere, KeyError):
                self._forward(tree, {DOCUMENT_NODE})
                return write_xpath(tree, self._naming)
        return likely_path(path.text, problem, self.paths())


def _known(worths: dict[SchemaNode, Amount]) -> Worth:
    return lambda node: worths.get(node, NONE)
