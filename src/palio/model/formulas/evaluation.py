"""What a formula comes to for an event, and what it says about attributes wherever it is true.

`evaluate` cannot fail. Its cost is bounded by what is bounded before: how many calls a formula has
(`MAX_PARTS`), and how long a value may be, which is seen to behind each call. So the results of calls that
double a text over and over are unknown long before they are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from palio.model.effort import spend
from palio.model.formulas.formula import UNKNOWN, Call, Constant, Formula, Variable
from palio.model.formulas.function import TRUE
from palio.model.formulas.functions import FUNCTIONS
from palio.model.values import INT_MAX, INT_MIN, KIND_OF_TYPE, MAX_STRING_BYTES, Value
from palio.model.valueset import PRESENT, ValueSet

# What following a call counts for a meter.
_STEPS = 50


def evaluate(formula: Formula, value_of: Callable[[str], Value | None]) -> Any:
    """The value of a formula, `UNKNOWN` or a `Failed`; `value_of` gives an attribute, None if it is absent."""
    if type(formula) is Variable:
        return value_of(formula.name)
    if type(formula) is Constant:
        return formula.value
    operands = [evaluate(operand, value_of) for operand in formula.operands]  # type: ignore[union-attr]
    return _bounded(FUNCTIONS[formula.function].evaluate(*operands))  # type: ignore[union-attr]


def _bounded(value: Any) -> Any:
    """What a notification could have as a value; anything else is unknown."""
    kind = type(value)
    if kind is int:
        return value if INT_MIN <= value <= INT_MAX else UNKNOWN
    if kind is float:
        return value + 0.0 if math.isfinite(value) else UNKNOWN  # there is one zero
    if kind is str and len(value) * 4 > MAX_STRING_BYTES:
        return value if len(value.encode()) <= MAX_STRING_BYTES else UNKNOWN
    if kind is bytes and len(value) > MAX_STRING_BYTES:
        return UNKNOWN
    return value


def possible(formula: Formula) -> ValueSet:
    """What it may come to where that is a value."""
    if type(formula) is Constant:
        return PRESENT.only(KIND_OF_TYPE[type(formula.value)])  # type: ignore[arg-type]
    return FUNCTIONS[formula.function].gives if type(formula) is Call else PRESENT


def implied(formula: Formula, wanted: ValueSet = TRUE) -> dict[str, ValueSet] | None:
    """What attributes must be where the formula comes to something wanted; None if it never does.

    These are necessary conditions. Attributes of which nothing is known are not named.
    """
    spend(_STEPS)
    if type(formula) is Variable:
        return {formula.name: wanted}
    if type(formula) is Constant:
        return {} if formula.value in wanted else None
    assert type(formula) is Call
    function = FUNCTIONS[formula.function]
    if not function.gives.overlaps(wanted):
        return None
    if function.narrow is None:
        return {}
    alternatives = function.narrow([possible(operand) for operand in formula.operands], wanted)
    if alternatives is None:
        return {}
    found: dict[str, ValueSet] | None = None
    for demands in alternatives:
        sides = _together(formula.operands, demands)
        if sides is None:
            continue
        if found is None:
            found = sides
        else:
            found = {name: found[name] | side for name, side in sides.items() if name in found}
    return found


def _together(
    operands: tuple[Formula, ...], demands: tuple[ValueSet | None, ...]
) -> dict[str, ValueSet] | None:
    """What attributes must be for all operands to be what is demanded of them; None if they cannot."""
    sides: dict[str, ValueSet] = {}
    for operand, demanded in zip(operands, demands, strict=True):
        if demanded is None:
            continue
        found = implied(operand, demanded & possible(operand))
        if found is None:
            return None
        for name, side in found.items():
            sides[name] = both = sides[name] & side if name in sides else side
            if both.is_empty():
                return None
    return sides
