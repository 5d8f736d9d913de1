"""`Function`: what a formula can call, and what follows for its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from palio.model.values import Kind
from palio.model.valueset import PRESENT, ValueSet

# For each operand the set that it must be in, None where nothing is known of it; of several such one must hold.
# None: nothing is known at all.
Demands: TypeAlias = "list[tuple[ValueSet | None, ...]] | None"
Narrowing: TypeAlias = Callable[[Sequence[ValueSet], ValueSet], Demands]

NUMBERS = PRESENT.only(Kind.INT, Kind.FLOAT)
STRINGS = PRESENT.only(Kind.STRING)
BOOLS = PRESENT.only(Kind.BOOL)
INTEGERS = PRESENT.only(Kind.INT)
TRUE = ValueSet.of({Kind.BOOL: (True,)})


class Function(msgspec.Struct, frozen=True):
    """What it does, with how many operands, and what that says about attributes.

    `evaluate` gets values, `UNKNOWN` and `Failed`s, and gives one of these. It cannot raise, whatever it
    gets, and takes no more than some steps for each character of its operands; `evaluation` bounds what it
    gives.

    `gives` is what it may come to where that is a value. `narrow` gets what each operand may be, and what the
    result is to be: it says what the operands must be for that. An operand that must be in a set must be a
    value.
    """

    evaluate: Callable[..., Any]
    least: int
    most: int
    gives: ValueSet = PRESENT
    narrow: Narrowing | None = None


def demanding(*sets: ValueSet) -> Narrowing:
    """For a function of values only: each operand must be in its set; the last set is for all that follow."""

    def narrow(operands: Sequence[ValueSet], _wanted: ValueSet) -> Demands:
        return [tuple([sets[min(place, len(sets) - 1)] for place in range(len(operands))])]

    return narrow
