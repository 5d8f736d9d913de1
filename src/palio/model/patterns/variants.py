"""A pattern's shape as automata: what is still to happen, in which order.

Each way to satisfy a shape is a `Variant`: slots that events fill. A slot can be filled once all slots `behind`
which it stands are filled, and as long as none of its `bars` is: those are the slots of what follows it. Events
are taken in their order, so its event comes behind theirs. Its time must be later than those of the slots
`after` which it comes, as far as they are filled. A state of the automaton is the set of slots that are filled,
a set of bits.

`or` between steps makes a slot that takes any of them, only `or` between larger parts makes several variants.
`3 × A` are three slots each behind the one before: otherwise the same three events would be found in six ways,
and events of the same moment count, too. A loop is the same, with slots that need not be filled: `A{2,50}` has
fifty slots and fifty-one states, and is one variant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial, reduce
from itertools import product

import msgspec

from palio.model.errors import PatternTooLarge
from palio.model.patterns.shape import PLAIN, Absence, All, Either, Loop, PartJoin, Shape, Step, Then, Times

MAX_VARIANTS = 64
# Events of a match, each of which a search goes down by three calls; and of a loop without an upper bound, as
# far as there is room for it beside everything else.
MAX_SLOTS = 128
MAX_LOOP = 64

# Whom an event belongs to that could fill several slots: a greedy loop first, a reluctant one last.
GREEDY, NEEDED, RELUCTANT = range(3)


class Slot(msgspec.Struct, frozen=True):
    """A place for one event of one of these steps (by number). `after`, `behind` and `bars` are sets of slots,
    as bits. Only those with the rank `NEEDED` have to be filled."""

    steps: tuple[int, ...]
    after: int = 0
    behind: int = 0
    bars: int = 0
    rank: int = NEEDED
    unless: tuple[int, ...] = ()


class Gap(msgspec.Struct, frozen=True):
    """None of these steps between two sets of slots; if no slot `before` which it lasts is filled, until the
    window ends. If it is `adjacent`, none of them right behind the slots that it comes after; if it is `inside`
    a loop, it ends with the slot of the loop that it is before, or is nothing."""

    steps: tuple[int, ...]
    after: int
    before: int = 0
    adjacent: bool = False
    inside: bool = False


class SlotLink(msgspec.Struct, frozen=True):
    """How the first event of some slots follows the last one of others."""

    join: PartJoin
    after: int
    before: int


class Variant(msgspec.Struct, frozen=True, dict=True):
    """One way to satisfy a shape: its slots, what must not happen, and what must follow closely."""

    slots: tuple[Slot, ...] = ()
    gaps: tuple[Gap, ...] = ()
    links: tuple[SlotLink, ...] = ()

    @property
    def all(self) -> int:
        return (1 << len(self.slots)) - 1

    @cached_property
    def needed(self) -> int:
        return sum(1 << number for number, slot in enumerate(self.slots) if slot.rank == NEEDED)


class _Context(msgspec.Struct, frozen=True):
    """What all parts of a shape have to know: the numbers of steps, and how far a loop without a bound goes."""

    numbers: dict[str, int]
    room: int


def variants_of(shape: Shape, numbers: dict[str, int]) -> tuple[Variant, ...]:
    """All variants of a shape. Raises `PatternTooLarge`."""
    bounded, loops = _events(shape)
    room = min(MAX_LOOP, (MAX_SLOTS - bounded) // loops) if loops else 0
    return _variants(shape, _Context(numbers, room))


def _events(shape: Shape) -> tuple[int, int]:
    """How many events loops without an upper bound leave room for, and how many of these loops there are."""
    match shape:
        case Step():
            return 1, 0
        case Times(count, _):
            return count, 0
        case Loop(_, most, _):
            return (0, 1) if most is None else (most, 0)
        case Absence():
            return 0, 0
        case Either(parts) | All(parts) | Then(parts):
            several = [_events(part) for part in parts]
            return sum(bounded for bounded, _ in several), sum(loops for _, loops in several)


def _variants(shape: Shape, context: _Context) -> tuple[Variant, ...]:
    numbers = context.numbers
    match shape:
        case Step(name):
            return (Variant((Slot((numbers[name],)),)),)
        case Either(parts):
            if all(isinstance(part, Step) for part in parts):
                steps = tuple(numbers[part.name] for part in parts)  # type: ignore[union-attr]
                return (Variant((Slot(steps),)),)
            return _bounded([one for part in parts for one in _variants(part, context)])
        case Times(count, part):
            return _repeated(part, context, count, count, NEEDED)
        case Loop(least, most, part, greedy):
            most = max(least, context.room) if most is None else most
            (one,) = _repeated(part, context, least, most, GREEDY if greedy else RELUCTANT)
            return (one if shape.until is None else _ended(one, _steps(shape.until, context)),)
        case All(parts):
            return _combined([_variants(part, context) for part in parts], _beside)
        case Then():
            return _sequences(shape, context)
        case Absence():
            raise AssertionError("an absence stands in a sequence")


def _repeated(part: Shape, context: _Context, least: int, most: int, rank: int) -> tuple[Variant, ...]:
    if most > MAX_SLOTS:
        raise PatternTooLarge(what="events", limit=MAX_SLOTS, got=most)
    steps = _steps(part, context)
    slots = tuple(
        Slot(steps, behind=(1 << number) >> 1, rank=NEEDED if number < least else rank)
        for number in range(most)
    )
    return (Variant(slots),)


def _steps(part: Shape, context: _Context) -> tuple[int, ...]:
    """Of a step, or of several joined by `or`."""
    return _variants(part, context)[0].slots[0].steps


def _ended(loop: Variant, until: tuple[int, ...]) -> Variant:
    """The loop takes nothing behind one of these steps. What comes before it is not known yet."""
    slots = tuple(msgspec.structs.replace(slot, unless=until) for slot in loop.slots)
    gaps = tuple(Gap(until, (1 << number) - 1, 1 << number, inside=True) for number in range(len(slots)))
    return Variant(slots, gaps)


def _sequences(shape: Then, context: _Context) -> tuple[Variant, ...]:
    found: tuple[Variant, ...] = (Variant(),)
    missing: tuple[Gap, ...] = ()
    for number, part in enumerate(shape.parts):
        if isinstance(part, Absence):
            missing += (Gap(_steps(part.part, context), 0, adjacent=part.adjacent),)
            continue
        join = shape.join(number) if number else PLAIN
        found = _combined([found, _variants(part, context)], partial(_followed, missing=missing, join=join))
        missing = ()
    if missing:
        found = tuple(
            msgspec.structs.replace(one, gaps=one.gaps + _behind(missing, one.all, 0)) for one in found
        )
    return found


def _combined(
    several: list[tuple[Variant, ...]], join: Callable[[Variant, Variant], Variant]
) -> tuple[Variant, ...]:
    count = math.prod(map(len, several))
    if count > MAX_VARIANTS:
        raise PatternTooLarge(what="alternatives", limit=MAX_VARIANTS, got=count)
    return _bounded([reduce(join, choice) for choice in product(*several)])


def _beside(one: Variant, other: Variant) -> Variant:
    moved = _moved(other, len(one.slots))
    return Variant(one.slots + moved.slots, one.gaps + moved.gaps, one.links + moved.links)


def _followed(one: Variant, other: Variant, missing: tuple[Gap, ...], join: PartJoin) -> Variant:
    moved = _moved(other, len(one.slots))
    following = moved.all << len(one.slots)
    earlier = tuple(msgspec.structs.replace(slot, bars=slot.bars | following) for slot in one.slots)
    later = tuple(
        msgspec.structs.replace(slot, after=slot.after | one.all, behind=slot.behind | one.needed)
        for slot in moved.slots
    )
    # What was to stay away until the end stays away until the next step, now that there is one.
    gaps = tuple(
        gap
        if gap.inside or gap.before & one.needed
        else msgspec.structs.replace(gap, before=gap.before | following)
        for gap in one.gaps
    )
    own = tuple(
        msgspec.structs.replace(gap, after=gap.after | one.all) if gap.inside else gap for gap in moved.gaps
    )
    links = (*one.links, *moved.links)
    if join != PLAIN and one.slots:
        links += (SlotLink(join, one.all, following),)
    return Variant(earlier + later, gaps + _behind(missing, one.all, following) + own, links)


def _behind(missing: tuple[Gap, ...], after: int, before: int) -> tuple[Gap, ...]:
    return tuple(msgspec.structs.replace(gap, after=after, before=before) for gap in missing)


def _moved(variant: Variant, by: int) -> Variant:
    """The same with so many slots before it, which are nothing yet."""
    slots = tuple(
        msgspec.structs.replace(slot, after=slot.after << by, behind=slot.behind << by, bars=slot.bars << by)
        for slot in variant.slots
    )
    gaps = tuple(
        msgspec.structs.replace(gap, after=gap.after << by, before=gap.before << by) for gap in variant.gaps
    )
    links = tuple(SlotLink(link.join, link.after << by, link.before << by) for link in variant.links)
    return Variant(slots, gaps, links)


def _bounded(variants: list[Variant]) -> tuple[Variant, ...]:
    if len(variants) > MAX_VARIANTS:
        raise PatternTooLarge(what="alternatives", limit=MAX_VARIANTS, got=len(variants))
    longest = max(len(one.slots) for one in variants)
    if longest > MAX_SLOTS:
        raise PatternTooLarge(what="events", limit=MAX_SLOTS, got=longest)
    return tuple(variants)
