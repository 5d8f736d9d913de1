"""Arithmetic over the numbers of a run, as experiments write it: `update_cost / subscribers`.

Only names, numbers, `+ - * / **`, parentheses and a few functions; nothing else of Python is in reach. All of
it is calculated in floats. What has no value (a division by zero, a logarithm of nothing) is not a number,
which all statistics leave out: a network without deliveries has no mean latency.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import InitVar

from palio.model.errors import PalioError

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "sqrt": math.sqrt,
    "min": min,
    "max": max,
}


class InvalidFormula(PalioError):
    """A formula that cannot be read."""

    text: str
    reason: InitVar[str]
    sentence = "The formula {text!r} cannot be used: {reason}"


class Formula:
    """A formula, checked when it is made; afterwards it has a value for every row with its names."""

    __slots__ = ("_body", "names", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._body = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError):
            raise InvalidFormula(text, "it is no arithmetic.") from None
        self.names: set[str] = set()
        self._check(self._body)

    def __reduce__(self) -> tuple[type[Formula], tuple[str]]:
        return Formula, (self.text,)

    def __call__(self, values: Mapping[str, object]) -> float:
        """The value for these numbers; not a number where there is none."""
        try:
            value = _value(self._body, values)
            # A negative number to the power of a fraction is complex: no value either.
            return value if isinstance(value, float) else math.nan
        except (ZeroDivisionError, ValueError, OverflowError):
            return math.nan

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                pass
            case ast.Name(id=name):
                self.names.add(name)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                self._check(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                self._check(left)
                self._check(right)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                if not arguments:
                    raise InvalidFormula(self.text, f"{name} needs a number.")
                for argument in arguments:
                    self._check(argument)
            case ast.Call(func=ast.Name(id=name)):
                raise InvalidFormula(self.text, f"there is no function {name!r}; use {', '.join(_FUNCTIONS)}.")
            case _:
                raise InvalidFormula(
                    self.text, "only names, numbers, + - * / **, parentheses and functions belong into it."
                )


def _value(node: ast.expr, values: Mapping[str, object]) -> float:
    match node:
        case ast.Constant(value=number):
            return float(number)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return float(values[name])  # type: ignore[arg-type]
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, values)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            # A single number is its own smallest and largest.
            numbers = [_value(argument, values) for argument in arguments]
            if name in ("min", "max"):
                return float(_FUNCTIONS[name](numbers))
            return float(_FUNCTIONS[name](*numbers))
        case _:
            raise AssertionError("a formula is checked when it is made")
