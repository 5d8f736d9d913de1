"""Whether what has begun can still be completed, by events to come and by nothing else; or only came too late.

A search (`search`) asks this when it has tried every known event: whatever would follow is not known yet, comes
behind all that is known, and has a time after the watermark. The answer is no if

1. the window has ended, or ends before the rest could happen one after the other;
2. something that must not happen has happened, and nothing to come can change where its absence begins or ends:
   its time is one that what ends the absence cannot precede;
3. what was to follow at once, or soon, has not.

A loop that can take more events may begin an absence, or what is to follow at once, anew; so ways on are tried
slot by slot, each with the times between which it could be filled.

Where time is the order, there are also events that *wait*: they have come, with a time after the watermark, and
others may still come before them. They can be what must not happen; and where something is to follow at once,
what comes at once is one of them, or a new event that no time of theirs precedes.

What could be completed until its time was over, and was not, is *overdue*: that is what a pattern tells that
wants to hear of partial matches (`timeout tell`). It has a deadline, which is the end of its window, or of one
between neighbours; what must not happen counts if it happened before the deadline.

Everything else can happen. What an event would have to be like is not asked: that no event could satisfy a
comparison with earlier ones is not seen, and such a beginning stays open until its window ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from palio.matching.patterns.automaton import Filling
from palio.matching.patterns.hit import FOREVER, NEVER, Hit
from palio.model.patterns.variants import NEEDED, Gap, SlotLink

if TYPE_CHECKING:
    from palio.matching.patterns.search import Search

# Ways on that are tried for one choice. Who meets more waits for the end of the window, which is always right.
MAX_PROSPECTS = 256


class _Coming(NamedTuple):
    """An event that is to come, or has come before its time: the slot that it fills, the times between which it
    can happen, and how many of those that wait for their time stand before it."""

    slot: int
    low: int
    high: int
    place: int
    is_new: bool


class Prospects:
    """What can become of one way to fill slots, in the times that are left to it."""

    def __init__(self, search: Search, filling: Filling, low: int, high: int) -> None:
        self._ways, self._filled, self._slots = filling
        self._search = search
        self._ends = low + search.automaton.within
        # Nothing to come is earlier.
        self._soonest = max(search.watermark + 1, high - search.automaton.within)
        self._looked = 0
        self._keeps: dict[int, int] = {}
        # Events that wait are as good as new ones of their times, unless nothing may come in between.
        self._between = search.waiting if self._ways.is_strict else ()

    def until(self) -> int | None:
        """The watermark at which to ask again, at the latest; None if it cannot be completed any more."""
        if self._soonest > self._ends:
            return None
        return self._completed(self._filled, ())

    def _completed(self, filled: int, coming: tuple[_Coming, ...]) -> int | None:
        """The watermark at which the first way that fills all slots is over; None if there is no way."""
        if coming and self._ways.is_complete(filled):
            return self._over(coming)
        open_ways = sorted(self._ways.from_state(filled)[1], key=lambda way: way[5] != NEEDED)
        for number, bit, steps, _, after, _ in open_ways:
            for one in self._places(number, steps, after, filled, coming):
                self._looked += 1
                if self._looked > MAX_PROSPECTS:
                    return self._ends
                found = self._completed(filled | bit, (*coming, one))
                if found is not None:
                    return found
        return None

    def _over(self, coming: tuple[_Coming, ...]) -> int:
        """From when on the first of those that are new would come too late. As early as they can all be, they
        can all be later together; and where they stand in a row, each at least one before the next."""
        while coming and not coming[0].is_new:
            coming = coming[1:]
        if not coming:
            return self._ends
        together = coming[0].low + min(one.high - one.low for one in coming)
        return max(together, min(one.high - number for number, one in enumerate(coming)))

    def _places(
        self, number: int, steps: int, after: int, filled: int, coming: tuple[_Coming, ...]
    ) -> Iterator[_Coming]:
        """Where the event of a slot could stand behind those that are to come before it."""
        low = max(self._soonest, self._after(after, coming) + 1)
        if coming and not self._search.automaton.by_arrival:
            low = max(low, coming[-1].low)
        high, strict = self._ends, False
        for one in self._ways.decided_by(filled, number):
            bound = self._ways.bounds[one]
            again = [other.high for other in coming if bound.after >> other.slot & 1]
            if isinstance(bound, SlotLink) and bound.join.strict:
                strict = True
                if coming and not bound.after >> coming[-1].slot & 1:
                    return
            if not again:
                high = min(high, self._kept_until(one))
            elif isinstance(bound, SlotLink) and bound.join.within is not None:
                latest = max(*again, self._search.since(bound.after, self._slots)[1])
                high = min(high, latest + bound.join.within)
        if low > high:
            return
        waiting = self._between
        if not waiting:
            yield _Coming(number, low, high, 0, True)
            return
        at = coming[-1].place if coming else 0
        for place in range(at, at + 1 if strict else len(waiting) + 1):
            earliest = max(low, waiting[place - 1].time) if place else low
            if earliest > high:
                return
            hit = waiting[place] if place < len(waiting) else None
            latest = high if hit is None else min(high, hit.time - 1)
            if earliest <= latest:
                yield _Coming(number, earliest, latest, place, True)
            if hit is not None and hit.steps & steps and low <= hit.time <= high:
                yield _Coming(number, hit.time, hit.time, place + 1, False)

    def _kept_until(self, number: int) -> int:
        """Until which time an event to come could keep a bound that has begun."""
        known = self._keeps.get(number)
        if known is None:
            known = self._keeps[number] = self._keeping(self._ways.bounds[number])
        return known

    def _keeping(self, bound: Gap | SlotLink) -> int:
        search = self._search
        if isinstance(bound, Gap) and not bound.adjacent:
            happened = search.violation(bound, self._slots, len(search.hits), self._ends)
            if happened is None:
                happened = next((hit.time for hit in search.waiting if self._is_one_of(bound, hit)), self._ends)
            return min(happened, self._ends)
        last, latest = search.since(bound.after, self._slots)
        if isinstance(bound, Gap):
            ended = search.is_one_of(bound, last + 1, self._slots)
            if last + 1 == len(search.hits) and search.waiting:
                following = search.waiting[0]  # unless another one comes before it
                ended = following.time == search.watermark + 1 and self._is_one_of(bound, following)
            return NEVER if ended else self._ends
        if bound.join.strict and last + 1 < len(search.hits):
            return NEVER
        return self._ends if bound.join.within is None else latest + bound.join.within

    def _is_one_of(self, gap: Gap, hit: Hit) -> bool:
        """Whether an event that waits is what a gap excludes, whatever it would be compared with: what that is
        may not be known yet."""
        guards = self._search.automaton.guards
        return any(hit.steps >> step & 1 and guards[step] is None for step in gap.steps)

    def _after(self, after: int, coming: tuple[_Coming, ...]) -> int:
        """The latest time of these slots, as far as they are filled."""
        latest = self._search.since(after, self._slots)[1]
        return max([latest, *(one.low for one in coming if after >> one.slot & 1)])

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
