"""`Residual`: a condition that no set of values can say, as it stands in expressions and conjunctions.

It holds where its formula comes to `true`; the opposite, which holds everywhere else, is a residual as well:
what is `not` true is false, unknown or failed. Languages with three-valued logic put their NOT into the
formula, or say it otherwise.

Formulas are made by `call`, which keeps them small and alike: what has only constants is computed at once, and
a comparison is `less` or `less_or_equal`, so that `bid > ask` and `ask < bid` are one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeAlias

import msgspec

from palio.model.errors import FilterTooLarge
from palio.model.formulas.evaluation import evaluate
from palio.model.formulas.formula import Call, Constant, Formula, depth, parts
from palio.model.values import KIND_OF_TYPE, Value

# Constants, attributes and calls of one formula. People's have some ten; each costs about a third of a
# microsecond for every event that everything else of the filter lets through.
MAX_PARTS = 256
# Calls within calls: what is computed by recursion stays far below Python's own limit.
MAX_DEPTH = 64
# Of a conjunction.
MAX_RESIDUALS = 16

ValueOf: TypeAlias = Callable[[str], "Value | None"]
_TURNED = {"greater": "less", "greater_or_equal": "less_or_equal"}
_SCALARS = frozenset(KIND_OF_TYPE) - {tuple}


class Residual(msgspec.Struct, frozen=True, gc=False):
    """A formula, and whether it is to be true, or not to be."""

    formula: Formula
    wanted: bool = True

    @property
    def opposite(self) -> Residual:
        return Residual(self.formula, not self.wanted)

    def holds(self, value_of: ValueOf) -> bool:
        """Whether an event satisfies it, of which `value_of` gives the attributes. Cannot fail."""
        return (evaluate(self.formula, value_of) is True) == self.wanted


def call(function: str, *operands: Formula) -> Formula:
    """A function of operands. Raises `FilterTooLarge` where the formula would pass the limits.

    `greater` and `greater_or_equal` can be called, too.
    """
    if function in _TURNED:
        function, operands = _TURNED[function], operands[::-1]
    elif function in ("equal", "unequal") and _order(operands[1]) < _order(operands[0]):
        operands = operands[::-1]
    made = Call(function, operands)
    if all(type(operand) is Constant for operand in operands):
        value = evaluate(made, _nothing)
        if type(value) in _SCALARS:
            return Constant(value)
    check_size(made)
    return made


def _order(operand: Formula) -> tuple[bool, str]:
    return type(operand) is Constant, repr(operand)


def _nothing(_name: str) -> None:
    return None


def check_size(formula: Formula) -> None:
    """Raises `FilterTooLarge` for one that is too large to be computed again and again."""
    size = sum(1 for _ in islice(parts(formula), MAX_PARTS + 1))
    if size > MAX_PARTS:
        raise FilterTooLarge(
            limit=MAX_PARTS, got=size, what="constants, attributes and functions in one formula"
        )
    deep = depth(formula)
    if deep > MAX_DEPTH:
        raise FilterTooLarge(limit=MAX_DEPTH, got=deep, what="functions within each other")


def check_number(residuals: int) -> None:
    """Raises `FilterTooLarge` for a conjunction with more residuals than there may be."""
    if residuals > MAX_RESIDUALS:
        raise FilterTooLarge(limit=MAX_RESIDUALS, got=residuals, what="computed conditions in one conjunction")
