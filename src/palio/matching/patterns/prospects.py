"""Whether what has begun can still be completed, by events to come and by nothing else; or only came too late.

A search (`search`) asks this when it has tried every known event: whatever would follow is not known yet, comes
behind all that is known, and has a time after the watermark. The answer is no if

1. the window has ended, or ends before the rest could happen one after the other;
2. something that must not happen has happened, and nothing to come can change where its absence begins or ends:
   its time is one that no event to come can precede;
3. what was to follow at once, or soon, has not.

A loop that can take more events may begin an absence, or what is to follow at once, anew; so ways on are tried
slot by slot.

What could be completed until its time was over, and was not, is *overdue*: that is what a pattern tells that
wants to hear of partial matches (`timeout tell`). It has a deadline, which is the end of its window, or of one
between neighbours; what must not happen counts if it happened before the deadline.

Everything else can happen. What an event would have to be like is not asked: that no event could satisfy a
comparison with earlier ones is not seen, and such a beginning stays open until its window ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from palio.matching.patterns.automaton import Filling, Ways
from palio.matching.patterns.hit import FOREVER, NEVER
from palio.model.patterns.variants import NEEDED, Gap, SlotLink

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

    def _keeps(self, bound: Gap | SlotLink) -> int:
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

    # Looking back

    def overdue(self) -> int | None:
        """The time at which nothing could complete it any more, though until then something could have; None if
        that was over before, since something happened."""
        return self._deadline(self._filled, 0, self._ends, FOREVER)

    def _deadline(self, filled: int, added: int, limit: int, happened: int) -> int | None:
        """The latest of all ways on. `added` has the slots that were filled here, `limit` is how long this way
        was open, and `happened` when something ended it."""
        if added and self._ways.is_complete(filled):
            return limit if happened >= limit else None
        self._looked += 1
        if self._looked > MAX_PROSPECTS:
            return limit
        best: int | None = None
        open_ways = sorted(self._ways.from_state(filled)[1], key=lambda way: way[5] != NEEDED)
        for number, bit, *_ in open_ways:
            until, ended = limit, happened
            for one in self._ways.decided_by(filled, number):
                bound = self._ways.bounds[one]
                if not bound.after & added:
                    until = min(until, self._limit(bound))
                    ended = min(ended, self._happened(bound))
            found = self._deadline(filled | bit, added | bit, until, ended)
            if found is not None and (best is None or found > best):
                best = found
            if best == self._ends:
                break
        return best

    def _limit(self, bound: Gap | SlotLink) -> int:
        if isinstance(bound, Gap) or bound.join.within is None:
            return self._ends
        return self._search.since(bound.after, self._slots)[1] + bound.join.within

    def _happened(self, bound: Gap | SlotLink) -> int:
        """Up to which deadline a bound was kept."""
        search = self._search
        hits = search.hits
        if isinstance(bound, Gap) and not bound.adjacent:
            found = search.violation(bound, self._slots, len(hits), self._ends)
            return FOREVER if found is None else found
        last, _ = search.since(bound.after, self._slots)
        if isinstance(bound, Gap):
            return hits[last + 1].time - 1 if search.is_one_of(bound, last + 1, self._slots) else FOREVER
        if bound.join.strict and last + 1 < len(hits):
            return min(hit.time for hit in hits[last + 1 :]) - 1
        return FOREVER
