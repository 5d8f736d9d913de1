"""What a step compares with when the other side is no constant: attributes of earlier events, and sums over
them.

`price > A.price * 1.1` is a condition like any other whose operand is such a `Computed`; its text is its
`repr`, as for every constant. `sum(A.price) > 100` has no attribute of its own event, and is a `Comparison`.
What cannot be computed (an absent attribute, a text times two, a division by zero) makes its comparison false,
in the same way in which a comparison with an absent attribute is false.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from palio.model.expression import Always, And, Condition, Expression, Not, Or, name_text
from palio.model.formulas.residual import Residual
from palio.model.values import KIND_OF_TYPE, Kind, Value

# The attributes of the events that a step can speak of, by the name of their step and in their order. Its own
# event is the last of its own step.
Events: TypeAlias = "Mapping[str, Sequence[Mapping[str, Value]]]"

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
        there = events.get(self.step)
        return there[-1].get(self.attribute) if there else None

    def __repr__(self) -> str:
        return f"{self.step}.{name_text(self.attribute)}"


class Aggregate(msgspec.Struct, frozen=True, gc=False):
    """A figure over all earlier events of a step: how many there are, or of one of their attributes.

    `own` says that it is about the step itself: then its own event, which is the last, is not among them.
    Events without the attribute do not count, nor, for a sum or an average, those in which it is no number. Of
    nothing, the sum and the count are 0, and there is no average, least, greatest, first or last.
    """

    function: str
    step: str
    attribute: str | None
    own: bool = False

    def of(self, events: Events) -> Value | None:
        there = events.get(self.step, ())
        earlier = there[:-1] if self.own else there
        if self.attribute is None:
            return len(earlier)
        values = [event[self.attribute] for event in earlier if self.attribute in event]
        if self.function == "count":
            return len(values)
        if self.function in ("sum", "avg"):
            return _summed([value for value in values if type(value) in (int, float)], self.function)
        if not values:
            return None
        if self.function in ("first", "last"):
            return values[0 if self.function == "first" else -1]
        best = values[0]
        for value in values[1:]:
            if _compare("<" if self.function == "min" else ">", value, best):
                best = value
        return best

    def __repr__(self) -> str:
        about = self.step if self.attribute is None else repr(Reference(self.step, self.attribute))
        return f"{self.function}({about})"


def _summed(numbers: list[Any], function: str) -> int | float | None:
    if function == "avg" and not numbers:
        return None
    try:
        found: int | float = sum(numbers) if function == "sum" else sum(numbers) / len(numbers)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


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


Computed: TypeAlias = "Number | Reference | Aggregate | Arithmetic"
COMPUTED = (Number, Reference, Aggregate, Arithmetic)
AGGREGATES = frozenset(("count", "sum", "avg", "min", "max", "first", "last"))


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """A comparison that does not begin with an attribute of the step's own event."""

    left: Computed
    operator: str
    right: Computed

    def __repr__(self) -> str:
        return f"{self.left!r} {self.operator} {self.right!r}"


# What a step's own event is compared by.
Guard: TypeAlias = "Expression | Comparison"


def references(computed: Computed) -> Iterator[Reference]:
    """What it speaks of; a count of events speaks of no attribute, whose name is empty then."""
    match computed:
        case Reference():
            yield computed
        case Aggregate(_, step, attribute):
            yield Reference(step, attribute or "")
        case Arithmetic(_, left, right):
            yield from references(left)
            yield from references(right)


def conditions(guard: Guard) -> Iterator[Condition | Comparison]:
    """All conditions of an expression, plain and computed."""
    match guard:
        case Condition() | Comparison():
            yield guard
        case Not(operand):
            yield from conditions(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from conditions(operand)


def is_computed(condition: Condition | Comparison) -> bool:
    return isinstance(condition, Comparison) or isinstance(condition.constraint.operand, COMPUTED)


def computed_references(guard: Guard) -> Iterator[Reference]:
    """All references to events in an expression."""
    for condition in conditions(guard):
        if isinstance(condition, Comparison):
            yield from references(condition.left)
            yield from references(condition.right)
        elif is_computed(condition):
            yield from references(condition.constraint.operand)


def compile_guard(guard: Guard) -> Callable[[Mapping[str, Value], Events], bool]:
    """A function of an event's own attributes and of the earlier events that says whether the guard holds."""
    match guard:
        case Comparison(left, sign, right):
            return lambda _own, events: _compare(sign, left.of(events), right.of(events))
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
        case Residual():
            return lambda own, _events: guard.holds(own.get)
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


def flattened(guard: Any) -> Any:
    """The same without an `and` directly in an `and`, nor an `or` in an `or`: what its text reads back to."""
    match guard:
        case Not(operand):
            return Not(flattened(operand))
        case And(operands) | Or(operands):
            flat: list[Any] = []
            for operand in map(flattened, operands):
                flat += operand.operands if type(operand) is type(guard) else [operand]
            return type(guard)(tuple(flat))
        case _:
            return guard
