"""A pattern made ready for searching: for each state of its variants the steps that lead on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from palio.model.constraint import Constraint
from palio.model.expression import Condition, conjunction
from palio.model.filter import Filter
from palio.model.patterns.computed import Events, compile_guard, computed_references, conditions
from palio.model.patterns.pattern import Pattern
from palio.model.patterns.variants import GREEDY, NEEDED, Gap, SlotLink, Variant
from palio.model.values import Value

Guard: TypeAlias = "Callable[[Mapping[str, Value], Events], bool]"
# A slot that can be filled: its number, its bit, the bits of its steps, those steps, the slots that it comes
# after, and its rank.
Way: TypeAlias = "tuple[int, int, int, tuple[int, ...], int, int]"

# A slot that is filled: its number, the place of its event, and the step that it was.
Filled: TypeAlias = "tuple[int, int, int]"
# One way to fill slots with chosen events: the variant, the filled slots as bits, and each of them.
Filling: TypeAlias = "tuple[Ways, int, tuple[Filled, ...]]"


class Ways:
    """One variant. What leads on from a state is worked out when the state is first met."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.needed = variant.needed
        # What is decided when the first of the slots that it lasts until, or ties, is filled.
        self.bounds: tuple[Gap | SlotLink, ...] = (*(gap for gap in variant.gaps if gap.before), *variant.links)
        # Whether something has to follow at once.
        self.is_strict = any(link.join.strict for link in variant.links)
        self.needs = tuple(bits(slot.steps) for slot in variant.slots if slot.rank == NEEDED)
        self.afters = tuple({slot.after for slot in variant.slots} - {0})
        self._bounds_of = tuple(
            tuple(number for number, bound in enumerate(self.bounds) if bound.before >> slot & 1)
            for slot in range(len(variant.slots))
        )
        self.unless = tuple(slot.unless for slot in variant.slots)
        self._ways: dict[int, tuple[int, tuple[Way, ...]]] = {}
        self._lacks: dict[int, tuple[int, ...]] = {}

    def from_state(self, filled: int) -> tuple[int, tuple[Way, ...]]:
        """The steps that lead on from a state, as bits, and the slots that can be filled."""
        known = self._ways.get(filled)
        if known is None:
            ways = tuple(
                (number, 1 << number, bits(slot.steps), slot.steps, slot.after, slot.rank)
                for number, slot in enumerate(self.variant.slots)
                if not filled >> number & 1 and slot.behind & ~filled == 0 and not slot.bars & filled
            )
            wanted = 0
            for way in ways:
                wanted |= way[2]
            known = self._ways[filled] = (wanted, ways)
        return known

    def lacks(self, filled: int) -> tuple[int, ...]:
        """Of each slot that has still to be filled the bits of its steps; each of these once."""
        known = self._lacks.get(filled)
        if known is None:
            slots = enumerate(self.variant.slots)
            known = self._lacks[filled] = tuple(
                {bits(slot.steps) for number, slot in slots if slot.rank == NEEDED and not filled >> number & 1}
            )
        return known

    def is_complete(self, filled: int) -> bool:
        return filled & self.needed == self.needed

    def goes_on(self, filled: int) -> bool:
        """Whether a greedy loop can take more behind what is complete."""
        return any(way[5] == GREEDY for way in self.from_state(filled)[1])

    def closing(self, filled: int) -> list[Gap]:
        """What must not happen until the window ends, if nothing else follows."""
        gaps = self.variant.gaps
        return [gap for gap in gaps if not gap.before & filled and gap.after & filled and not gap.inside]

    def decided_by(self, filled: int, number: int) -> list[int]:
        """The bounds that are decided when this slot is filled: it is the first of theirs."""
        known, bounds = self._bounds_of[number], self.bounds
        return [one for one in known if not bounds[one].before & filled and bounds[one].after & filled]


class Automaton:
    """A pattern, its variants, its guards, and which events can begin it."""

    def __init__(self, name: str, pattern: Pattern) -> None:
        self.name = name
        self.pattern = pattern
        self.by = pattern.by
        self.within = pattern.within
        self.by_arrival = pattern.policies.order == "arrival"
        self.ways = tuple(map(Ways, pattern.variants))
        self.step_names = tuple(step.name for step in pattern.steps)
        # Whether it tells what timed out.
        self.tells = pattern.policies.timeout == "tell"
        to = pattern.policies.to
        self.skips_to = None if to is None else self.step_names.index(to)
        self.guards: tuple[Guard | None, ...] = tuple(
            None if step.guard is None else compile_guard(step.guard) for step in pattern.steps
        )
        self.starters = 0
        for ways in self.ways:
            self.starters |= ways.from_state(0)[0]
        self.guarded = any(self.guards)
        # Only the order of events counts: nothing is compared, and nothing must stay away.
        self.plain = not self.guarded and not any(one.gaps or one.links for one in pattern.variants)
        # What has begun can come to nothing before its window ends.
        self.mortal = any(ways.bounds for ways in self.ways)
        self.remembered = _remembered(pattern)
        # What selects the events that it has to see, by the number of the bit that they get: those of its
        # steps, and all others of a partition where nothing may come in between.
        self.selections = tuple(step.selects for step in pattern.steps)
        if any(gap.adjacent for one in pattern.variants for gap in one.gaps) or any(
            ways.is_strict for ways in self.ways
        ):
            self.selections += (_anything(pattern.by),)

    @cached_property
    def digest(self) -> bytes:
        """What its state is kept under: the name and the pattern."""
        return hashlib.sha256(f"{self.name}\0{self.pattern}".encode()).digest()[:16]

    def can_complete(self, steps: int) -> bool:
        """Whether there is something to tell of events of these steps, as bits: do they fill a variant's
        slots?"""
        if self.tells:
            return True
        for ways in self.ways:
            for needed in ways.needs:
                if not needed & steps:
                    break
            else:
                return True
        return False


def bits(numbers: tuple[int, ...]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _anything(by: tuple[str, ...]) -> Filter:
    return Filter.from_expression(conjunction(Condition(name, Constraint("exists")) for name in by))


def _remembered(pattern: Pattern) -> frozenset[str]:
    """The attributes of its events that comparisons need."""
    found: set[str] = set()
    guard: Any
    for step in pattern.steps:
        if (guard := step.guard) is not None:
            found |= {one.attribute for one in conditions(guard) if isinstance(one, Condition)}
            found |= {reference.attribute for reference in computed_references(guard)}
    return frozenset(found - {""})
