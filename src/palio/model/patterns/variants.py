"""A pattern's shape as automata: what is still to happen, in which order.

Each way to satisfy a shape is a `Variant`: slots that events fill. A slot can be filled once all slots `behind`
which it stands are filled; events are taken in their order, so its event comes behind theirs. Its time must be
later than those of the slots `after` which it comes. A state of the automaton is the set of slots that are
filled, a set of bits.

`or` between steps makes a slot that takes any of them, only `or` between larger parts makes several variants.
`3 × A` are three slots each behind the one before: otherwise the same three events would be found in six ways,
and events of the same moment count, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import msgspec

from palio.model.errors import PatternTooLarge
from palio.model.patterns.shape import Absence, All, Either, Shape, Step, Then, Times

MAX_VARIANTS = 64
MAX_SLOTS = 64


class Slot(msgspec.Struct, frozen=True):
    """A place for one event of one of these steps (by number). `after` and `behind` are sets of slots, as
    bits."""

    steps: tuple[int, ...]
    after: int = 0
    behind: int = 0


class Gap(msgspec.Struct, frozen=True):
    """None of these steps between two sets of slots; without slots `before`, until the window ends."""

    steps: tuple[int, ...]
    after: int
    before: int = 0


class Variant(msgspec.Struct, frozen=True):
    """One way to satisfy a shape: its slots, and what must not happen. `first` and `last` are sets of slots."""

    slots: tuple[Slot, ...] = ()
    gaps: tuple[Gap, ...] = ()
    first: int = 0
    last: int = 0

    def up_to(self, slots: int) -> int:
        """All slots that are filled once these are."""
        known, waiting = 0, slots
        while waiting:
            lowest = waiting & -waiting
            known |= lowest
            waiting = (waiting | self.slots[lowest.bit_length() - 1].behind) & ~known
        return known


def variants_of(shape: Shape, numbers: dict[str, int]) -> tuple[Variant, ...]:
    """All variants of a shape. Raises `PatternTooLarge`."""
    match shape:
        case Step(name):
            return (Variant((Slot((numbers[name],)),), (), 1, 1),)
        case Either(parts):
            if all(isinstance(part, Step) for part in parts):
                return (Variant((Slot(tuple(numbers[part.name] for part in parts)),), (), 1, 1),)  # type: ignore[union-attr]
            return _bounded([one for part in parts for one in variants_of(part, numbers)])
        case Times(count, part):
            if count > MAX_SLOTS:
                raise PatternTooLarge(what="events", limit=MAX_SLOTS, got=count)
            steps = variants_of(part, numbers)[0].slots[0].steps
            slots = tuple(Slot(steps, behind=(1 << number) >> 1) for number in range(count))
            everything = (1 << count) - 1
            return (Variant(slots, (), everything, everything),)
        case All(parts):
            several = [variants_of(part, numbers) for part in parts]
            return _combined(several, _beside)
        case Then(parts):
            return _sequences(parts, numbers)
        case Absence():
            raise AssertionError("an absence stands in a sequence")


def _sequences(parts: tuple[Shape, ...], numbers: dict[str, int]) -> tuple[Variant, ...]:
    found: tuple[Variant, ...] = (Variant(),)
    missing: tuple[int, ...] = ()
    for part in parts:
        if isinstance(part, Absence):
            missing += variants_of(part.part, numbers)[0].slots[0].steps
            continue
        found = _combined([found, variants_of(part, numbers)], partial(_followed, missing=missing))
        missing = ()
    if missing:
        found = tuple(msgspec.structs.replace(one, gaps=(*one.gaps, Gap(missing, one.last))) for one in found)
    return found


def _combined(
    several: list[tuple[Variant, ...]], join: Callable[[Variant, Variant], Variant]
) -> tuple[Variant, ...]:
    count = 1
    for one in several:
        count *= len(one)
    if count > MAX_VARIANTS:
        raise PatternTooLarge(what="alternatives", limit=MAX_VARIANTS, got=count)
    found = []
    for choice in product(*several):
        whole = choice[0]
        for part in choice[1:]:
            whole = join(whole, part)
        found.append(whole)
    return _bounded(found)


def _beside(one: Variant, other: Variant) -> Variant:
    moved = _moved(other, len(one.slots))
    return Variant(
        one.slots + moved.slots, one.gaps + moved.gaps, one.first | moved.first, one.last | moved.last
    )


def _followed(one: Variant, other: Variant, missing: tuple[int, ...]) -> Variant:
    by = len(one.slots)
    moved = _moved(other, by)
    slots = tuple(
        msgspec.structs.replace(slot, after=slot.after | one.last, behind=slot.behind | one.last)
        if moved.first >> number & 1
        else slot
        for number, slot in enumerate(moved.slots, by)
    )
    # What was to stay away until the end stays away until the next step, now that there is one.
    gaps = [gap if gap.before else msgspec.structs.replace(gap, before=moved.first) for gap in one.gaps]
    if missing:
        gaps.append(Gap(missing, one.last, moved.first))
    return Variant(one.slots + slots, (*gaps, *moved.gaps), one.first or moved.first, moved.last)


def _moved(variant: Variant, by: int) -> Variant:
    slots = tuple(Slot(slot.steps, slot.after << by, slot.behind << by) for slot in variant.slots)
    gaps = tuple(Gap(gap.steps, gap.after << by, gap.before << by) for gap in variant.gaps)
    return Variant(slots, gaps, variant.first << by, variant.last << by)


def _bounded(variants: list[Variant]) -> tuple[Variant, ...]:
    if len(variants) > MAX_VARIANTS:
        raise PatternTooLarge(what="alternatives", limit=MAX_VARIANTS, got=len(variants))
    longest = max(len(one.slots) for one in variants)
    if longest > MAX_SLOTS:
        raise PatternTooLarge(what="events", limit=MAX_SLOTS, got=longest)
    return tuple(variants)
