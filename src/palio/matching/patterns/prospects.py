"""Whether what has begun can still be completed, by events to come and by nothing else.

A search (`search`) asks this when it has tried every known event: whatever would follow is not known yet, comes
behind all that is known, and has a time after the watermark. The answer is no if

1. the window has ended, or ends before the rest could happen one after the other;
2. something that must not happen has happened, and nothing to come can change where its absence begins or ends:
   its time is one that no event to come can precede;
3. what was to follow at once, or soon, has not.

A loop that can take more events may begin an absence, or what is to follow at once, anew; so ways on are tried
slot by slot.

Everything else can happen. What an event would have to be like is not asked: that no event could satisfy a
comparison with earlier ones is not seen, and such a beginning stays open until its window ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from palio.matching.patterns.automaton import Filling, Ways
from palio.matching.patterns.hit import NEVER
from palio.model.patterns.variants import NEEDED, Gap, Link

if TYPE_CHECKING:
    from palio.matching.patterns.search import Search

# Ways on that are tried for one choice. Who meets more waits for the end of the window, which is always right.
MAX_PROSPECTS = 256


class Prospects:
    """What can become of one way to fill slots, in the times that are left to it."""

    def __init__(self, search: Search, filling: Filling, low: int, high: int) -> None:
        self._ways, self._filled, self._slots = filling
        self._search = search
        self._ends = low + search.automaton.within
        # Nothing to come is earlier.
        self._soonest = max(search.watermark + 1, high - search.automaton.within)
        self._looked = 0

    def until(self) -> int | None:
        """The watermark at which to ask again, at the latest; None if it cannot be completed any more."""
        if self._soonest > self._ends:
            return None
        broken, until = self._broken()
        last = self._completed(self._filled, {}, broken)
        if last is None:
            return None
        return min(until, self._search.watermark + self._ends - last + 1)

    def _broken(self) -> tuple[set[int], int]:
        """The bounds that no event to come can keep; and when others might become such."""
        broken, until = set(), self._ends
        for number, bound in enumerate(self._ways.bounds):
            if bound.after & self._filled and not bound.before & self._filled:
                keeps = self._keeps(bound)
                if keeps < self._soonest:
                    broken.add(number)
                else:
                    until = min(until, keeps)
        return broken, until

    def _keeps(self, bound: Gap | Link) -> int:
        """Until which time an event to come could keep it."""
        search = self._search
        if isinstance(bound, Gap) and not bound.adjacent:
            happened = search.violation(bound, self._slots, len(search.hits), self._ends)
            return self._ends if happened is None else happened
        last, latest = search.since(bound.after, self._slots)
        if isinstance(bound, Gap):
            return NEVER if search.is_one_of(bound, last + 1, self._slots) else self._ends
        if bound.join.strict and last + 1 < len(search.hits):
            return NEVER
        return self._ends if bound.join.within is None else latest + bound.join.within

    def _completed(self, filled: int, times: dict[int, int], broken: set[int]) -> int | None:
        """The least time at which all slots could be filled. `times` has those of slots that were filled here,
        in the future."""
        if times and self._ways.is_complete(filled):
            return max(times.values())
        self._looked += 1
        if self._looked > MAX_PROSPECTS:
            return self._soonest
        for number, bit, after in self._next(filled, times, broken):
            time = max(self._soonest, self._after(after, times) + 1)
            if time <= self._ends:
                found = self._completed(filled | bit, {**times, number: time}, broken)
                if found is not None:
                    return found
        return None

    def _next(self, filled: int, times: dict[int, int], broken: set[int]) -> Iterator[tuple[int, int, int]]:
        ways: Ways = self._ways
        open_ways = sorted(ways.from_state(filled)[1], key=lambda way: way[5] != NEEDED)
        for number, bit, _, _, after, _ in open_ways:
            for one in broken and broken.intersection(ways.decided_by(filled, number)):
                if not any(ways.bounds[one].after >> other & 1 for other in times):
                    break
            else:
                yield number, bit, after

    def _after(self, after: int, times: dict[int, int]) -> int:
        """The latest time of these slots, as far as they are filled."""
        hits, latest = self._search.hits, self._soonest - 1
        for number, place, _ in self._slots:
            if after >> number & 1:
                latest = max(latest, hits[place].time)
        return max([latest, *(time for number, time in times.items() if after >> number & 1)])
