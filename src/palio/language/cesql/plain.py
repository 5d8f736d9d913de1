"""Conditions of CESQL on one attribute and constants, as sets of values.

An attribute is what it is in the event, and is cast: `x = 'v'` is about all values whose text is v, `x = 5`
about the integer, about `true` where that is cast to it, and about the strings that read so, such as '+05'.
These are regular languages, too, but it takes a hundred times as long to make the automaton of one as to read
the condition. So strings that are cast to Integers are left to a residual, where the strings are told apart
from the integers, or for all of them `together`.

Where a pattern of LIKE has letters that no number and no time has, it is about strings alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import msgspec

from palio.model.constraint import Constraint
from palio.model.decision import Tree
from palio.model.errors import InvalidNotification
from palio.model.expression import (
    FALSE,
    TRUE,
    And,
    Condition,
    Expression,
    Not,
    conjunction,
    disjunction,
)
from palio.model.flips import NOTHING, points
from palio.model.formulas.cesql import FUNCTIONS, INTEGER_MAX, INTEGER_MIN, as_boolean, as_integer, as_string
from palio.model.formulas.formula import Call, Constant, Failed, Formula, Variable
from palio.model.formulas.residual import Residual
from palio.model.moments import format_time, parse_time
from palio.model.questions import like_parts
from palio.model.values import INT_MAX, INT_MIN, Kind, check_time
from palio.model.valueset import PRESENT, ValueSet, union

# Where the comparison with a number is true: from, to; and the comparison that is true where it is false.
NUMBER_COMPARISONS = {
    "cesql.less": "cesql.greater_or_equal",
    "cesql.less_or_equal": "cesql.greater",
    "cesql.greater": "cesql.less_or_equal",
    "cesql.greater_or_equal": "cesql.less",
    "cesql.equal": "cesql.unequal",
    "cesql.unequal": "cesql.equal",
}
TURNED = {
    "cesql.less": "cesql.greater",
    "cesql.less_or_equal": "cesql.greater_or_equal",
    "cesql.greater": "cesql.less",
    "cesql.greater_or_equal": "cesql.less_or_equal",
}
_TEXTS = {True: "[tT][rR][uU][eE]", False: "[fF][aA][lL][sS][eE]"}
# What else than letters the texts of values that are no strings have.
_ALPHABETS = {
    Kind.INT: frozenset("-0123456789"),
    Kind.FLOAT: frozenset("+-.0123456789e"),
    Kind.TIME: frozenset("-.0123456789:TZ"),
}

_NO_TEXT = (Kind.BYTES, Kind.LIST)


class Leaf(msgspec.Struct, frozen=True):
    """Where a condition is true, and defined; it is false in the rest, unless `opposite` says where."""

    true: Expression
    defined: Expression
    opposite: Callable[[], Expression] | None = None

    @property
    def false(self) -> Expression:
        return And((self.defined, Not(self.true))) if self.opposite is None else self.opposite()


# What fails in any case.
NEVER = Leaf(FALSE, FALSE, lambda: FALSE)


def leaf(formula: Formula, *, together: bool) -> Leaf | None:
    """The sides of a condition; None if sets of values cannot say it."""
    if type(formula) is not Call:
        return None
    function, operands = formula.function, formula.operands
    first, last = operands[0], operands[-1]
    if function in NUMBER_COMPARISONS:
        if type(last) is Constant:
            return _compared(function, first, last.value, together)
        if type(first) is Constant:
            return _turned(function, first.value, last, together)
    elif function == "cesql.like" and type(last) is Constant:
        name = _attribute(first, "cesql.string")
        return None if name is None else _like(name, str(last.value))
    elif function == "cesql.in" and type(first) is Variable:
        constants = [one.value for one in operands[1:] if type(one) is Constant]
        return _among(first.name, constants) if len(constants) == len(operands) - 1 else None
    elif function == "cesql.exists" and type(first) is Variable:
        name = first.name
        return Leaf(_exists(name), TRUE, lambda: Condition(name, Constraint("absent")))
    return None


def truth(name: str, *, negated: bool) -> Leaf:
    """An attribute where a Boolean is wanted; behind NOT (`negated`) no Integer is taken for one."""
    return Leaf(
        disjunction(_truths(name, True, negated)),
        disjunction([*_truths(name, True, negated), *_truths(name, False, negated)]),
        lambda: disjunction(_truths(name, False, negated)),
    )


@functools.cache
def truth_values(wanted: bool, negated: bool) -> ValueSet:
    """The values that are cast to a Boolean: what `truth` says, as sets."""
    return union([one.values() for one in _cast_to(wanted, negated)]).simplified()


@functools.cache
def castable_values(negated: bool) -> ValueSet:
    """The values that are cast to either Boolean; simplifying them takes a hundred times the reading."""
    return (truth_values(True, negated) | truth_values(False, negated)).simplified()


def are_opposite_truths(one: ValueSet, other: ValueSet) -> bool:
    """Whether no value is in both because one is cast to true and the other one to false."""
    return any(
        (one is truth_values(wanted, some)) and (other is truth_values(not wanted, more))
        for wanted, some, more in product((True, False), repeat=3)
    )


def _compared(function: str, compared: Formula, constant: Any, together: bool) -> Leaf | None:
    if function in TURNED:
        constant = as_integer(constant)
        if isinstance(constant, Failed):
            return NEVER
    equal = function == "cesql.equal"
    if type(constant) is bool:
        name = _attribute(compared, "cesql.bool")
        if name is None:
            return None
        found = truth(name, negated=False)
        return found if equal == constant else Leaf(found.false, found.defined, lambda: found.true)
    if type(constant) is str:
        name = _attribute(compared, "cesql.string")
        if name is None:
            return None
        same = disjunction(_with_texts(name, [constant]))
        if equal:
            return Leaf(same, _exists(name))
        return Leaf(And((_exists(name), Not(same))), _exists(name), lambda: same)
    name = _attribute(compared, "cesql.int")
    return None if name is None else _number(function, name, constant, together)


def _turned(function: str, constant: Any, compared: Formula, together: bool) -> Leaf | None:
    """With the constant on the left, `=` casts it to the type of what is on the right, as IN does."""
    if function in TURNED:
        return _compared(TURNED[function], compared, constant, together)
    if type(compared) is not Variable:
        return None
    found = _among(compared.name, [constant])
    return found if function == "cesql.equal" else Leaf(found.false, found.defined, lambda: found.true)


def _attribute(formula: Formula, cast: str) -> str | None:
    """The attribute that it is, as it is or cast as it would be anyway."""
    if isinstance(formula, Call) and formula.function == cast:
        (formula,) = formula.operands
    return formula.name if isinstance(formula, Variable) else None


# Numbers


def _number(function: str, name: str, number: int, together: bool) -> Leaf:
    return Leaf(
        _where_number(function, name, number, together),
        _where_integer(name, together),
        lambda: _where_number(NUMBER_COMPARISONS[function], name, number, together),
    )


def number_values(function: str, number: int) -> tuple[ValueSet, ValueSet]:
    """Where the comparison of an attribute with a number is true: what `number_constraints` gives, as sets."""
    ranges = _ranges(function, number)
    if len(ranges) == 1 and ranges[0][0] <= ranges[0][1]:  # nearly always
        ((low, high),) = ranges
        ends: tuple[int, ...] = (low, high + 1)
        zero, one = low <= 0 <= high, low <= 1 <= high
    else:
        ends = tuple([end for low, high in ranges if low <= high for end in (low, high + 1)])
        zero, one = (any(low <= truth <= high for low, high in ranges) for truth in (0, 1))
    integers = ValueSet(False, (_TRUTHS[zero, one], ends, *_NOTHING_ELSE))
    return integers, _ENDING[str(number)[-1]] if function == "cesql.equal" else STRINGS


def number_constraints(function: str, number: int) -> tuple[list[Constraint], Constraint]:
    """Where the comparison of an attribute with a number is true: of Integers and Booleans, that it is; of
    strings, where it may be."""
    ranges = _ranges(function, number)
    found = [_range(low, high) for low, high in ranges if low <= high]
    truths = [bool(one) for one in (0, 1) if any(low <= one <= high for low, high in ranges)]
    if len(truths) == 1:
        found.append(Constraint("=", truths[0]))
    elif truths:
        found.append(Constraint("exists", None, Kind.BOOL))
    if function == "cesql.equal":  # a text that is cast to a number ends like it
        return found, Constraint("ends with", str(number)[-1])
    return found, Constraint("exists", None, Kind.STRING)


def _where_number(function: str, name: str, number: int, together: bool) -> Expression:
    plain, strings = number_constraints(function, number)
    residual = Residual(Call(function, (Variable(name), Constant(number))))
    conditions = [Condition(name, one) for one in plain]
    return _with_residual(conditions, Condition(name, strings), residual, together)


def _where_integer(name: str, together: bool) -> Expression:
    found = [_integer(name), _of_kind(name, Kind.BOOL)]
    residual = Residual(Call("cesql.defined", (Call("cesql.int", (Variable(name),)),)))
    return _with_residual(found, _of_kind(name, Kind.STRING), residual, together)


def _with_residual(
    plain: list[Condition], strings: Condition, residual: Residual, together: bool
) -> Expression:
    if together:
        return And((disjunction([*plain, strings]), residual))
    return disjunction([*plain, And((strings, residual))])


def _ranges(function: str, number: int) -> list[tuple[int, int]]:
    match function:
        case "cesql.less":
            return [(INTEGER_MIN, number - 1)]
        case "cesql.less_or_equal":
            return [(INTEGER_MIN, number)]
        case "cesql.greater":
            return [(number + 1, INTEGER_MAX)]
        case "cesql.greater_or_equal":
            return [(number, INTEGER_MAX)]
        case "cesql.equal":
            return [(number, number)]
        case _:
            return [(INTEGER_MIN, number - 1), (number + 1, INTEGER_MAX)]


def _range(low: int, high: int) -> Constraint:
    return Constraint("=", low, Kind.INT) if low == high else Constraint("between", (low, high), Kind.INT)


# What is, or may be, cast to an Integer. A text that is cast to a number ends like it.
INTEGERS = _range(INTEGER_MIN, INTEGER_MAX).values() | PRESENT.only(Kind.BOOL)
STRINGS = PRESENT.only(Kind.STRING)
_NOTHING_ELSE = (NOTHING,) * (len(Kind) - 2)
_TRUTHS = {
    (zero, one): points(Kind.BOOL, [False] * zero + [True] * one)
    for zero in (False, True)
    for one in (False, True)
}
# What can be one of some constants, by whether all of these are cast to Booleans, and to Integers.
_CAST_ALIKE = {
    (booleans, integers): PRESENT.only(
        *[kind for kind in Kind if kind not in (Kind.INT, Kind.BOOL) or (kind is Kind.BOOL and booleans)]
    )
    | (PRESENT.only(Kind.INT) if integers else PRESENT.only(Kind.INT) - INTEGERS)
    for booleans in (False, True)
    for integers in (False, True)
}
_ENDING = {digit: Constraint("ends with", digit).values().simplified() for digit in "0123456789"}


# Texts


def _with_texts(name: str, texts: list[str], *, integers: bool = True) -> list[Expression]:
    """The values that have one of these texts; without `integers`, Booleans and Integers are left out."""
    found: list[Expression] = [_one_of(name, texts)]
    for text in texts:
        found += [Condition(name, one) for one in _others_with_text(text, integers)]
    return found


def text_values(text: str) -> ValueSet:
    """The values that have this text: what `_with_texts` says, as sets."""
    return union([one.values() for one in (Constraint("=", text), *_others_with_text(text, True))])


def _one_of(name: str, texts: list[str]) -> Condition:
    return Condition(name, Constraint("=", texts[0]) if len(texts) == 1 else Constraint("in", tuple(texts)))


def _others_with_text(text: str, integers: bool) -> list[Constraint]:
    """The values with a text that are no strings."""
    if text == "":
        return [Constraint("exists", None, kind) for kind in _NO_TEXT]
    if text in ("true", "false"):
        return [Constraint("=", text == "true")] if integers else []
    if text[0] not in "-0123456789" or (not text[-1].isdecimal() and text[-1] != "Z"):
        return []
    with suppress(ValueError, InvalidNotification):
        moment = check_time(parse_time(text), "$")
        return [Constraint("=", moment)] if format_time(moment) == text else []
    if len(text) > 32:  # longer than any number
        return []
    with suppress(ValueError):
        if str(number := int(text)) == text and INT_MIN <= number <= INT_MAX:
            small = INTEGER_MIN <= number <= INTEGER_MAX
            return [Constraint("=", number, Kind.INT)] if integers or not small else []
    with suppress(ValueError):
        if math.isfinite(real := float(text)) and repr(real + 0.0) == text:
            return [Constraint("=", real, Kind.FLOAT)]
    return []


def _like(name: str, pattern: str) -> Leaf:
    exists, like = _exists(name), FUNCTIONS["cesql.like"].evaluate
    if pattern == "%":
        return Leaf(exists, exists)
    parts = like_parts(pattern)
    literals = {part for part in parts if part}
    found: list[Expression] = [Condition(name, Constraint("like", pattern))]
    others = [_of_kind(name, kind) for kind, alphabet in _ALPHABETS.items() if literals <= alphabet]
    found += [Condition(name, Constraint("=", one)) for one in (True, False) if like(one, pattern)]
    if not parts:
        found += [_of_kind(name, kind) for kind in _NO_TEXT]
    elif others:
        found.append(
            And((disjunction(others), Residual(Call("cesql.like", (Variable(name), Constant(pattern))))))
        )
    return Leaf(disjunction(found), exists)


def _among(name: str, constants: list[Any]) -> Leaf:
    """`x IN (…)`: the constants are cast to the type of x, and it is a mistake if one of them cannot be."""
    texts = list(dict.fromkeys(map(as_string, constants)))
    true = _with_texts(name, texts, integers=False)
    defined: list[Expression] = [_exists(name)]
    booleans = [as_boolean(one) for one in constants]
    if any(isinstance(one, Failed) for one in booleans):
        defined.append(Not(_of_kind(name, Kind.BOOL)))
    else:
        true += [Condition(name, Constraint("=", one)) for one in set(booleans)]
    integers = [as_integer(one) for one in constants]
    if any(isinstance(one, Failed) for one in integers):
        defined.append(Not(_integer(name)))
    else:
        true += [Condition(name, Constraint("=", one, Kind.INT)) for one in dict.fromkeys(integers)]
    return Leaf(disjunction(true), conjunction(defined))


def among_values(constants: tuple[Any, ...]) -> tuple[ValueSet, ValueSet]:
    """Where an attribute is one of some constants, and where that comes to anything: what `_among` says."""
    texts = list(dict.fromkeys(map(as_string, constants)))
    parts: list[Tree] = [NOTHING] * len(Kind)
    parts[Kind.STRING] = points(Kind.STRING, texts)
    booleans, integers = list(map(as_boolean, constants)), list(map(as_integer, constants))
    are_booleans = not any(isinstance(one, Failed) for one in booleans)
    are_integers = not any(isinstance(one, Failed) for one in integers)
    if are_booleans:
        parts[Kind.BOOL] = points(Kind.BOOL, booleans)
    if are_integers:
        parts[Kind.INT] = points(Kind.INT, integers)
    found = ValueSet(False, tuple(parts))
    for text in texts:
        for one in _others_with_text(text, False):
            found |= one.values()
    return found, _CAST_ALIKE[are_booleans, are_integers]


# Parts


def _truths(name: str, wanted: bool, negated: bool) -> list[Expression]:
    return [Condition(name, constraint) for constraint in _cast_to(wanted, negated)]


def _cast_to(wanted: bool, negated: bool) -> list[Constraint]:
    """The values that are cast to a Boolean."""
    constraints = [Constraint("=", wanted), Constraint("regex", _TEXTS[wanted])]
    if not negated:
        ranges = [(INTEGER_MIN, -1), (1, INTEGER_MAX)] if wanted else [(0, 0)]
        constraints += [_range(low, high) for low, high in ranges]
    return constraints


def _exists(name: str) -> Condition:
    return Condition(name, Constraint("exists"))


def _of_kind(name: str, kind: Kind) -> Condition:
    return Condition(name, Constraint("exists", None, kind))


def _integer(name: str) -> Condition:
    return Condition(name, _range(INTEGER_MIN, INTEGER_MAX))
