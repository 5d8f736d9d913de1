"""A pattern made ready for searching: for each state of its variants the steps that lead on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from palio.model.patterns.computed import Events, compile_guard, computed_references, conditions
from palio.model.patterns.pattern import Pattern
from palio.model.patterns.variants import Gap, Variant
from palio.model.values import Value

Guard: TypeAlias = "Callable[[Mapping[str, Value], Events], bool]"
# A slot that can be filled: its number, its bit, the bits of its steps, those steps, the slots that it comes
# after.
Way: TypeAlias = "tuple[int, int, int, tuple[int, ...], int]"

# A slot that is filled: its number, the place of its event, and the step that it was.
Filled: TypeAlias = "tuple[int, int, int]"
# One way to fill slots with chosen events: the variant, the filled slots as bits, and each of them.
Filling: TypeAlias = "tuple[Ways, int, tuple[Filled, ...]]"


class Ways:
    """One variant. What leads on from a state is worked out when the state is first met."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.complete = (1 << len(variant.slots)) - 1
        self.closing = tuple(gap for gap in variant.gaps if not gap.before)
        self.between = tuple(gap for gap in variant.gaps if gap.before)
        self.needs = tuple(bits(slot.steps) for slot in variant.slots)
        self._ways: dict[int, tuple[int, tuple[Way, ...]]] = {}

    def from_state(self, filled: int) -> tuple[int, tuple[Way, ...]]:
        """The steps that lead on from a state, as bits, and the slots that can be filled."""
        known = self._ways.get(filled)
        if known is None:
            ways = tuple(
                (number, 1 << number, bits(slot.steps), slot.steps, slot.after)
                for number, slot in enumerate(self.variant.slots)
                if not filled >> number & 1 and slot.behind & ~filled == 0
            )
            wanted = 0
            for way in ways:
                wanted |= way[2]
            known = self._ways[filled] = (wanted, ways)
        return known

    def is_complete(self, filled: int) -> bool:
        return filled == self.complete

    def ended_by(self, filled: int, number: int) -> tuple[Gap, ...]:
        """The absences that end when this slot is filled: it is the first of those that they last until."""
        return tuple(gap for gap in self.between if gap.before >> number & 1 and not gap.before & filled)


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
        self.guards: tuple[Guard | None, ...] = tuple(
            None if step.guard is None else compile_guard(step.guard) for step in pattern.steps
        )
        self.starters = 0
        for ways in self.ways:
            self.starters |= ways.from_state(0)[0]
        self.guarded = any(self.guards)
        # Only the order of events counts: nothing is compared, and nothing must stay away.
        self.plain = not self.guarded and not any(variant.gaps for variant in pattern.variants)
        # What has begun can come to nothing before its window ends.
        self.mortal = any(ways.between for ways in self.ways)
        self.remembered = _remembered(pattern)

    @cached_property
    def digest(self) -> bytes:
        """What its state is kept under: the name and the pattern."""
        return hashlib.sha256(f"{self.name}\0{self.pattern}".encode()).digest()[:16]

    def can_complete(self, steps: int) -> bool:
        """Whether events of these steps, as bits, could fill all slots of a variant."""
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


def _remembered(pattern: Pattern) -> frozenset[str]:
    """The attributes of its events that comparisons need."""
    found: set[str] = set()
    guard: Any
    for step in pattern.steps:
        if (guard := step.guard) is not None:
            found |= {condition.attribute for condition in conditions(guard)}
            found |= {reference.attribute for reference in computed_references(guard)}
    return frozenset(found)
