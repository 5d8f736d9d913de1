"""One condition of CESQL as sets of values: what it is true for, and what it comes to anything for.

A comparison with a number allows two sets: what is true as it is, and the strings that a residual has to be
asked about. What is said beside a residual lies within what the residual implies, so that nothing has to be
worked out.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TypeAlias

import msgspec

from palio.language.cesql.plain import (
    INTEGERS,
    NUMBER_COMPARISONS,
    STRINGS,
    TURNED,
    Leaf,
    among_values,
    castable_values,
    leaf,
    number_values,
    text_values,
    truth_values,
)
from palio.model.expression import Always, And, Condition, Expression, Not, Or
from palio.model.formulas.formula import Call, Constant, Formula, Variable
from palio.model.formulas.residual import Residual
from palio.model.values import Scalar
from palio.model.valueset import ANYTHING, EMPTY, PRESENT, ValueSet, union

# Comparisons of numbers whose strings are told from their integers; each one doubles the conjunctions.
MAX_TOLD_APART = 2

Alternatives: TypeAlias = "list[tuple[ValueSet, tuple[Residual, ...]]]"
Box: TypeAlias = "tuple[dict[str, ValueSet], tuple[Residual, ...]]"
# What is cast to an Integer, or may be.
_CAST = INTEGERS | STRINGS


class ForTheLongWay(Exception):
    """Ends the short way."""


class AttributeTest(msgspec.Struct, frozen=True, gc=False):
    """A condition, whether it is to be true or false, and its attribute.

    `number` and `text` are what this is compared with, and `among` the constants of which it is one; or it is
    cast to a Boolean: `cast` says to which one and whether it stands behind NOT.
    """

    condition: Formula
    truth: bool
    name: str
    number: int | None = None
    text: str | None = None
    cast: tuple[bool, bool] | None = None
    among: tuple[Scalar, ...] | None = None


def compares_a_number(formula: Formula) -> bool:
    """Whether strings are left to a residual, where it is about an attribute; `5 = x` casts the constant."""
    if type(formula) is not Call or formula.function not in NUMBER_COMPARISONS:
        return False
    compared = formula.operands if formula.function in TURNED else formula.operands[1:]
    return any(type(operand) is Constant and type(operand.value) is int for operand in compared)


def told_of(formula: Formula, truth: bool = True, negated: bool = False) -> AttributeTest:
    """What says that a condition is true, or false; `negated` says that it stands behind NOT.

    Of `NOT (x > 5)` it is what is true where `x > 5` is false.
    """
    while type(formula) is Call and formula.function == "cesql.not":
        (formula,) = formula.operands
        truth, negated = not truth, True
    if type(formula) is Variable:
        return AttributeTest(formula, True, formula.name, cast=(truth, negated))
    if type(formula) is not Call:
        raise ForTheLongWay
    first, last = formula.operands[0], formula.operands[-1]
    compares, equal = formula.function in NUMBER_COMPARISONS, formula.function == "cesql.equal"
    if type(last) is Variable and type(first) is Constant and compares:
        if formula.function not in TURNED:  # the constant is cast, as in a list of one
            return AttributeTest(formula, truth == equal, last.name, among=(first.value,))
        first, last = last, first
        formula = Call(TURNED[formula.function], (first, last))
    if type(first) is not Variable:
        raise ForTheLongWay
    if formula.function == "cesql.in":
        constants = tuple([one.value for one in formula.operands[1:] if type(one) is Constant])
        if len(constants) < len(formula.operands) - 1:
            raise ForTheLongWay
        return AttributeTest(formula, truth, first.name, among=constants)
    if not compares or type(last) is not Constant:
        return AttributeTest(formula, truth, first.name)
    if type(last.value) is int:
        if not truth:
            formula = Call(NUMBER_COMPARISONS[formula.function], formula.operands)
        return AttributeTest(formula, True, first.name, last.value)
    if type(last.value) is bool and formula.function not in TURNED:
        return AttributeTest(formula, True, first.name, cast=(truth == (last.value == equal), False))
    if type(last.value) is str and formula.function not in TURNED:
        return AttributeTest(formula, truth == equal, first.name, text=last.value)
    return AttributeTest(formula, truth, first.name)


# What it says


def true_values(told: AttributeTest, together: bool) -> Alternatives:
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
    if told.among is not None:
        values, defined = among_values(told.among)
        return [(values if told.truth else defined - values, ())]
    found = _leaf(told.condition)
    return [(_values(found.true if told.truth else found.false), ())]


def defined_values(told: AttributeTest, together: bool) -> Alternatives:
    """The values with which it is true or false, and what is asked of them."""
    if told.number is not None:
        residuals = (is_integer(told.name),)
        return [(_CAST, residuals)] if together else [(INTEGERS, ()), (STRINGS, residuals)]
    if told.cast is not None:
        _, negated = told.cast
        return [(castable_values(negated), ())]
    if told.among is not None:
        return [(among_values(told.among)[1], ())]
    return [(PRESENT if told.text is not None else _values(_leaf(told.condition).defined), ())]


def is_integer(name: str) -> Residual:
    return Residual(Call("cesql.defined", (Call("cesql.int", (Variable(name),)),)))


def _leaf(condition: Formula) -> Leaf:
    found = leaf(condition, together=False)
    if found is None:
        raise ForTheLongWay
    return found


def _values(expression: Expression) -> ValueSet:
    """The set that an expression about one attribute is."""
    match expression:
        case Condition(_, constraint):
            return constraint.values()
        case Always(truth):
            return ANYTHING if truth else EMPTY
        case Not(operand):
            return ~_values(operand)
        case Or(operands):
            return union([_values(one) for one in operands])
        case And(operands):
            return reduce(and_, [_values(one) for one in operands])
        case _:
            raise ForTheLongWay
