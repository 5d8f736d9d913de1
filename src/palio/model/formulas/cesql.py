"""What CloudEvents SQL (CESQL 1.0) computes with, as functions of formulas.

Values are Strings, Integers of 32 bits and Booleans. An attribute of an event is one of these if it can be;
anything else is a String: a time as RFC 3339 has it in UTC, any other number as JSON has it. A list and bytes,
which no CloudEvent can have in an attribute, are the empty String.

What goes wrong is a `Failed` with the name that the language gives it, and with the value that the language
goes on with: the zero value of what the operator or function gives, unless it says otherwise. The first one
spreads. So an event is selected if all comes to true and nothing failed. AND and OR do not look at what stands
behind the operand that decides: computing it does no harm, as nothing here has an effect.

Operands are cast as the language says, by its own rules: `'5' + 3` is 8. Of NOT its conformance suite demands
that an Integer is a mistake; elsewhere an Integer is a Boolean by being 0 or not.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from palio.model.formulas.formula import UNKNOWN, Failed
from palio.model.formulas.function import (
    BOOLS,
    INTEGERS,
    STRINGS,
    TRUE,
    Demands,
    Function,
    Narrowing,
    demanding,
)
from palio.model.moments import format_time
from palio.model.questions import like_parts
from palio.model.texts import TextMistake
from palio.model.values import MAX_STRING_BYTES, Kind
from palio.model.valueset import PRESENT, ValueSet, union

INTEGER_MIN, INTEGER_MAX = -(2**31), 2**31 - 1
# Of a call; the same as the constants and attributes that a formula may have in all.
MAX_OPERANDS = 256
# Patterns that are kept to be asked again; each has some hundred bytes.
_MAX_REMEMBERED = 256

_INTEGER_TEXT = re.compile(r"([+-]?)0*([0-9]{1,10})", re.ASCII)
_BOOLEAN_TEXTS = {"true": True, "false": False}
# Unicode's White_Space; Python strips some control characters beside.
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

_MISSING, _CAST, _MATH, _FUNCTION = (
    Failed(kind) for kind in ("missingAttribute", "cast", "math", "functionEvaluation")
)

Cast = Callable[[Any], Any]


# Values and casts. Each takes what `read` gives, and gives a value or a `Failed`.


def read(value: Any) -> Any:
    """An attribute's value, or what a function gave, as a value of the language, or a `Failed`."""
    kind = type(value)
    if kind is str or kind is bool or kind is Failed:
        return value
    if kind is int:
        return value if INTEGER_MIN <= value <= INTEGER_MAX else str(value)
    if value is UNKNOWN:
        return _MISSING
    if kind is float:
        return repr(value + 0.0)
    return format_time(value) if kind is datetime else ""


def as_string(value: Any) -> Any:
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    return str(value) if kind is int else value


def as_integer(value: Any) -> Any:
    kind = type(value)
    if kind is bool:
        return int(value)
    if kind is not str:
        return value
    parts = _INTEGER_TEXT.fullmatch(value)
    return _CAST if parts is None else _fitting(int(parts[1] + parts[2]), _CAST)


def as_boolean(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return value != 0
    return _BOOLEAN_TEXTS.get(value.lower(), _CAST) if kind is str else value


_CASTS: dict[type, Cast] = {str: as_string, int: as_integer, bool: as_boolean}
_ZERO = {str: "", int: 0, bool: False}


def _fitting(number: int, otherwise: Failed) -> int | Failed:
    return number if INTEGER_MIN <= number <= INTEGER_MAX else otherwise


# What operands must be, so that something comes of them


_INTEGERS = ValueSet.of({Kind.INT: (INTEGER_MIN, INTEGER_MAX + 1)})
_TO_INTEGER = union([_INTEGERS, BOOLS, STRINGS])
_CASTABLE = {str: PRESENT, int: _TO_INTEGER, bool: _TO_INTEGER}
_TRUE_ENOUGH = union([TRUE, ValueSet.of({Kind.INT: (INTEGER_MIN, 0, 1, INTEGER_MAX + 1)}), STRINGS])
_FALSE = BOOLS - TRUE
_FALSE_ENOUGH = union([_FALSE, ValueSet.of({Kind.INT: (0, 1)}), STRINGS])


# Functions of operands that are all cast


def _typed(
    gives: type, compute: Callable[..., Any], *takes: type, least: int | None = None, more: type | None = None
) -> Function:
    """A function that casts each operand, and fails with a zero value; `more` are any number more."""
    zero = _ZERO[gives]
    casts = [_CASTS[one] for one in takes]
    rest = None if more is None else _CASTS[more]

    def evaluate(*operands: Any) -> Any:
        values = []
        for place, operand in enumerate(operands):
            cast = casts[place] if place < len(casts) else rest
            value = cast(read(operand))  # type: ignore[misc]
            if type(value) is Failed:
                return Failed(value.kind, zero)
            values.append(value)
        found = compute(*values)
        return Failed(found.kind, zero) if type(found) is Failed and found.instead is None else found

    sets = [_CASTABLE[one] for one in takes] + ([] if more is None else [_CASTABLE[more]])
    most = len(takes) if more is None else MAX_OPERANDS
    kinds = {str: STRINGS, int: INTEGERS, bool: BOOLS}[gives]
    return Function(
        evaluate, len(takes) if least is None else least, most, kinds, demanding(*sets) if sets else None
    )


def _computed(compute: Callable[[int, int], int]) -> Function:
    return _typed(int, lambda left, right: _fitting(compute(left, right), _MATH), int, int)


def _divided(left: int, right: int) -> Any:
    if right == 0:
        return _MATH
    quotient = abs(left) // abs(right)
    return _fitting(quotient if (left < 0) == (right < 0) else -quotient, _MATH)


def _remainder(left: int, right: int) -> Any:
    if right == 0:
        return _MATH
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _absolute(number: int) -> Any:
    return abs(number) if number != INTEGER_MIN else Failed("math", INTEGER_MAX)


def _joined(delimiter: str, *texts: str) -> Any:
    # Counted before it is made.
    size = sum(map(len, texts)) + len(delimiter) * len(texts)
    return delimiter.join(texts) if size <= MAX_STRING_BYTES else _FUNCTION


def _left(text: str, count: int) -> Any:
    return text[:count] if count >= 0 else Failed("functionEvaluation", text)


def _right(text: str, count: int) -> Any:
    if count < 0:
        return Failed("functionEvaluation", text)
    return text[max(len(text) - count, 0) :]


def _substring(text: str, position: int, length: int = INTEGER_MAX) -> Any:
    if length < 0 or not -len(text) <= position <= len(text):
        return _FUNCTION
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + length]


class _Pattern(msgspec.Struct, frozen=True):
    """A pattern of LIKE, whose characters that are no `%` are numbered by the bits of integers.

    A bit of a state says that so many of them are read: all that may have been read are looked at together, so
    that a text takes a step for each of its characters, whatever the pattern. The automata of `questions` take
    none, but time to make, and whoever writes a formula may write one that has too many states for them.
    """

    any: int  # where any character may stand
    letters: dict[str, int]  # where this one may stand, or any
    loops: int  # where a run of any characters may stand
    end: int

    def holds(self, text: str) -> bool:
        state, found = 1, self.end & self.loops
        for character in text:
            if state & found:
                return True
            state = (state & self.letters.get(character, self.any)) << 1 | state & self.loops
            if not state:
                return False
        return bool(state & self.end)


@functools.lru_cache(maxsize=_MAX_REMEMBERED)
def _pattern(written: str) -> _Pattern:
    """Raises `TextMistake`."""
    place = anything = loops = 0
    letters: dict[str, int] = {}
    for part in like_parts(written):
        if part is None:
            loops |= 1 << place
            continue
        if part:
            letters[part] = letters.get(part, 0) | 1 << place
        else:
            anything |= 1 << place
        place += 1
    return _Pattern(anything, {one: places | anything for one, places in letters.items()}, loops, 1 << place)


def _like(text: str, pattern: str) -> Any:
    try:
        return _pattern(pattern).holds(text)
    except TextMistake:  # not what the reader of the language has written
        return Failed("generic")


# Operators that look at the types of their operands


def _same(left: Any, right: Any) -> Any:
    """Whether two values are equal, the left one cast to the type of the right one; or a `Failed`."""
    left, right = read(left), read(right)
    if type(left) is Failed or type(right) is Failed:
        return left if type(left) is Failed else right
    left = _CASTS[type(right)](left)
    return left if type(left) is Failed else left == right


def _equal(left: Any, right: Any) -> Any:
    same = _same(left, right)
    return Failed(same.kind, False) if type(same) is Failed else same


def _unequal(left: Any, right: Any) -> Any:
    same = _same(left, right)
    return Failed(same.kind, False) if type(same) is Failed else not same


def _in(one: Any, *others: Any) -> Any:
    """Each of the others is cast to the type of the one, whichever of them is equal."""
    one = read(one)
    if type(one) is Failed:
        return Failed(one.kind, False)
    cast, found = _CASTS[type(one)], False
    for other in others:
        value = cast(read(other))
        if type(value) is Failed:
            return Failed(value.kind, False)
        found = found or value == one
    return found


def _not(operand: Any) -> Any:
    value = read(operand)
    if type(value) is Failed:
        return Failed(value.kind, False)
    # The cast goes on with false, and NOT with the opposite.
    truth = _CAST if type(value) is int else as_boolean(value)
    return Failed(truth.kind, True) if type(truth) is Failed else not truth


def _deciding(decisive: bool) -> Callable[..., Any]:
    """AND, which false decides, or OR, which true decides: what stands behind does not count."""

    def evaluate(*operands: Any) -> Any:
        for operand in operands:
            value = as_boolean(read(operand))
            if type(value) is Failed:
                return Failed(value.kind, False)
            if value is decisive:
                return decisive
        return not decisive

    return evaluate


# What follows for the operands of logic from what it is to come to. No operand is named by two alternatives:
# what is implied would be looked for twice in it, and twice in each of its operands, and so on.


def _for_truths(if_true: Narrowing, if_false: Narrowing, if_either: Narrowing) -> Narrowing:
    def narrow(operands: Sequence[ValueSet], wanted: ValueSet) -> Demands:
        chosen = if_false if True not in wanted else if_true if False not in wanted else if_either
        return chosen(operands, wanted)

    return narrow


def _one_is(values: ValueSet) -> Narrowing:
    def narrow(operands: Sequence[ValueSet], _wanted: ValueSet) -> Demands:
        count = len(operands)
        return [(*(None,) * place, values, *(None,) * (count - place - 1)) for place in range(count)]

    return narrow


def _first_is(values: ValueSet) -> Narrowing:
    return lambda operands, _wanted: [(values, *(None,) * (len(operands) - 1))]


def _nothing_known(_operands: Sequence[ValueSet], _wanted: ValueSet) -> Demands:
    return None


_BOTH = demanding(PRESENT)

FUNCTIONS = {
    "cesql.negate": _typed(int, lambda number: _fitting(-number, _MATH), int),
    "cesql.add": _computed(operator.add),
    "cesql.subtract": _computed(operator.sub),
    "cesql.multiply": _computed(operator.mul),
    "cesql.divide": _typed(int, _divided, int, int),
    "cesql.remainder": _typed(int, _remainder, int, int),
    "cesql.less": _typed(bool, operator.lt, int, int),
    "cesql.less_or_equal": _typed(bool, operator.le, int, int),
    "cesql.greater": _typed(bool, operator.gt, int, int),
    "cesql.greater_or_equal": _typed(bool, operator.ge, int, int),
    "cesql.equal": Function(_equal, 2, 2, BOOLS, _BOTH),
    "cesql.unequal": Function(_unequal, 2, 2, BOOLS, _BOTH),
    "cesql.in": Function(_in, 2, MAX_OPERANDS, BOOLS, _BOTH),
    # The pattern is in the notation of `questions.like_of`.
    "cesql.like": _typed(bool, _like, str, str),
    "cesql.exists": Function(
        lambda value: value is not UNKNOWN, 1, 1, BOOLS, _for_truths(_BOTH, _nothing_known, _nothing_known)
    ),
    "cesql.not": Function(
        _not,
        1,
        1,
        BOOLS,
        _for_truths(demanding(_FALSE | STRINGS), demanding(TRUE | STRINGS), demanding(BOOLS | STRINGS)),
    ),
    "cesql.and": Function(
        _deciding(False),
        2,
        MAX_OPERANDS,
        BOOLS,
        _for_truths(demanding(_TRUE_ENOUGH), _one_is(_FALSE_ENOUGH), _first_is(_CASTABLE[bool])),
    ),
    "cesql.or": Function(
        _deciding(True),
        2,
        MAX_OPERANDS,
        BOOLS,
        _for_truths(_one_is(_TRUE_ENOUGH), demanding(_FALSE_ENOUGH), _first_is(_CASTABLE[bool])),
    ),
    "cesql.xor": _typed(bool, operator.ne, bool, bool),
    # Whether it comes to a value, and nothing fails.
    "cesql.defined": Function(
        lambda value: type(read(value)) is not Failed,
        1,
        1,
        BOOLS,
        _for_truths(_BOTH, _nothing_known, _nothing_known),
    ),
    "cesql.int": _typed(int, lambda number: number, int),
    "cesql.bool": _typed(bool, lambda truth: truth, bool),
    "cesql.string": _typed(str, lambda text: text, str),
    "cesql.length": _typed(int, len, str),
    "cesql.concat": _typed(str, lambda *texts: _joined("", *texts), least=0, more=str),
    "cesql.concat_ws": _typed(str, _joined, str, more=str),
    "cesql.lower": _typed(str, str.lower, str),
    "cesql.upper": _typed(str, str.upper, str),
    "cesql.trim": _typed(str, lambda text: text.strip(_WHITE_SPACE), str),
    "cesql.left": _typed(str, _left, str, int),
    "cesql.right": _typed(str, _right, str, int),
    "cesql.substring": _typed(str, _substring, str, int, int, least=2),
    "cesql.abs": _typed(int, _absolute, int),
}
