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
from itertools import repeat

from palio.language.cesql.conditions import (
    MAX_TOLD_APART,
    Alternatives,
    AttributeTest,
    Box,
    ForTheLongWay,
    defined_values,
    is_integer,
    told_of,
    true_values,
)
from palio.model.conjunction import Conjunction
from palio.model.errors import FilterTooLarge
from palio.model.formulas.formula import Call, Formula, Variable
from palio.model.formulas.residual import MAX_RESIDUALS
from palio.model.normal import in_order
from palio.model.valueset import ANYTHING, EMPTY

# Conditions joined by OR. Each makes one conjunction or some, and each of these is told from all others.
MAX_JOINED_BY_OR = 8
# With several OR, they multiply.
MAX_BOXES = 16


def short(formula: Formula) -> tuple[Conjunction, ...] | None:
    """The conjunctions of a formula, if it is of this shape and something can satisfy it."""
    if type(formula) is Variable:  # alone it is not cast
        return None
    try:
        boxes = _boxes(_operands(formula, "cesql.and"))
    except (ForTheLongWay, FilterTooLarge):  # of the latter there are several patterns of one attribute
        return None
    if len(boxes) == 1:
        return (Conjunction.of(*boxes[0]),)
    return in_order([Conjunction.of(*box) for box in boxes]) or None


def _operands(formula: Formula, joint: str) -> tuple[Formula, ...]:
    return formula.operands if type(formula) is Call and formula.function == joint else (formula,)


# Boxes


def _boxes(operands: tuple[Formula, ...]) -> list[Box]:
    groups = [[told_of(one) for one in _operands(operand, "cesql.or")] for operand in operands]
    numbers = sum([told.number is not None for group in groups for told in group])
    if numbers > MAX_RESIDUALS:
        raise ForTheLongWay
    together = numbers > MAX_TOLD_APART
    boxes: list[Box] = [({}, ())]
    ranges: dict[str, Alternatives] = {}
    for group in groups:
        if len(group) == 1:
            (told,) = group
            if told.number is None:
                boxes = _narrowed(boxes, told.name, true_values(told, together))
            elif told.name in ranges:
                ranges[told.name] = _both(ranges[told.name], true_values(told, together))
            else:
                ranges[told.name] = true_values(told, together)
    for name, alternatives in ranges.items():
        boxes = _narrowed(boxes, name, alternatives)
    for group in groups:
        if len(group) > 1:
            either = _either(group, together)
            if len(boxes) * len(either) > MAX_BOXES or not all(map(_apart, boxes, repeat(either))):
                raise ForTheLongWay
            boxes = [
                ({**sides, **others}, residuals + more) for sides, residuals in boxes for others, more in either
            ]
    return boxes


def _both(one: Alternatives, other: Alternatives) -> Alternatives:
    """Of comparisons with numbers: integers are told apart from strings alike."""
    pairs = zip(one, other, strict=True)
    return [(left & right, some + more) for (left, some), (right, more) in pairs]


def _apart(box: Box, others: Sequence[Box]) -> bool:
    return not any(name in sides for sides, _ in others for name in box[0])


def _narrowed(boxes: list[Box], name: str, alternatives: Alternatives) -> list[Box]:
    found: list[Box] = []
    for sides, residuals in boxes:
        before = sides.get(name)
        for values, more in alternatives:
            both = values if before is None else before & values
            if not both.is_empty():
                found.append(({**sides, name: both}, residuals + more))
    return found


def _either(group: Sequence[AttributeTest], together: bool) -> list[Box]:
    """One is true, and all before it are defined."""
    if len(group) > MAX_JOINED_BY_OR:
        raise ForTheLongWay
    names = {told.name for told in group}
    if len(names) == 1:
        return (
            _either_number(group, together) if group[0].number is not None else _either_value(group, together)
        )
    if len(names) < len(group):
        raise ForTheLongWay
    found: list[Box] = []
    before: list[Box] = [({}, ())]
    for told in group:
        true, defined = true_values(told, together), defined_values(told, together)
        if any(values.is_empty() for values, _ in true) or true[0][0].includes(defined[0][0]):
            raise ForTheLongWay
        found += _narrowed(before, told.name, true)
        if told is not group[-1]:
            before = _narrowed(before, told.name, defined)
    if len(found) > MAX_BOXES:
        raise ForTheLongWay
    return found


def _either_value(group: Sequence[AttributeTest], together: bool) -> list[Box]:
    """Of conditions on one attribute that sets alone say."""
    if any(told.number is not None for told in group):
        raise ForTheLongWay
    found, before = EMPTY, ANYTHING
    for told in group:
        ((true, _),), ((defined, _),) = true_values(told, together), defined_values(told, together)
        found, before = found | (before & true), before & defined
    if found.is_empty():
        raise ForTheLongWay
    return [({group[0].name: found}, ())]


def _either_number(group: Sequence[AttributeTest], together: bool) -> list[Box]:
    """Of comparisons of one attribute with numbers, which are all defined if one is."""
    if together or len(set(group)) < len(group) or any(told.number is None for told in group):
        raise ForTheLongWay
    name = group[0].name
    plain, found = EMPTY, list[Box]()
    for told in group:
        (values, _), (texts, residuals) = true_values(told, together)
        if values.is_empty():
            raise ForTheLongWay
        plain |= values
        found.append(({name: texts}, (is_integer(name), *residuals) if found else residuals))
    return [({name: plain}, ()), *found]
