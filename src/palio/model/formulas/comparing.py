"""Comparisons of two computed values, which mean what they mean with a constant.

Numbers are compared exactly, across ints and floats; everything else only with its own kind, and lists with
nothing. What cannot be compared is unknown, as is what has an unknown operand; only `!=` is true of values of
different kinds. `>` and `>=` are `less` and `less_or_equal` the other way round.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from palio.model.formulas.formula import UNKNOWN, Failed
from palio.model.formulas.function import BOOLS, NUMBERS, Demands, Function, demanding
from palio.model.values import KIND_OF_TYPE, Kind
from palio.model.valueset import PRESENT, ValueSet, union

_INT, _FLOAT, _LIST = int(Kind.INT), int(Kind.FLOAT), int(Kind.LIST)
_COMPARABLE = [NUMBERS, *[PRESENT.only(kind) for kind in (Kind.BOOL, Kind.STRING, Kind.TIME, Kind.BYTES)]]


def _kind(value: Any) -> int:
    kind = KIND_OF_TYPE[type(value)]
    return _INT if kind == _FLOAT else kind


def _alike(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def evaluate(left: Any, right: Any) -> bool | None:
        if left is UNKNOWN or right is UNKNOWN or type(left) is Failed or type(right) is Failed:
            return UNKNOWN
        kind = _kind(left)
        return compare(left, right) if kind == _kind(right) != _LIST else UNKNOWN

    return evaluate


def _unequal(left: Any, right: Any) -> bool | None:
    if left is UNKNOWN or right is UNKNOWN or type(left) is Failed or type(right) is Failed:
        return UNKNOWN
    kind = _kind(left)
    if kind != _kind(right):
        return True
    return UNKNOWN if kind == _LIST else bool(left != right)


def comparable(values: ValueSet) -> ValueSet:
    """What can be compared with something of a set."""
    return union(
        [kinds for kinds in _COMPARABLE if any(a and b for a, b in zip(kinds.parts, values.parts, strict=True))]
    )


def _narrow(operands: Sequence[ValueSet], _wanted: ValueSet) -> Demands:
    left, right = operands
    return [(comparable(right), comparable(left))]


FUNCTIONS = {
    "less": Function(_alike(operator.lt), 2, 2, BOOLS, _narrow),
    "less_or_equal": Function(_alike(operator.le), 2, 2, BOOLS, _narrow),
    "equal": Function(_alike(operator.eq), 2, 2, BOOLS, _narrow),
    "unequal": Function(_unequal, 2, 2, BOOLS, demanding(PRESENT)),
}
