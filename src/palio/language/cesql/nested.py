"""The short way from any nesting of AND, OR, XOR and NOT to conjunctions, where `conditions` knows the parts.

    (type = 'shop.order' AND hop < 5) OR (type = 'shop.offer' AND NOT (subject LIKE 'test%'))

What `compiling` says by expressions is said by boxes here: where a part is true, where it is false, and where
it is defined, each as alternatives. That takes a third of the time, for nothing is to be checked, expanded and
put together again. Beyond some boxes the time goes into telling them from each other, whichever way they were
found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise

from palio.language.cesql.conditions import (
    MAX_TOLD_APART,
    Alternatives,
    Box,
    ForTheLongWay,
    compares_a_number,
    defined_values,
    told_of,
    true_values,
)
from palio.language.cesql.plain import are_opposite_truths
from palio.model.conjunction import Conjunction
from palio.model.errors import FilterTooLarge
from palio.model.formulas.formula import Call, Formula, parts
from palio.model.formulas.residual import MAX_RESIDUALS
from palio.model.normal import settle
from palio.model.valueset import ANYTHING, ValueSet

MAX_BOXES = 24

_JOINTS = frozenset(("cesql.and", "cesql.or", "cesql.xor", "cesql.not"))


def nested(formula: Formula) -> tuple[Conjunction, ...] | None:
    """The conjunctions of a formula, if it is of this shape and something can satisfy it."""
    if type(formula) is not Call or formula.function not in _JOINTS:
        return None
    sides = _NestedSides(sum(map(compares_a_number, parts(formula))) > MAX_TOLD_APART)
    try:
        boxes = sides.where(formula, True)
        if any(len(residuals) > MAX_RESIDUALS for _, residuals in boxes):
            return None
        return settle([Conjunction.of(*box) for box in boxes]) or None
    except (ForTheLongWay, FilterTooLarge):
        return None


class _NestedSides:
    """`together` says that integers are not told from the strings that may be cast to them."""

    def __init__(self, together: bool) -> None:
        self._together = together

    def where(self, formula: Formula, truth: bool, negated: bool = False) -> list[Box]:
        """Where it comes to true, or to false; `negated` says that it stands behind NOT."""
        if type(formula) is not Call or formula.function not in _JOINTS:
            told = told_of(formula, truth, negated)
            return _of_attribute(told.name, true_values(told, self._together))
        joint, operands = formula.function, formula.operands
        if joint == "cesql.not":
            return self.where(operands[0], not truth, True)
        if joint == "cesql.xor":
            left, right = operands
            first = _both(self.where(left, True), self.where(right, not truth))
            return _bounded(first + _both(self.where(left, False), self.where(right, truth)))
        if (joint == "cesql.and") == truth:
            return _all(self.where(one, truth) for one in operands)
        return self._decided(operands, truth)

    def _defined(self, formula: Formula, negated: bool = False) -> list[Box]:
        """Where it comes to anything."""
        if type(formula) is not Call or formula.function not in _JOINTS:
            told = told_of(formula, True, negated)
            return _of_attribute(told.name, defined_values(told, self._together))
        joint, operands = formula.function, formula.operands
        if joint == "cesql.not":
            return self._defined(operands[0], True)
        everywhere = _all(map(self._defined, operands))
        if joint == "cesql.xor":
            return everywhere
        return _bounded(self._decided(operands[:-1], joint == "cesql.or") + everywhere)

    def _decided(self, operands: Sequence[Formula], truth: bool) -> list[Box]:
        """One of them decides, by being true or false, and all before it are defined."""
        found = self.where(operands[0], truth)
        before: list[Box] = [({}, ())]
        for passed, operand in pairwise(operands):
            before = _both(before, self._defined(passed))
            found = _bounded(found + _both(before, self.where(operand, truth)))
        return found


def _of_attribute(name: str, alternatives: Alternatives) -> list[Box]:
    return [
        ({} if values is ANYTHING else {name: values}, residuals)
        for values, residuals in alternatives
        if not values.is_empty()
    ]


def _all(several: Iterable[list[Box]]) -> list[Box]:
    return reduce(_both, several)


def _both(some: list[Box], others: list[Box]) -> list[Box]:
    found: list[Box] = []
    for sides, residuals in some:
        for more_sides, more in others:
            joined = _joined(sides, more_sides)
            if joined is not None:
                found.append((joined, residuals + more))
    return _bounded(found)


def _joined(sides: dict[str, ValueSet], others: dict[str, ValueSet]) -> dict[str, ValueSet] | None:
    """What is in both; None if that is nothing. Where texts or lists decide that, it is left to the end."""
    joined = {**sides, **others}
    if len(joined) < len(sides) + len(others):
        for name, values in others.items():
            if name in sides:
                if values.asks and are_opposite_truths(sides[name], values):
                    return None
                joined[name] = both = _in_both(sides[name], values)
                if not both.asks and both.is_empty():
                    return None
    return joined


def _in_both(one: ValueSet, other: ValueSet) -> ValueSet:
    """One of the two itself where that is what both have in common: what took long is known of it."""
    both = one & other
    if both.asks:
        for known in (one, other):
            if known.parts == both.parts and known.absent == both.absent:
                return known
    return both


def _bounded(boxes: list[Box]) -> list[Box]:
    if len(boxes) > MAX_BOXES:
        raise ForTheLongWay
    return boxes
