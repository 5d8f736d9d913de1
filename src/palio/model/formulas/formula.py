"""A formula: constants, attributes of an event, and functions of these.

What it comes to is a value, or `UNKNOWN`, or a `Failed`. Unknown is what is absent, and what cannot be said
for that reason; of most functions an unknown operand makes an unknown result, as in SQL. A `Failed` is for
languages whose mistakes are values that spread. Neither is true.

Whatever is called is looked up by its name, in the one table that `functions` has; of equal formulas the bytes,
the text and the hash are equal, and the integer 1, the float 1.0 and `true` are three different constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from palio.model.values import Scalar

UNKNOWN = None
"""What is absent, or follows from it: as in `value_of(name)`, and SQL's null."""


class Failed(msgspec.Struct, frozen=True, gc=False):
    """What could not be computed; `kind` says why, in the words of the language that has such values.

    `instead` is the value that the language goes on with, where it has one for those who want it.
    """

    kind: str
    instead: Any = None


# Trees without cycles: the garbage collector need not look at them.
class Constant(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A value that is written in the formula."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


class Variable(msgspec.Struct, frozen=True, gc=False):
    """The value of an attribute."""

    name: str


class Call(msgspec.Struct, frozen=True, gc=False):
    """A function of operands; `function` is its name in the table."""

    function: str
    operands: tuple[Formula, ...]


Formula: TypeAlias = "Constant | Variable | Call"


def parts(formula: Formula) -> Iterator[Formula]:
    """The formula and all that it is made of. Needs no depth."""
    waiting: list[Formula] = [formula]
    while waiting:
        one = waiting.pop()
        yield one
        if type(one) is Call:
            waiting += one.operands


def variables(formula: Formula) -> frozenset[str]:
    """The attributes that it speaks of."""
    return frozenset(part.name for part in parts(formula) if type(part) is Variable)


def depth(formula: Formula) -> int:
    """How deep calls stand within each other; found without going that deep."""
    deepest, level = 0, [formula]
    while level:
        deepest += 1
        level = [operand for one in level if type(one) is Call for operand in one.operands]
    return deepest
