"""Which paths one walk over a document finds together, and what they look like to it.

A walk goes through a document once, from the root downwards, and knows of each element which paths have come
there. So it takes unions of absolute paths of these steps, and nothing else:

1. Steps along `child` to elements, each of them with or without `//` before it.
2. At the end a step to attributes or texts, without predicates.
3. Predicates that say a position (`[2]`, `[last()]`), that something is there (`[@a]`, `[b]`, `[text()]`), or
   that it is equal to a text (`[@a = "x"]`, `[b = "x"]`, `[text() = "x"]`, `[. = "x"]`), or several of the
   latter two joined by `and`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from palio.documents.xpath.expression import (
    SEARCH,
    LocationPath,
    LocationStep,
    NameTest,
    NodeTest,
    XPathCall,
    XPathExpression,
    XPathNumber,
    XPathOperation,
    XPathString,
)

TEXT: Final = NodeTest("text")
LAST: Final = -1


class WalkCondition(msgspec.Struct, frozen=True):
    """That an element has a child, an attribute or a text, or such a one that is equal to `value`.

    `of` is the axis, `self` for the element itself; `test` is None for texts.
    """

    of: str
    test: NameTest | None
    value: str | None


WalkPredicate: TypeAlias = "int | WalkCondition"  # a position from 1, or `LAST`


class WalkStep(msgspec.Struct, frozen=True):
    """To children of that name, or to all elements within where `search` says so."""

    search: bool
    test: NameTest
    predicates: tuple[WalkPredicate, ...] = ()


class WalkEnd(msgspec.Struct, frozen=True):
    """What of the elements that are found is wanted: attributes of that name, or texts where there is none."""

    search: bool
    test: NameTest | None


class WalkPath(msgspec.Struct, frozen=True):
    """One path; without an `end` the elements themselves are wanted."""

    steps: tuple[WalkStep, ...]
    end: WalkEnd | None = None


def walk_paths(expression: XPathExpression) -> tuple[WalkPath, ...] | None:
    """The paths that an expression is the union of; None if a walk does not find what it asks for."""
    if isinstance(expression, XPathOperation) and expression.operator == "|":
        left, right = walk_paths(expression.left), walk_paths(expression.right)
        return None if left is None or right is None else left + right
    if not isinstance(expression, LocationPath) or not expression.absolute:
        return None
    path = _walk_path(list(expression.steps))
    return None if path is None else (path,)


def _walk_path(steps: list[LocationStep]) -> WalkPath | None:
    found: list[WalkStep] = []
    search = False
    for place, step in enumerate(steps):
        if step == SEARCH and place + 1 < len(steps):
            search = True
            continue
        if place + 1 == len(steps) and not step.predicates:
            if step.axis == "attribute" and isinstance(step.test, NameTest):
                return WalkPath(tuple(found), WalkEnd(search, step.test))
            if step.axis == "child" and step.test == TEXT:
                return WalkPath(tuple(found), WalkEnd(search, None))
        if step.axis != "child" or not isinstance(step.test, NameTest):
            return None
        predicates = _walk_predicates(step.predicates)
        if predicates is None:
            return None
        found.append(WalkStep(search, step.test, predicates))
        search = False
    return WalkPath(tuple(found)) if found else None


def _walk_predicates(predicates: tuple[XPathExpression, ...]) -> tuple[WalkPredicate, ...] | None:
    found: list[WalkPredicate] = []
    for predicate in predicates:
        match predicate:
            case XPathNumber(value) if value.is_integer() and value >= 1:
                found.append(int(value))
            case XPathCall("last"):
                found.append(LAST)
            case XPathOperation("and", left, right):
                both = _walk_predicates((left, right))
                # Within a condition a number is no position but true.
                if both is None or any(isinstance(one, int) for one in both):
                    return None
                found += both
            case _:
                condition = _walk_condition(predicate)
                if condition is None:
                    return None
                found.append(condition)
    return tuple(found)


def _walk_condition(predicate: XPathExpression) -> WalkCondition | None:
    match predicate:
        case XPathOperation("=", LocationPath(False, ()), XPathString(value)):
            return WalkCondition("self", None, value)
        case XPathOperation("=", LocationPath(False, (step,)), XPathString(value)):
            wanted: str | None = value
        case LocationPath(False, (step,)):
            wanted = None
        case _:
            return None
    if step.predicates or step.axis not in ("child", "attribute"):
        return None
    if isinstance(step.test, NameTest):
        return WalkCondition(step.axis, step.test, wanted)
    return WalkCondition("child", None, wanted) if step.axis == "child" and step.test == TEXT else None
