"""The paths that a schema has, and which of them is meant by one that it has not.

Paths are listed from the root inwards, so short ones come first; those to elements with text and to attributes.
An element is not entered again within itself, which would go on for ever; and most schemas of businesses have
more ways through them than anybody could read, so the list is cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from palio.documents.family import PathKind
from palio.documents.reach import DOCUMENT_NODE, Amount, SchemaNode, SchemaReach
from palio.documents.simple_types import joined_kind
from palio.documents.structure import QName
from palio.documents.xpath.expression import LocationPath, LocationStep, NameTest, NodeTest
from palio.documents.xpath.writing import Naming, write_xpath
from palio.model.effort import spend

MAX_LISTED: Final = 10_000  # of one schema; UBL's invoice has millions
MAX_STEPS: Final = 16  # of one path

_COMPARED: Final = 1_000  # paths that a wrong one is compared with by its letters: a tenth of a second
_CLOSE: Final = 0.6  # of 1.0; Python's own default
_COMPARISON: Final = 300  # steps of effort of comparing two names by their letters


class PathType(msgspec.Struct, frozen=True):
    """What the values of a path are held as, and whether there may be several."""

    kind: PathKind
    many: bool


class ListedPath(msgspec.Struct, frozen=True):
    """A path to an element with text or to an attribute."""

    expression: str
    type: PathType


class LeadsNowhere(Exception):
    """A step that comes to nothing, from some nodes; or, without a number, what comes before the first step."""

    def __init__(self, path: Any, number: int | None, nodes: set[SchemaNode]) -> None:
        super().__init__(number)
        self.path, self.number, self.nodes = path, number, nodes

    @property
    def name(self) -> str | None:
        """The name that the step asks for, if it asks for one."""
        test = None if self.number is None else self.path.steps[self.number].test
        return test.local if isinstance(test, NameTest) else None


class _Way(msgspec.Struct, frozen=True):
    steps: tuple[LocationStep, ...]
    nodes: frozenset[SchemaNode]
    many: bool
    above: frozenset[SchemaNode]


class _Onwards(msgspec.Struct, frozen=True):
    """What is one step further from some nodes, by one name."""

    step: LocationStep
    nodes: frozenset[SchemaNode]
    many: bool


def list_paths(reach: SchemaReach, naming: Naming) -> Iterator[ListedPath]:
    """At most `MAX_LISTED` paths, each with at most `MAX_STEPS` steps, whose namespaces all have prefixes."""
    ways = [_Way((), frozenset((DOCUMENT_NODE,)), False, frozenset())]
    known: dict[frozenset[SchemaNode], tuple[PathKind | None, list[_Onwards]]] = {}
    number = 0
    for way in ways:  # it grows meanwhile
        if way.nodes not in known:
            known[way.nodes] = _kind_of_text(reach, way.nodes), list(_onwards(reach, way.nodes, naming))
        kind, onwards = known[way.nodes]
        if way.steps and kind is not None:
            number += 1
            yield ListedPath(write_xpath(LocationPath(True, way.steps), naming), PathType(kind, way.many))
        if number >= MAX_LISTED:
            return
        if len(way.steps) < MAX_STEPS and len(ways) < 4 * MAX_LISTED:
            ways += [
                _Way((*way.steps, one.step), one.nodes, way.many or one.many, way.above | one.nodes)
                for one in onwards
                if not one.nodes <= way.above
            ]


def _kind_of_text(reach: SchemaReach, nodes: frozenset[SchemaNode]) -> PathKind | None:
    """The kind of what is written there; None for elements that have nothing but elements."""
    attributes = any(node.sort == "attribute" for node in nodes)
    if attributes or reach.next(nodes, LocationStep("child", NodeTest("text"))):
        return joined_kind(map(reach.kind, nodes))
    return None


def _onwards(reach: SchemaReach, nodes: frozenset[SchemaNode], naming: Naming) -> Iterator[_Onwards]:
    for axis in ("attribute", "child"):
        for namespace, name in _names(reach, nodes, axis):
            step = LocationStep(axis, NameTest(namespace or "", name))
            try:
                write_xpath(LocationPath(True, (step,)), naming)
            except KeyError:  # the namespace has no prefix
                continue
            worths = reach.worths(list(nodes), step, lambda node: Amount(1, frozenset()))
            found = frozenset(one for one in reach.next(nodes, step) if one.declaration is not None)
            yield _Onwards(step, found, any(one.number > 1 for one in worths.values()))


def _names(reach: SchemaReach, nodes: Iterable[SchemaNode], axis: str) -> list[QName]:
    """What the children or attributes of some nodes are called, as they are declared."""
    test = NodeTest("node") if axis == "child" else NameTest(None, None)
    found = reach.next(nodes, LocationStep(axis, test))
    names = {(one.declaration.namespace, one.declaration.name) for one in found if one.declaration is not None}
    return sorted(names, key=lambda name: (name[0] or "", name[1]))


def mended_trees(reach: SchemaReach, tree: Any, problem: LeadsNowhere) -> Iterator[Any]:
    """The expression with other names in the step that leads nowhere, the likeliest first."""
    if problem.name is None or problem.number is None:
        return
    step = problem.path.steps[problem.number]
    names: dict[str, tuple[str, QName]] = {}
    for axis in ("child", "attribute") if step.axis != "attribute" else ("attribute", "child"):
        for name in _names(reach, problem.nodes, axis):
            names.setdefault(name[1], (axis, name))
    same = [problem.name] if problem.name in names else []
    for local in [*same, *_close(problem.name, names, 3)]:
        axis, name = names[local]
        mended = LocationStep(axis, NameTest(name[0] or "", name[1]), step.predicates)
        steps = list(problem.path.steps)
        steps[problem.number] = mended
        yield _replaced(tree, problem.path, msgspec.structs.replace(problem.path, steps=tuple(steps)))


def _replaced(tree: Any, old: Any, new: Any) -> Any:
    """A tree with another part in place of one that is in it."""
    if tree is old:
        return new
    if isinstance(tree, tuple):
        return tuple(_replaced(one, old, new) for one in tree)
    if not isinstance(tree, msgspec.Struct):
        return tree
    fields = {name: getattr(tree, name) for name in tree.__struct_fields__}
    return type(tree)(**{name: _replaced(one, old, new) for name, one in fields.items()})


def _close(text: str, names: Collection[str], most: int) -> list[str]:
    """The names with the most similar letters."""
    spend(_COMPARISON * len(names))
    return get_close_matches(text, names, most, _CLOSE)


def likely_path(text: str, problem: LeadsNowhere, paths: Iterator[ListedPath]) -> str | None:
    """A path that ends with the name of the step that leads nowhere, or else one with similar letters."""
    compared = []
    for number, one in enumerate(paths):
        last = one.expression.rpartition("/")[2].removeprefix("@").rpartition(":")[2]
        if last == problem.name:
            return one.expression
        if number < _COMPARED:
            compared.append(one.expression)
    return next(iter(_close(text, compared, 1)), None)
