"""Arithmetic: numbers, and nothing else.

Integers stay integers, and a result that does not fit into 64 bits is unknown; with a float among the
operands the result is a float, and unknown where it is not finite. `/` always divides as floats do, so that 5
/ 2 is 2.5; `%` has the sign of what is divided, as in C, Java and SQL. Dividing by zero is unknown, and so is
everything with what is no number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from palio.model.formulas.formula import UNKNOWN
from palio.model.formulas.function import INTEGERS, NUMBERS, Function, demanding

_NUMBERS = (int, float)


def _joining(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def evaluate(left: Any, right: Any) -> Any:
        if type(left) not in _NUMBERS or type(right) not in _NUMBERS:
            return UNKNOWN
        try:
            return compute(left, right)
        except (ZeroDivisionError, OverflowError, ValueError):
            return UNKNOWN

    return evaluate


def _of_one(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda number: compute(number) if type(number) in _NUMBERS else UNKNOWN


def _remainder(left: Any, right: Any) -> Any:
    if type(left) is int and type(right) is int:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return math.fmod(left, right)


def _rounded(number: int | float) -> int:
    """To the nearest integer, halves away from zero."""
    if type(number) is int:
        return number
    whole, part = math.trunc(number), math.fmod(number, 1.0)
    return whole + (1 if part >= 0.5 else -1 if part <= -0.5 else 0)


def _two(compute: Callable[[Any, Any], Any]) -> Function:
    return Function(_joining(compute), 2, 2, NUMBERS, demanding(NUMBERS))


def _one(compute: Callable[[Any], Any], gives: Any = NUMBERS) -> Function:
    return Function(_of_one(compute), 1, 1, gives, demanding(NUMBERS))


FUNCTIONS = {
    "add": _two(lambda left, right: left + right),
    "subtract": _two(lambda left, right: left - right),
    "multiply": _two(lambda left, right: left * right),
    "divide": _two(lambda left, right: left / right),
    "remainder": _two(_remainder),
    "negate": _one(lambda number: -number),
    "abs": _one(abs),
    "floor": _one(math.floor, INTEGERS),
    "ceil": _one(math.ceil, INTEGERS),
    "round": _one(_rounded, INTEGERS),
}
