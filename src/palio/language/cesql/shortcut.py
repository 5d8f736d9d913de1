"""The short way from a formula to conjunctions: attributes compared with constants, joined by AND and OR.

    type = 'shop.order' AND hop < 5 AND (subject IN ('a', 'b') OR NOT (age > 7))

Each comparison allows one set of values, or two where a number is compared: what is true as it is, and the
strings that a residual has to be asked about. All means the same as `compiling` would make of it, which takes
some ten times as long. Anything else is left to it, and so is what nothing satisfies,
for it says why.

1. What is said beside a residual lies within what the residual implies, so that nothing has to be worked out.
2. Of `a OR b` one is true and all before it are defined, that is, true or false, which are two sets again.
3. What is joined by OR is about different attributes, and what is true is less than what is defined; or all of
   it is about one attribute, and becomes one set, or compares it with numbers. So nothing can be simplified: of
   two conjunctions each has a residual that the other one has not, or a set that the other's does not include.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import repeat
from operator import and_
from typing import TypeAlias

import msgspec

from palio.language.cesql.plain import (
    INTEGERS,
    NUMBER_COMPARISONS,
    STRINGS,
    TURNED,
    Leaf,
    leaf,
    number_values,
    text_values,
    truth_values,
)
from palio.model.conjunction import Conjunction
from palio.model.errors import FilterTooLarge
from palio.model.expression import And, Condition, Expression, Not, Or
from palio.model.formulas.formula import Call, Constant, Formula, Variable
from palio.model.formulas.residual import MAX_RESIDUALS, Residual
from palio.model.normal import in_order
from palio.model.valueset import EMPTY, PRESENT, ValueSet, union

# Comparisons of numbers whose strings are told from their integers; each one doubles the conjunctions.
MAX_TOLD_APART = 2
# Conditions joined by OR. Each makes one conjunction or some, and each of these is told from all others.
MAX_JOINED_BY_OR = 8
# With several OR, they multiply.
MAX_BOXES = 16

_Alternatives: TypeAlias = "list[tuple[ValueSet, tuple[Residual, ...]]]"
_Box: TypeAlias = "tuple[dict[str, ValueSet], tuple[Residual, ...]]"
# What is cast to an Integer, or may be.
_CAST = INTEGERS | STRINGS


class _ForTheLongWay(Exception):
    """Ends the short way."""


class _Told(msgspec.Struct, frozen=True, gc=False):
    """A condition, whether it is to be true or false, and its attribute.

    `number` and `text` are what this is compared with; or it is cast to a Boolean: `cast` says to which one and
    whether it stands behind NOT.
    """

    condition: Formula
    truth: bool
    name: str
    number: int | None = None
    text: str | None = None
    cast: tuple[bool, bool] | None = None


def short(formula: Formula) -> tuple[Conjunction, ...] | None:
    """The conjunctions of a formula, if it is of this shape and something can satisfy it."""
    if type(formula) is Variable:  # alone it is not cast
        return None
    try:
        boxes = _boxes(_operands(formula, "cesql.and"))
    except (_ForTheLongWay, FilterTooLarge):  # of the latter there are several patterns of one attribute
        return None
    if len(boxes) == 1:
        return (Conjunction.of(*boxes[0]),)
    return in_order([Conjunction.of(*box) for box in boxes]) or None


def compares_a_number(formula: Formula) -> bool:
    if type(formula) is not Call or formula.function not in NUMBER_COMPARISONS:
        return False
    return any(type(operand) is Constant and type(operand.value) is int for operand in formula.operands)


def _operands(formula: Formula, joint: str) -> tuple[Formula, ...]:
    return formula.operands if type(formula) is Call and formula.function == joint else (formula,)


def _told(formula: Formula) -> _Told:
    """Of `NOT (x > 5)` what is true where `x > 5` is false."""
    truth = True
    if type(formula) is Call and formula.function == "cesql.not":
        (formula,) = formula.operands
        truth = False
    if type(formula) is Variable:
        return _Told(formula, True, formula.name, cast=(truth, not truth))
    if type(formula) is not Call:
        raise _ForTheLongWay
    first, last = formula.operands[0], formula.operands[-1]
    if type(last) is Variable and type(first) is Constant and formula.function in TURNED:
        first, last = last, first
        formula = Call(TURNED[formula.function], (first, last))
    if type(first) is not Variable:
        raise _ForTheLongWay
    if type(last) is not Constant or formula.function not in NUMBER_COMPARISONS:
        return _Told(formula, truth, first.name)
    if type(last.value) is bool and formula.function not in TURNED:
        return _Told(
            formula,
            True,
            first.name,
            cast=(truth == (last.value == (formula.function == "cesql.equal")), False),
        )
    if type(last.value) is str and formula.function not in TURNED:
        return _Told(formula, truth == (formula.function == "cesql.equal"), first.name, text=last.value)
    if type(last.value) is not int:
        return _Told(formula, truth, first.name)
    if not truth:
        formula = Call(NUMBER_COMPARISONS[formula.function], formula.operands)
    return _Told(formula, True, first.name, last.value)


# Boxes


def _boxes(operands: tuple[Formula, ...]) -> list[_Box]:
    groups = [[_told(one) for one in _operands(operand, "cesql.or")] for operand in operands]
    numbers = sum([told.number is not None for group in groups for told in group])
    if numbers > MAX_RESIDUALS:
        raise _ForTheLongWay
    together = numbers > MAX_TOLD_APART
    boxes: list[_Box] = [({}, ())]
    ranges: dict[str, _Alternatives] = {}
    for group in groups:
        if len(group) == 1:
            (told,) = group
            if told.number is None:
                boxes = _narrowed(boxes, told.name, _true(told, together))
            elif told.name in ranges:
                ranges[told.name] = _both(ranges[told.name], _true(told, together))
            else:
                ranges[told.name] = _true(told, together)
    for name, alternatives in ranges.items():
        boxes = _narrowed(boxes, name, alternatives)
    for group in groups:
        if len(group) > 1:
            either = _either(group, together)
            if len(boxes) * len(either) > MAX_BOXES or not all(map(_apart, boxes, repeat(either))):
                raise _ForTheLongWay
            boxes = [
                ({**sides, **others}, residuals + more) for sides, residuals in boxes for others, more in either
            ]
    return boxes


def _both(one: _Alternatives, other: _Alternatives) -> _Alternatives:
    """Of comparisons with numbers: integers are told apart from strings alike."""
    pairs = zip(one, other, strict=True)
    return [(left & right, some + more) for (left, some), (right, more) in pairs]


def _apart(box: _Box, others: Sequence[_Box]) -> bool:
    return not any(name in sides for sides, _ in others for name in box[0])


def _narrowed(boxes: list[_Box], name: str, alternatives: _Alternatives) -> list[_Box]:
    found: list[_Box] = []
    for sides, residuals in boxes:
        before = sides.get(name)
        for values, more in alternatives:
            both = values if before is None else before & values
            if not both.is_empty():
                found.append(({**sides, name: both}, residuals + more))
    return found


def _either(group: Sequence[_Told], together: bool) -> list[_Box]:
    """One is true, and all before it are defined."""
    if len(group) > MAX_JOINED_BY_OR:
        raise _ForTheLongWay
    names = {told.name for told in group}
    if len(names) == 1:
        return (
            _either_number(group, together) if group[0].number is not None else _either_value(group, together)
        )
    if len(names) < len(group):
        raise _ForTheLongWay
    found: list[_Box] = []
    before: list[_Box] = [({}, ())]
    for told in group:
        true, defined = _true(told, together), _defined(told, together)
        if any(values.is_empty() for values, _ in true) or true[0][0].includes(defined[0][0]):
            raise _ForTheLongWay
        found += _narrowed(before, told.name, true)
        if told is not group[-1]:
            before = _narrowed(before, told.name, defined)
    if len(found) > MAX_BOXES:
        raise _ForTheLongWay
    return found


def _either_value(group: Sequence[_Told], together: bool) -> list[_Box]:
    """Of conditions on one attribute that sets alone say."""
    if any(told.number is not None for told in group):
        raise _ForTheLongWay
    found, before = EMPTY, PRESENT
    for told in group:
        ((true, _),), ((defined, _),) = _true(told, together), _defined(told, together)
        found, before = found | (before & true), before & defined
    if found.is_empty():
        raise _ForTheLongWay
    return [({group[0].name: found}, ())]


def _either_number(group: Sequence[_Told], together: bool) -> list[_Box]:
    """Of comparisons of one attribute with numbers, which are all defined if one is."""
    if together or len(set(group)) < len(group) or any(told.number is None for told in group):
        raise _ForTheLongWay
    name = group[0].name
    plain, found = EMPTY, list[_Box]()
    for told in group:
        (values, _), (texts, residuals) = _true(told, together)
        if values.is_empty():
            raise _ForTheLongWay
        plain |= values
        found.append(({name: texts}, (_is_integer(name), *residuals) if found else residuals))
    return [({name: plain}, ()), *found]


# One condition


def _true(told: _Told, together: bool) -> _Alternatives:
    """The values of an attribute with which a condition is true, and what is asked of them."""
    if told.number is not None:
        assert type(told.condition) is Call
        values, texts = number_values(told.condition.function, told.number)
        residuals = (Residual(told.condition),)
        return [(values | texts, residuals)] if together else [(values, ()), (texts, residuals)]
    if told.cast is not None:
        return [(truth_values(*told.cast), ())]
    if told.text is not None:
        values = text_values(told.text)
        return [(values if told.truth else PRESENT - values, ())]
    found = _leaf(told.condition)
    return [(_values(found.true if told.truth else found.false), ())]


def _defined(told: _Told, together: bool) -> _Alternatives:
    """The values with which it is true or false, and what is asked of them."""
    if told.number is not None:
        residuals = (_is_integer(told.name),)
        return [(_CAST, residuals)] if together else [(INTEGERS, ()), (STRINGS, residuals)]
    if told.cast is not None:
        _, negated = told.cast
        return [(truth_values(True, negated) | truth_values(False, negated), ())]
    values = PRESENT if told.text is not None else _values(_leaf(told.condition).defined)
    if values.absent:
        raise _ForTheLongWay
    return [(values, ())]


def _is_integer(name: str) -> Residual:
    return Residual(Call("cesql.defined", (Call("cesql.int", (Variable(name),)),)))


def _leaf(condition: Formula) -> Leaf:
    found = leaf(condition, together=False)
    if found is None:
        raise _ForTheLongWay
    return found


def _values(expression: Expression) -> ValueSet:
    """The set that an expression about one attribute is."""
    match expression:
        case Condition(_, constraint):
            return constraint.values()
        case Not(operand):
            return ~_values(operand)
        case Or(operands):
            return union([_values(one) for one in operands])
        case And(operands):
            return reduce(and_, [_values(one) for one in operands])
        case _:
            raise _ForTheLongWay
