"""Turns: of many durable subscriptions, some have their turn at each tick, and all of them after some ticks.

What is on disk of a position, and what journals are told of it, may always be behind: a crash comes at any
moment. So where there are many subscriptions, not all positions that marks have moved are written at each tick,
and not all are told to their origins, where each is written again. Journals keep a few seconds of events longer
for it. Positions that are written with a delivery are as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Generic, TypeVar

# Subscriptions of a home whose positions are written, or told, at a tick: where there are no more, all of them.
# With 1,000 of them that is a tenth of the writes and bytes, ten seconds late (measured: docs/delivery.md).
MOST_AT_A_TICK = 100

_One = TypeVar("_One")


class TickTurns(Generic[_One]):
    """Whose turn it is. `at_once` have theirs at a tick."""

    def __init__(self, at_once: int = MOST_AT_A_TICK) -> None:
        self._at_once = at_once
        self._next = 0
        self.is_over = True  # whether all who wanted a turn have had it

    def of(self, ones: Iterable[_One]) -> Iterator[_One]:
        """Those whose turn it may be, in their order. Whoever takes it says so (`taken`)."""
        all_ones = list(ones)
        begin = self._next if self._next < len(all_ones) else 0
        self._left, self.is_over = self._at_once, True
        for place, one in enumerate(chain(islice(all_ones, begin, None), islice(all_ones, begin))):
            if not self._left:
                self._next, self.is_over = (begin + place) % len(all_ones), False
                return
            yield one
        self._next = 0

    def taken(self) -> None:
        """Note that the last one has had its turn."""
        self._left -= 1
