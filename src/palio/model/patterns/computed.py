"""What a step compares with when the other side is no constant: attributes of earlier events, and sums over
them.

`price > A.price * 1.1` is a condition like any other whose operand is such a `Computed`; its text is its
`repr`, as for every constant. What cannot be computed (an absent attribute, a text times two, a division by
zero) makes its comparison false, in the same way in which a comparison with an absent attribute is false.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from palio.model.expression import Always, And, Condition, Expression, Not, Or, name_text
from palio.model.values import KIND_OF_TYPE, Kind, Value

# The attributes of the events that a step can speak of, by the name of their step.
Events: TypeAlias = "Mapping[str, Mapping[str, Value]]"

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WEAK = ("+", "-")


class Number(msgspec.Struct, frozen=True, gc=False):
    """A constant among what is computed."""

    value: int | float

    def of(self, _events: Events) -> Value | None:
        return self.value

    def __repr__(self) -> str:
        return repr(self.value)


class Reference(msgspec.Struct, frozen=True, gc=False):
    """An attribute of the latest event of a step."""

    step: str
    attribute: str

    def of(self, events: Events) -> Value | None:
        event = events.get(self.step)
        return None if event is None else event.get(self.attribute)

    def __repr__(self) -> str:
        return f"{self.step}.{name_text(self.attribute)}"


class Arithmetic(msgspec.Struct, frozen=True, gc=False):
    """Two operands joined by `+`, `-`, `*` or `/`."""

    operator: str
    left: Computed
    right: Computed

    def of(self, events: Events) -> Value | None:
        left, right = self.left.of(events), self.right.of(events)
        if type(left) not in (int, float) or type(right) not in (int, float):
            return None
        try:
            result: int | float = _ARITHMETIC[self.operator](left, right)
        except (ZeroDivisionError, OverflowError):
            return None
        return result if math.isfinite(result) else None

    def __repr__(self) -> str:
        left, right = repr(self.left), repr(self.right)
        if self.operator not in _WEAK and isinstance(self.left, Arithmetic) and self.left.operator in _WEAK:
            left = f"({left})"
        if isinstance(self.right, Arithmetic) and (self.operator not in _WEAK or self.right.operator in _WEAK):
            right = f"({right})"
        return f"{left} {self.operator} {right}"


Computed: TypeAlias = "Number | Reference | Arithmetic"
COMPUTED = (Number, Reference, Arithmetic)


def references(computed: Computed) -> Iterator[Reference]:
    match computed:
        case Reference():
            yield computed
        case Arithmetic(_, left, right):
            yield from references(left)
            yield from references(right)


def conditions(guard: Expression) -> Iterator[Condition]:
    """All conditions of an expression, plain and computed."""
    match guard:
        case Condition():
            yield guard
        case Not(operand):
            yield from conditions(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from conditions(operand)


def is_computed(condition: Condition) -> bool:
    return isinstance(condition.constraint.operand, COMPUTED)


def computed_references(guard: Expression) -> Iterator[Reference]:
    """All references to events in an expression."""
    for condition in conditions(guard):
        if is_computed(condition):
            yield from references(condition.constraint.operand)


def compile_guard(guard: Expression) -> Callable[[Mapping[str, Value], Events], bool]:
    """A function of an event's own attributes and of the earlier events that says whether the guard holds."""
    match guard:
        case Condition(attribute, constraint) if isinstance(constraint.operand, COMPUTED):
            computed, comparison = constraint.operand, constraint.operator
            return lambda own, events: _compare(comparison, own.get(attribute), computed.of(events))
        case Condition(attribute, constraint):
            allowed = constraint.values()
            return lambda own, _events: own.get(attribute) in allowed
        case Not(operand):
            inner = compile_guard(operand)
            return lambda own, events: not inner(own, events)
        case And(operands):
            parts = [compile_guard(operand) for operand in operands]
            return lambda own, events: all(part(own, events) for part in parts)
        case Or(operands):
            parts = [compile_guard(operand) for operand in operands]
            return lambda own, events: any(part(own, events) for part in parts)
        case Always(truth):
            return lambda _own, _events: truth


def _compare(comparison: str, left: Value | None, right: Value | None) -> bool:
    """What the filter language says about a comparison with a constant, for one that was computed."""
    if left is None or right is None:
        return False
    if comparison == "!=":
        return not _compare("=", left, right)
    mine, theirs = KIND_OF_TYPE[type(left)], KIND_OF_TYPE[type(right)]
    numbers = (Kind.INT, Kind.FLOAT)
    if mine == Kind.LIST or not (mine == theirs or (mine in numbers and theirs in numbers)):
        return False
    return _COMPARE[comparison](left, right)


def flattened(guard: Expression) -> Expression:
    """The same without an `and` directly in an `and`, nor an `or` in an `or`: what its text reads back to."""
    match guard:
        case Not(operand):
            return Not(flattened(operand))
        case And(operands) | Or(operands):
            flat: list[Expression] = []
            for operand in map(flattened, operands):
                flat += operand.operands if type(operand) is type(guard) else [operand]
            return type(guard)(tuple(flat))
        case _:
            return guard
