"""From an expression to its normal form: conjunctions of sets of values, joined by or.

`not` is pushed down to the conditions, where it is the complement of a set. Whatever speaks of one attribute
alone, however deeply joined, becomes one set. A residual is kept as it is, beside what it says about
attributes. Only `or` between different attributes makes several conjunctions, and `and` over such multiplies
them; the bound is checked on the way, and what was asked for is counted beforehand without expanding it, so
that the error can name the number.

Where conditions exclude each other, the first such pairs are remembered: they are the reason that a person
wants to read when nothing is left.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn, TypeAlias

import msgspec

from palio.model.conjunction import STEPS, Conjunction, simplify
from palio.model.describe import describe
from palio.model.effort import Effort, Undecided
from palio.model.errors import FilterTooLarge
from palio.model.expression import Always, And, Condition, Expression, Not, Or, text_of
from palio.model.flips import NOTHING
from palio.model.formulas.evaluation import implied
from palio.model.formulas.formula import Call, Constant, Formula, Variable
from palio.model.formulas.function import TRUE
from palio.model.formulas.residual import Residual, check_number, check_size
from palio.model.valueset import ANYTHING, ValueSet, union

MAX_CONJUNCTIONS = 64
# In joins, and as much again in comparisons of two conjunctions to simplify them on the way, which keeps honest
# filters far below. When the latter is spent, a filter is taken as it is, if that is within the limit.
MAX_EFFORT = 16_384
# From this many conjunctions on it pays to simplify in between.
_SIMPLIFY_FROM = 16
_MAX_REASONS = 3

# What must hold: of attributes the set that their value is in; of formulas, whether they are true.
Sides: TypeAlias = "dict[str | Formula, ValueSet]"
_UNTRUE = ANYTHING - TRUE


class Normal(msgspec.Struct, frozen=True):
    """The conjunctions, and why some of those that were written are not among them."""

    conjunctions: tuple[Conjunction, ...]
    conflicts: tuple[str, ...]


def normalise(expression: Expression) -> Normal:
    """The normal form of an expression. Raises `FilterTooLarge`."""
    plain = _plain_conjunction(expression)
    if plain is not None:
        return plain
    expander = Expander(lambda: _count(expression, False)[0])
    return expander.normal(expander.expand(expression, False))


def _plain_conjunction(expression: Expression) -> Normal | None:
    """The short way for conditions joined by `and`, as most filters are; None if it is not that simple."""
    sides: dict[str, ValueSet] = {}
    for condition in expression.operands if type(expression) is And else (expression,):
        if type(condition) is not Condition:
            return None
        name, values = condition.attribute, condition.constraint.values()
        sides[name] = values & sides[name] if name in sides else values
    box = Conjunction.of(sides)
    # What contradicts itself takes the long way, which finds out why.
    return None if box.is_empty() else Normal((box,), ())


def intersection(left: Sequence[Conjunction], right: Sequence[Conjunction]) -> Normal:
    """The normal form of what lies in both unions of conjunctions. Raises `FilterTooLarge`."""
    expander = Expander(lambda: len(left) * len(right))
    return expander.normal(expander.all([[_sides(box) for box in side] for side in (left, right)]))


def _sides(box: Conjunction) -> Sides:
    """A conjunction with its residuals as sides."""
    return _named(box.sides) | {one.formula: TRUE if one.wanted else _UNTRUE for one in box.residuals}


def _named(sides: Mapping[str, ValueSet]) -> Sides:
    named: Sides = {}
    named.update(sides)
    return named


def _box(sides: Sides) -> Conjunction:
    """The conjunction of some sides, of which some may allow everything."""
    plain = {name: side for name, side in sides.items() if type(name) is str}
    if len(plain) == len(sides):
        return Conjunction.of(plain)
    residuals = [
        Residual(formula, side.includes(TRUE))
        for formula, side in sides.items()
        if isinstance(formula, (Constant, Variable, Call)) and not side.is_everything()
    ]
    check_number(len(residuals))
    for residual in residuals:
        check_size(residual.formula)
    return Conjunction.of(plain, tuple(residuals))


def settle(conjunctions: list[Conjunction]) -> tuple[Conjunction, ...]:
    """Simplified, bounded, and in an order that does not depend on how they were written."""
    if len(conjunctions) <= 1:
        return tuple(box for box in conjunctions if not box.is_empty())
    try:
        kept = simplify(conjunctions, Effort(MAX_EFFORT, STEPS))
    except Undecided:
        kept = tuple(conjunctions)
    if len(kept) > MAX_CONJUNCTIONS:
        raise FilterTooLarge(limit=MAX_CONJUNCTIONS, got=len(kept))
    return in_order(kept)


def in_order(conjunctions: Iterable[Conjunction]) -> tuple[Conjunction, ...]:
    """By the names of attributes; of the same ones, those with less to compute first; then by kinds of values.

    Only what that does not tell apart is told by its text, which takes the time of all else.
    """
    groups: dict[tuple[tuple[str, ...], int], list[Conjunction]] = defaultdict(list)
    for box in conjunctions:
        groups[tuple(box.sides), len(box.residuals)].append(box)
    told: dict[tuple[str, int], str] = {}
    several = [groups[key] for key in sorted(groups)]
    return tuple([box for boxes in several for box in (_by_kinds(boxes, told) if len(boxes) > 1 else boxes)])


def _by_kinds(boxes: list[Conjunction], told: dict[tuple[str, int], str]) -> list[Conjunction]:
    groups: dict[tuple[bool, ...], list[Conjunction]] = defaultdict(list)
    for box in boxes:
        groups[tuple([part != NOTHING for side in box.sides.values() for part in side.parts])].append(box)
    return [box for key in sorted(groups, reverse=True) for box in _by_text(groups[key], told)]


def _by_text(boxes: list[Conjunction], told: dict[tuple[str, int], str]) -> list[Conjunction]:
    return sorted(boxes, key=lambda box: _conjunction_text(box, told)) if len(boxes) > 1 else boxes


def _conjunction_text(box: Conjunction, told: dict[tuple[str, int], str]) -> str:
    """`told` has the texts of sides, of which conjunctions share many."""
    texts: list[str] = []
    for name, side in box.sides.items():
        key = name, id(side)
        if key not in told:
            told[key] = text_of(describe(name, side))
        texts.append(told[key])
    return " and ".join([*texts, *map(text_of, box.residuals)])


def _described(name: str | Formula, values: ValueSet) -> Expression:
    return describe(name, values) if isinstance(name, str) else Residual(name, values.includes(TRUE))


class Expander:
    """Joins alternatives, each of which is what must hold of some attributes, by `and` and by `or`.

    `count` tells how many conjunctions there would be without simplifying; only an error asks for it.
    """

    def __init__(self, count: Callable[[], int]) -> None:
        self.count = count
        self.conflicts: list[str] = []
        self.effort = Effort(MAX_EFFORT, STEPS)
        self.simplifying = Effort(MAX_EFFORT, STEPS)

    def normal(self, alternatives: list[Sides]) -> Normal:
        conjunctions = [_box(sides) for sides in alternatives]
        settled = settle(conjunctions)
        if not settled:
            for name in dict.fromkeys(name for box in conjunctions for name in box.sides):
                self.conflict(f"the conditions on `{name}` exclude each other")
        return Normal(settled, tuple(self.conflicts))

    def expand(self, expression: Expression, negated: bool) -> list[Sides]:
        """The alternatives of which one must hold; none means false, one without sides means true."""
        match expression:
            case Condition(attribute, constraint):
                values = constraint.values()
                if negated:
                    values = ~values
                if values.is_empty():
                    self.conflict(f"`{text_of(expression)}` holds for no value")
                    return []
                return [{attribute: values}]
            case Residual(formula, wanted):
                return self.computed(formula, wanted != negated)
            case Not(operand):
                return self.expand(operand, not negated)
            case Always(truth):
                if truth == negated:
                    self.conflict("`false` never holds")
                    return []
                return [{}]
            case And(operands) | Or(operands):
                parts = [self.expand(operand, negated) for operand in operands]
                return self.any(parts) if isinstance(expression, Or) != negated else self.all(parts)

    def computed(self, formula: Formula, wanted: bool) -> list[Sides]:
        """The one alternative of a residual; none if it never holds."""
        check_size(formula)
        sides = implied(formula)
        if not wanted:
            return [{}] if sides is None else [{formula: _UNTRUE}]
        if sides is None:
            self.conflict(f"`{text_of(Residual(formula))}` holds for no values")
            return []
        return [_named(sides) | {formula: TRUE}]

    def any(self, parts: list[list[Sides]]) -> list[Sides]:
        """Where one of the parts holds."""
        single: dict[str | Formula, list[ValueSet]] = defaultdict(list)
        several: list[Sides] = []
        for sides in (sides for part in parts for sides in part):
            if len(sides) == 1:
                ((name, values),) = sides.items()
                single[name].append(values)
            else:
                several.append(sides)
        joined: list[Sides] = [{name: union(sets)} for name, sets in single.items()]
        return self._bounded(joined + several)

    def all(self, parts: list[list[Sides]]) -> list[Sides]:
        """Where all of the parts hold."""
        result: list[Sides] = [{}]
        for part in sorted(parts, key=len):
            self._spend(len(result) * len(part))
            joined = [self._join(left, right) for left in result for right in part]
            result = self._bounded([sides for sides in joined if sides is not None])
        return result

    def _join(self, left: Sides, right: Sides) -> Sides | None:
        joined = dict(left)
        for name, values in right.items():
            before = joined.get(name)
            if before is None:
                joined[name] = values
                continue
            both = before & values
            # Where text or list questions decide, that is left to the end: once is enough.
            if not both.asks and both.is_empty():
                if len(self.conflicts) < _MAX_REASONS:
                    first, second = (text_of(_described(name, one)) for one in (before, values))
                    self.conflict(f"`{first}` and `{second}` exclude each other")
                return None
            joined[name] = both
        return joined

    def _bounded(self, alternatives: list[Sides]) -> list[Sides]:
        if len(alternatives) > _SIMPLIFY_FROM:
            self._spend(len(alternatives))
            boxes = [_box(sides) for sides in alternatives]
            with suppress(Undecided):
                alternatives = [_sides(box) for box in simplify(boxes, self.simplifying)]
        if len(alternatives) > MAX_CONJUNCTIONS:
            self._too_large(len(alternatives))
        return alternatives

    def _spend(self, units: int) -> None:
        try:
            self.effort.spend(units)
        except Undecided:
            self._too_large()

    def _too_large(self, at_least: int = MAX_CONJUNCTIONS + 1) -> NoReturn:
        raise FilterTooLarge(limit=MAX_CONJUNCTIONS, got=max(at_least, self.count()))

    def conflict(self, reason: str) -> None:
        """Remembers why nothing is left, if nothing is."""
        if len(self.conflicts) < _MAX_REASONS and reason not in self.conflicts:
            self.conflicts.append(reason)


def _count(expression: Expression, negated: bool) -> tuple[int, str | None]:
    """How many conjunctions there would be, and the attribute if it is about a single one."""
    match expression:
        case Condition(attribute, _):
            return 1, attribute
        case Residual():
            return 1, None
        case Not(operand):
            return _count(operand, not negated)
        case Always(truth):
            return int(truth != negated), None
        case And(operands) | Or(operands):
            counts = [_count(operand, negated) for operand in operands]
            names = {name for _, name in counts}
            if len(names) == 1 and None not in names:
                return 1, names.pop()
            joined = sum if isinstance(expression, Or) != negated else math.prod
            return joined(count for count, _ in counts), None
