"""A pattern as people write it: steps joined by `then`, `or`, `and`, `×` and `not`; and its text.

The text is what `reader` reads back to an equal tree, with no more parentheses than needed. `then` binds
weakest, then `or`, then `and`; `×` and `not` stand before what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from palio.model.constraint import Constraint
from palio.model.expression import And, Condition, Expression, conjunction, text_of
from palio.model.filter import Filter


class Step(msgspec.Struct, frozen=True):
    """An event that a filter selects. The guard is what has to hold besides, compared with earlier events."""

    name: str
    filter: Filter
    guard: Expression | None = None
    named: bool = True

    @property
    def selects(self) -> Filter:
        """A filter for all events that can be this step: what is compared with others is there at least."""
        guards = self.guard.operands if isinstance(self.guard, And) else (self.guard,)
        needed = {one.attribute for one in guards if isinstance(one, Condition)}
        if not needed:
            return self.filter
        there = (Condition(attribute, Constraint("exists")) for attribute in sorted(needed))
        return self.filter.intersect(Filter.from_expression(conjunction(there)))

    def __str__(self) -> str:
        parts = [self.filter.expression] if self.filter.attributes or not self.filter.conjunctions else []
        if self.guard is not None:
            parts.append(self.guard)
        return f"{self.name if self.named else ''}[{text_of(conjunction(parts))}]"


class Then(msgspec.Struct, frozen=True):
    """One after the other."""

    parts: tuple[Shape, ...]


class All(msgspec.Struct, frozen=True):
    """Each of them, in any order."""

    parts: tuple[Shape, ...]


class Either(msgspec.Struct, frozen=True):
    """One of them."""

    parts: tuple[Shape, ...]


class Times(msgspec.Struct, frozen=True):
    """So many of them."""

    count: int
    part: Shape


class Absence(msgspec.Struct, frozen=True):
    """None of them meanwhile."""

    part: Shape


Shape: TypeAlias = "Step | Then | All | Either | Times | Absence"

_STRENGTH: dict[type, int] = {Then: 0, Either: 1, All: 2, Times: 3, Absence: 3, Step: 4}
_WORDS: dict[type, str] = {Then: " then ", Either: " or ", All: " and "}


def shape_text(shape: Shape) -> str:
    """The text of a pattern's steps."""
    match shape:
        case Step():
            return str(shape)
        case Times(count, part):
            return f"{count} × {_inside(part, Step)}"
        case Absence(part):
            return f"not {_inside(part, Step)}"
        case Then(parts) | All(parts) | Either(parts):
            return _WORDS[type(shape)].join(_inside(part, _stronger(shape)) for part in parts)


def _stronger(shape: Shape) -> type:
    return {Then: Either, Either: All, All: Times}[type(shape)]


def _inside(part: Shape, least: type) -> str:
    text = shape_text(part)
    return text if _STRENGTH[type(part)] >= _STRENGTH[least] else f"({text})"


def steps_of(shape: Shape) -> Iterator[Step]:
    """All steps, in the order of the text."""
    match shape:
        case Step():
            yield shape
        case Times(_, part) | Absence(part):
            yield from steps_of(part)
        case Then(parts) | All(parts) | Either(parts):
            for part in parts:
                yield from steps_of(part)
