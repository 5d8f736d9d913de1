"""The short way from a formula to conjunctions: attributes compared with constants, joined by AND and OR.

    type = 'shop.order' AND hop < 5 AND (subject IN ('a', 'b') OR NOT (age > 7))

Each comparison allows one set of values, or two where a number is compared: what is true as it is, and the
strings that a residual has to be asked about. All means the same as `compiling` would make of it, which takes
some ten times as long. Anything else is left to it, and so is what nothing satisfies,
for it says why.

1. What is said beside a residual lies within what the residual implies, so that nothing has to be worked out.
2. Of `a OR b` one is true and all before it are defined, that is, true or false, which are two sets again.
3. What is joined by OR is about different attributes, and what is true is less than what is defined; or all of
   it compares one attribute with numbers. So nothing can be simplified: of two conjunctions each has a residual
   that the other one has not, or a set that the other one's does not include.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import repeat
from operator import and_
from typing import TypeAlias

from palio.language.cesql.plain import INTEGERS, NUMBER_COMPARISONS, STRINGS, Leaf, leaf, number_values
from palio.model.conjunction import Conjunction
from palio.model.errors import FilterTooLarge
from palio.model.expression import And, Condition, Expression, Not, Or
from palio.model.formulas.formula import Call, Constant, Formula, Variable
from palio.model.formulas.residual import MAX_RESIDUALS, Residual
from palio.model.normal import in_order
from palio.model.valueset import EMPTY, ValueSet, union

# Comparisons of numbers whose strings are told from their integers; each one doubles the conjunctions.
MAX_TOLD_APART = 2
# Conditions joined by OR. Each makes one conjunction or some, and each of these is told from all others.
MAX_JOINED_BY_OR = 8
# With several OR, they multiply.
MAX_BOXES = 16

_Alternatives: TypeAlias = "list[tuple[ValueSet, Residual | None]]"
_Box: TypeAlias = "tuple[dict[str, ValueSet], tuple[Residual, ...]]"
# A condition, and whether it is to be true, or false.
_Told: TypeAlias = "tuple[Call, bool]"
# What is cast to an Integer, or may be.
_CAST = INTEGERS | STRINGS


class _ForTheLongWay(Exception):
    """Ends the short way."""


def short(formula: Formula) -> tuple[Conjunction, ...] | None:
    """The conjunctions of a formula, if it is of this shape and something can satisfy it."""
    try:
        boxes = _boxes(_operands(formula, "cesql.and"))
    except (_ForTheLongWay, FilterTooLarge):  # of the latter there are several patterns of one attribute
        return None
    return in_order([Conjunction.of(*box) for box in boxes]) or None


def compares_a_number(formula: Formula) -> bool:
    if type(formula) is not Call or formula.function not in NUMBER_COMPARISONS:
        return False
    return any(type(operand) is Constant and type(operand.value) is int for operand in formula.operands)


def _operands(formula: Formula, joint: str) -> tuple[Formula, ...]:
    return formula.operands if type(formula) is Call and formula.function == joint else (formula,)


def _boxes(operands: tuple[Formula, ...]) -> list[_Box]:
    groups = [[_condition(one) for one in _operands(operand, "cesql.or")] for operand in operands]
    numbers = sum([compares_a_number(condition) for group in groups for condition, _ in group])
    if numbers > MAX_RESIDUALS:
        raise _ForTheLongWay
    together = numbers > MAX_TOLD_APART
    boxes: list[_Box] = [({}, ())]
    for group in groups:
        if len(group) == 1:
            boxes = list(_narrowed(boxes, _name(group[0]), _true(group[0], together)))
    for group in groups:
        if len(group) > 1:
            either = _either(group, together)
            if len(boxes) * len(either) > MAX_BOXES or not all(map(_apart, boxes, repeat(either))):
                raise _ForTheLongWay
            boxes = [
                ({**sides, **others}, residuals + more) for sides, residuals in boxes for others, more in either
            ]
    return boxes


def _apart(box: _Box, others: Sequence[_Box]) -> bool:
    return not any(name in sides for sides, _ in others for name in box[0])


def _narrowed(boxes: list[_Box], name: str, alternatives: _Alternatives) -> Iterator[_Box]:
    for sides, residuals in boxes:
        before = sides.get(name)
        for values, residual in alternatives:
            both = values if before is None else before & values
            if not both.is_empty():
                yield {**sides, name: both}, residuals if residual is None else (*residuals, residual)


def _either(group: Sequence[_Told], together: bool) -> list[_Box]:
    """One is true, and all before it are defined."""
    if len(group) > MAX_JOINED_BY_OR:
        raise _ForTheLongWay
    names = {_name(one) for one in group}
    if len(names) == 1:
        return _either_number(group, together)
    if len(names) < len(group):
        raise _ForTheLongWay
    found: list[_Box] = []
    before: list[_Box] = [({}, ())]
    for one in group:
        true, defined = _true(one, together), _defined(one, together)
        if any(values.is_empty() for values, _ in true) or true[0][0].includes(defined[0][0]):
            raise _ForTheLongWay
        found += _narrowed(before, _name(one), true)
        if one is not group[-1]:
            before = list(_narrowed(before, _name(one), defined))
    if len(found) > MAX_BOXES:
        raise _ForTheLongWay
    return found


def _either_number(group: Sequence[_Told], together: bool) -> list[_Box]:
    """Of comparisons of one attribute with numbers, which are all defined if one is."""
    name = _name(group[0])
    if together or len(set(group)) < len(group) or not all(compares_a_number(one) for one, _ in group):
        raise _ForTheLongWay
    plain, found = EMPTY, list[_Box]()
    for one in group:
        (values, _), (texts, residual) = _true(one, together)
        assert residual is not None
        if values.is_empty():
            raise _ForTheLongWay
        plain |= values
        found.append(({name: texts}, (_is_integer(name), residual) if found else (residual,)))
    return [({name: plain}, ()), *found]


# One condition: what it compares, and whether it is to be true, or false


def _condition(formula: Formula) -> _Told:
    """Of `NOT (x > 5)` what is true where `x > 5` is false."""
    truth = True
    if type(formula) is Call and formula.function == "cesql.not":
        (formula,) = formula.operands
        truth = False
    if type(formula) is not Call or type(formula.operands[0]) is not Variable:
        raise _ForTheLongWay
    if not truth and compares_a_number(formula):
        return Call(NUMBER_COMPARISONS[formula.function], formula.operands), True
    return formula, truth


def _name(told: _Told) -> str:
    first = told[0].operands[0]
    assert type(first) is Variable
    return first.name


def _true(told: _Told, together: bool) -> _Alternatives:
    """The values of an attribute with which a condition is true, and what is asked of them."""
    condition, truth = told
    if compares_a_number(condition):
        number = condition.operands[1]
        assert type(number) is Constant
        assert type(number.value) is int
        values, texts = number_values(condition.function, number.value)
        residual = Residual(condition)
        return [(values | texts, residual)] if together else [(values, None), (texts, residual)]
    found = _leaf(condition)
    return [(_values(found.true if truth else found.false), None)]


def _defined(told: _Told, together: bool) -> _Alternatives:
    """The values with which it is true or false, and what is asked of them."""
    if compares_a_number(told[0]):
        residual = _is_integer(_name(told))
        return [(_CAST, residual)] if together else [(INTEGERS, None), (STRINGS, residual)]
    values = _values(_leaf(told[0]).defined)
    if values.absent:
        raise _ForTheLongWay
    return [(values, None)]


def _is_integer(name: str) -> Residual:
    return Residual(Call("cesql.defined", (Call("cesql.int", (Variable(name),)),)))


def _leaf(condition: Call) -> Leaf:
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
