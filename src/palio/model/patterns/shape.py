"""A pattern as people write it: steps joined by `then`, `next`, `or`, `and`, `×` and `not`; and its text.

The text is what `reader` reads back to an equal tree, with no more parentheses than needed. `then` and `next`
bind weakest, then `or`, then `and`; `×` and `not` stand before what they mean, `?`, `*`, `+` and `{2,5}` behind
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from palio.model.constraint import Constraint
from palio.model.expression import And, Condition, Expression, conjunction, text_of
from palio.model.filter import Filter
from palio.model.patterns.spans import span_text


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


class PartJoin(msgspec.Struct, frozen=True):
    """How a part follows what comes before it: with nothing in between, and so soon (in microseconds)."""

    strict: bool = False
    within: int | None = None

    def __str__(self) -> str:
        word = "next" if self.strict else "then"
        return word if self.within is None else f"{word} within {span_text(self.within)}"


PLAIN = PartJoin()


class Then(msgspec.Struct, frozen=True):
    """One after the other; each but the first is joined to what comes before it, plainly if `joins` is
    empty."""

    parts: tuple[Shape, ...]
    joins: tuple[PartJoin, ...] = ()

    def join(self, number: int) -> PartJoin:
        """How the part of this number, which is not the first, follows."""
        return self.joins[number - 1] if self.joins else PLAIN


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


class Loop(msgspec.Struct, frozen=True):
    """At least so many of them and at most so many; without `most`, as many as a match has room for.

    One that is greedy takes an event that could also be what follows, and goes on where the pattern could end.
    It takes no more once one of `until` has come.
    """

    least: int
    most: int | None
    part: Shape
    greedy: bool = True
    until: Shape | None = None


class Absence(msgspec.Struct, frozen=True):
    """None of them meanwhile; or, if `adjacent`, not right behind what comes before."""

    part: Shape
    adjacent: bool = False


Shape: TypeAlias = "Step | Then | All | Either | Times | Loop | Absence"

_STRENGTH: dict[type, int] = {Then: 0, Either: 1, All: 2, Times: 3, Loop: 3, Absence: 3, Step: 4}
# What joins the parts, and what binds stronger and so needs no parentheses among them.
_JOINED: dict[type, tuple[str, type]] = {Either: (" or ", All), All: (" and ", Times)}
_SIGNS = {(0, 1): "?", (0, None): "*", (1, None): "+"}


def shape_text(shape: Shape) -> str:
    """The text of a pattern's steps."""
    match shape:
        case Step():
            return str(shape)
        case Times(count, part):
            return f"{count} × {_inside(part, Step)}"
        case Loop(_, _, part):
            until = "" if shape.until is None else f" until {_inside(shape.until, Step)}"
            return f"{_inside(part, Step)}{loop_sign(shape)}{until}"
        case Absence(part, adjacent):
            return f"not {'next ' if adjacent else ''}{_inside(part, Step)}"
        case Then(parts):
            text = _inside(parts[0], Either)
            for number, part in enumerate(parts[1:], 1):
                join = "" if isinstance(part, Absence) and part.adjacent else f"{shape.join(number)} "
                text = f"{text} {join}{_inside(part, Either)}"
            return text
        case All(parts) | Either(parts):
            word, stronger = _JOINED[type(shape)]
            return word.join(_inside(part, stronger) for part in parts)


def loop_sign(loop: Loop) -> str:
    """What stands behind the step of a loop."""
    most = "" if loop.most is None else str(loop.most)
    sign = _SIGNS.get((loop.least, loop.most), f"{{{loop.least},{most}}}")
    return sign if loop.greedy else f"{sign}?"


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
        case Loop(_, _, part):
            yield from steps_of(part)
            if shape.until is not None:
                yield from steps_of(shape.until)
        case Then(parts) | All(parts) | Either(parts):
            for part in parts:
                yield from steps_of(part)
