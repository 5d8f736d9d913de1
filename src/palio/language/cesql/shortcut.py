"""The short way from a formula to conjunctions: attributes compared with constants, joined by AND.

    type = 'shop.order' AND hop < 5 AND subject IN ('a', 'b')

Each comparison allows one set of values, or two where a number is compared: what is true as it is, and the
strings that a residual has to be asked about. All means the same as `compiling` would make of it, which takes
ten times as long: that is what expressions cost that have an OR in them. Anything else is left to it, and so is
what nothing satisfies, for it says why.

What is said beside a residual lies within what the residual implies, so that nothing has to be worked out. The
conjunctions are disjoint, as the two sets of a comparison are, and no two have the same residuals: so nothing
can be simplified either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from palio.language.cesql.plain import NUMBER_COMPARISONS, leaf, number_constraints
from palio.model.conjunction import Conjunction
from palio.model.errors import FilterTooLarge
from palio.model.expression import Condition
from palio.model.formulas.formula import Call, Constant, Formula, Variable
from palio.model.formulas.residual import MAX_RESIDUALS, Residual
from palio.model.normal import in_order
from palio.model.valueset import ValueSet, union

# Comparisons of numbers whose strings are told from their integers; each one doubles the conjunctions.
MAX_TOLD_APART = 2

_Alternatives: TypeAlias = "list[tuple[ValueSet, Residual | None]]"
_Box: TypeAlias = "tuple[dict[str, ValueSet], tuple[Residual, ...]]"


def short(formula: Formula) -> tuple[Conjunction, ...] | None:
    """The conjunctions of a formula, if it is of this shape and something can satisfy it."""
    joined = type(formula) is Call and formula.function == "cesql.and"
    conditions = [_without_not(one) for one in (formula.operands if joined else (formula,))]  # type: ignore[union-attr]
    numbers = sum(map(compares_a_number, conditions))
    if numbers > MAX_RESIDUALS:
        return None
    boxes: list[_Box] = [({}, ())]
    for condition in conditions:
        if type(condition) is not Call or type(condition.operands[0]) is not Variable:
            return None
        alternatives = _alternatives(condition, numbers > MAX_TOLD_APART)
        if alternatives is None:
            return None
        try:
            boxes = list(_narrowed(boxes, condition.operands[0].name, alternatives))
        except FilterTooLarge:  # several patterns of one attribute
            return None
    return in_order([Conjunction.of(*box) for box in boxes]) or None


def _narrowed(boxes: list[_Box], name: str, alternatives: _Alternatives) -> Iterator[_Box]:
    for sides, residuals in boxes:
        before = sides.get(name)
        for values, residual in alternatives:
            both = values if before is None else before & values
            if not both.is_empty():
                yield {**sides, name: both}, residuals if residual is None else (*residuals, residual)


def compares_a_number(formula: Formula) -> bool:
    if type(formula) is not Call or formula.function not in NUMBER_COMPARISONS:
        return False
    return any(type(operand) is Constant and type(operand.value) is int for operand in formula.operands)


def _without_not(condition: Formula) -> Formula:
    """Of `NOT (x > 5)` what is true where `x > 5` is false."""
    if type(condition) is Call and condition.function == "cesql.not":
        (inner,) = condition.operands
        if type(inner) is Call and inner.function in NUMBER_COMPARISONS:
            return Call(NUMBER_COMPARISONS[inner.function], inner.operands)
    return condition


def _alternatives(condition: Call, together: bool) -> _Alternatives | None:
    """The values of an attribute with which a condition is true, and what is asked of them."""
    if not compares_a_number(condition):
        found = leaf(condition, together=together)
        if found is None or type(found.true) is not Condition:
            return None
        return [(found.true.constraint.values(), None)]
    number = condition.operands[1]
    assert type(number) is Constant
    assert type(number.value) is int
    plain, strings = number_constraints(condition.function, number.value)
    values, texts = union(one.values() for one in plain), strings.values()
    if together:
        return [(values | texts, Residual(condition))]
    return [(values, None), (texts, Residual(condition))]
