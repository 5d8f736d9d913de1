"""Looking for a match among the events of one pattern and one key that are known so far.

The events stand in their order: that of arrival, or of time. A match is a choice of them that fills all slots
of a variant; the first match is the one whose events come first, compared one by one. So the search takes
events in their order and goes back when it cannot go on (`_extended`), and the first complete choice that it
meets is the first match.

What is not known yet comes behind all that is known, and has a time after the watermark. Hence a choice that
has begun and can still be completed (`prospects`) might be continued by an event to come, behind all
continuations that are known. It is *open*: whatever is found behind it in the search is not the first match,
for now. The answer to a search is therefore one of three: a match, open until some time, or none.

In the plain case, in which times grow from event to event and nothing but the order counts, what can follow a
choice depends on its last event and on the slots that it fills, and the earlier the last event, the more can
follow. Then one number for each set of slots tells which choices have failed.

One choice of events can fill the slots of a pattern in several ways; all of them are followed side by side, as
the states of an automaton are. Choices that have failed are remembered by all that the future can depend on, so
that they do not fail again and again; what is left of the exponential is bounded, and who gives up says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise

import msgspec

from palio.matching.patterns.automaton import Automaton, Filled, Filling, Ways
from palio.matching.patterns.hit import NEVER, Hit
from palio.matching.patterns.prospects import Prospects
from palio.model.patterns.variants import Gap, SlotLink
from palio.model.values import Value

# In events looked at for one beginning. Patterns of people need some hundreds.
MAX_EFFORT = 10_000
# Ways to fill the slots of a pattern with the same events, followed side by side.
MAX_FILLINGS = 1_000


class Exhausted(Exception):
    """A search that passed its bound."""


@dataclass(eq=False)
class MatchFound(Exception):
    """Ends a search: these places, as these steps, complete at this time.

    `by_absence` says that it is when its window ended that it was complete. `until` is when that is, if
    something must not happen behind its last event; where that is about the very next event only, `witnesses`
    are their places.
    """

    chosen: tuple[tuple[int, int], ...]
    time: int
    by_absence: bool = field(kw_only=True)
    until: int | None = field(kw_only=True)
    witnesses: tuple[int, ...] = ()

    def or_earlier(self, other: MatchFound) -> MatchFound:
        """Of two for the same events the one that has less to wait for."""
        mine, its = ((one.by_absence, one.until is not None) for one in (self, other))
        return other if its < mine else self

    def is_new(self, hits: list[Hit], looked: int) -> bool:
        """Whether it was not certain at a watermark at which only those events that are spent were known."""
        if not all(hits[place].spent for place, _ in self.chosen):
            return True
        if self.until is None or looked >= self.until:
            return False
        return self.by_absence or not all(place < len(hits) and hits[place].spent for place in self.witnesses)


class MatchReach(msgspec.Struct):
    """All that can become of a beginning: its matches by the places of their events, each with all ways in
    which these are one; the earliest watermark at which to ask again for something of it that is open; and the
    places of all events that any of this has."""

    matches: dict[tuple[int, ...], list[MatchFound]] = {}
    until: int | None = None
    places: set[int] = set()

    def matched(self, found: MatchFound) -> None:
        places = tuple(place for place, _ in found.chosen)
        self.matches.setdefault(places, []).append(found)
        self.places.update(places)

    def opened(self, until: int, fillings: list[Filling]) -> None:
        self.until = until if self.until is None else min(until, self.until)
        for _, _, slots in fillings:
            self.places.update(place for _, place, _ in slots)


class Search:
    """A search among these events, which may be spent but not exchanged meanwhile."""

    def __init__(
        self,
        automaton: Automaton,
        hits: list[Hit],
        watermark: int,
        *,
        waiting: Sequence[Hit] = (),
        skip_spent: bool,
    ) -> None:
        """`waiting` are known, too, but others may still come before them."""
        self.automaton = automaton
        self.hits = hits
        self.waiting = waiting
        self.watermark = watermark
        self.skip_spent = skip_spent
        self._reach: MatchReach | None = None
        self._overdue = False
        self._wants_places = False
        self._within = automaton.within
        self._least = _least_from(hits)
        self._steps_from = _steps_from(hits)
        self._effort = 0
        self._failed: set[object] = set()
        self._failed_from: dict[object, int] = {}
        self._plain = automaton.plain and all(one.time < other.time for one, other in pairwise(hits))
        self._beginnings: list[Filling] = [(ways, 0, ()) for ways in automaton.ways]

    def first(self, start: int) -> MatchFound | int | None:
        """The first match that begins with this event; or until when one is open; or None, if there is none.

        Raises `Exhausted`.
        """
        self._effort = 0
        self._failed.clear()
        self._failed_from.clear()
        time = self.hits[start].time
        try:
            return self._taken(self._beginnings, start, time, time)
        except MatchFound as found:
            return found

    def partial(self, start: int) -> MatchFound | None:
        """What became of a beginning that nothing completed: the first choice that was open until its time was
        over, and that time. Raises `Exhausted`."""
        self._overdue = True
        try:
            found = self.first(start)
        finally:
            self._overdue = False
        return found if isinstance(found, MatchFound) else None

    def all(self, start: int, *, places: bool = False) -> MatchReach:
        """Everything that begins with this event; the places of what is open only if they are wanted, since it
        takes longer to find them all. Raises `Exhausted`."""
        self._effort = 0
        self._wants_places = places
        self._reach = reach = MatchReach()
        time = self.hits[start].time
        try:
            self._taken(self._beginnings, start, time, time)
        finally:
            self._reach = None
            self._wants_places = False
        return reach

    def _extended(self, fillings: list[Filling], last: int, low: int, high: int) -> int | None:
        """Goes on behind the last event. Times of the chosen ones lie between low and high."""
        if last + 1 < len(self.hits):
            if self._reach is None and self._has_failed(fillings, last, low, high):
                return None
            wanted = 0
            for ways, filled, _ in fillings:
                wanted |= ways.from_state(filled)[0]
            latest, earliest = low + self._within, high - self._within
            hits, least, skip_spent = self.hits, self._least, self.skip_spent
            if self._overdue:
                deadlines = [Prospects(self, filling, low, high).overdue() for filling in fillings]
                latest = max((one for one in deadlines if one is not None), default=latest)
            elif not self._wants_places and not self._completable(fillings, last):
                # Nothing that is known completes it: it is open, or comes to nothing.
                until = self._open_until(fillings, low, high)
                if until is not None or latest <= self.watermark:
                    return self._left_open(until, fillings)
            for place in range(last + 1, len(hits)):
                if least[place] > latest:
                    break
                hit = hits[place]
                if not hit.steps & wanted or not earliest <= hit.time <= latest or (skip_spent and hit.spent):
                    continue
                time = hit.time
                answer = self._taken(fillings, place, min(low, time), max(high, time))
                if answer is not None:
                    return answer
        until = self._open_until(fillings, low, high)
        if self._reach is not None or until is not None:
            return self._left_open(until, fillings)
        if last + 1 < len(self.hits):
            self._has_failed(fillings, last, low, high, now=True)
        return None

    def _left_open(self, until: int | None, fillings: list[Filling]) -> int | None:
        """What an open choice means: the answer to a search for the first, and one of many for all."""
        if self._reach is None:
            return until
        if until is not None:
            self._reach.opened(until, fillings)
        return None

    def _completable(self, fillings: list[Filling], last: int) -> bool:
        """Whether behind the last event there is one for each slot that has still to be filled."""
        there = self._steps_from[last + 1]
        return any(all(need & there for need in ways.lacks(filled)) for ways, filled, _ in fillings)

    def _open_until(self, fillings: list[Filling], low: int, high: int) -> int | None:
        """The watermark at which it may be known that events to come can complete none of these."""
        if self._overdue:
            self._tell_overdue(fillings, low, high)
            return None
        if self._reach is not None and self._reach.until is not None and not self._wants_places:
            return self._reach.until  # that something is open is known
        if low + self._within <= self.watermark:
            return None
        found = [Prospects(self, filling, low, high).until() for filling in fillings]
        return max((until for until in found if until is not None), default=None)

    def _tell_overdue(self, fillings: list[Filling], low: int, high: int) -> None:
        for filling in fillings:
            deadline = Prospects(self, filling, low, high).overdue()
            if deadline is not None:
                chosen = tuple(sorted((one, step) for _, one, step in filling[2]))
                raise MatchFound(chosen, deadline, by_absence=False, until=None)

    def _has_failed(
        self, fillings: list[Filling], last: int, low: int, high: int, *, now: bool = False
    ) -> bool:
        """Whether such a choice has failed before; or that it has failed now."""
        if self._plain:
            state = tuple((id(ways), filled) for ways, filled, _ in fillings)
            if now:
                self._failed_from[state] = min(last, self._failed_from.get(state, last))
            return self._failed_from.get(state, len(self.hits)) <= last
        signature = (last, low, high, *map(self._future, fillings))
        if now:
            self._failed.add(signature)
        return signature in self._failed

    def _taken(self, fillings: list[Filling], place: int, low: int, high: int) -> int | None:
        """The same choice with one event more; the rank of the slot that it fills says as what it is tried
        first."""
        self._effort += len(fillings)
        if self._effort > MAX_EFFORT:
            raise Exhausted
        ranked: dict[int, list[Filling]] = {}
        for ways, filled, slots in fillings:
            for rank, filling in self._filled(ways, filled, slots, place):
                ranked.setdefault(rank, []).append(filling)
        for rank in sorted(ranked):
            answer = self._settled(ranked[rank], place, low, high)
            if answer is not None:
                return answer
        return None

    def _settled(self, fillings: list[Filling], place: int, low: int, high: int) -> int | None:
        """A choice that ends with the event at this place: whether it is complete or goes on, and which of both
        comes first."""
        ends = low + self._within
        open_until: int | None = None
        complete: list[MatchFound] = []
        greedy = False
        for filling in fillings:
            ways, filled, slots = filling
            if not ways.is_complete(filled):
                continue
            greedy = greedy or ways.goes_on(filled)
            closing = ways.closing(filled)
            if any(self._ended_badly(gap, slots, ends) for gap in closing):
                continue
            if any(self._lasts(gap, slots, ends) for gap in closing):
                open_until = ends
                if self._reach is not None:
                    self._reach.opened(ends, [filling])
            else:
                by_absence = not all(gap.adjacent for gap in closing)
                one = MatchFound(
                    tuple(sorted((one, step) for _, one, step in slots)),
                    ends if by_absence else high,
                    by_absence=by_absence,
                    until=ends if closing else None,
                    witnesses=tuple(self.since(gap.after, slots)[0] + 1 for gap in closing if gap.adjacent),
                )
                complete.append(one)
        going_on = [filling for filling in fillings if filling[0].from_state(filling[1])[1]]
        if len(going_on) > 1:
            going_on = self._different(going_on)
        if greedy:
            answer = self._extended(going_on, place, low, high)
            if answer is not None:
                return answer
            going_on = []
        if self._reach is not None:
            for one in complete:
                self._reach.matched(one)
        elif complete:
            raise reduce(MatchFound.or_earlier, complete)
        elif open_until is not None:
            return open_until
        return self._extended(going_on, place, low, high) if going_on else None

    def _ended_badly(self, gap: Gap, slots: tuple[Filled, ...], ends: int) -> bool:
        if not gap.adjacent:
            return self.violation(gap, slots, len(self.hits), ends + 1) is not None
        last, _ = self.since(gap.after, slots)
        return self.is_one_of(gap, last + 1, slots) and self.hits[last + 1].time <= ends

    def _lasts(self, gap: Gap, slots: tuple[Filled, ...], ends: int) -> bool:
        """Whether an event to come could still end a gap badly that lasts until the window ends."""
        if gap.adjacent and self.since(gap.after, slots)[0] + 1 < len(self.hits):
            return False
        return ends > self.watermark

    def _different(self, fillings: list[Filling]) -> list[Filling]:
        """One of all that have the same future. Raises `Exhausted` if there are too many."""
        found = {self._future(filling): filling for filling in reversed(fillings)}
        if len(found) > MAX_FILLINGS:
            raise Exhausted
        return list(reversed(found.values()))

    def _filled(
        self, ways: Ways, filled: int, slots: tuple[Filled, ...], place: int
    ) -> list[tuple[int, Filling]]:
        """All ways to fill a slot with this event, each with the rank of the slot."""
        hit = self.hits[place]
        found: list[tuple[int, Filling]] = []
        for number, bit, step_bits, steps, after, rank in ways.from_state(filled)[1]:
            if not hit.steps & step_bits or (after and not self._is_after(slots, after, hit.time)):
                continue
            if ways.unless[number] and self._is_of(ways.unless[number], hit, slots):
                continue
            decided = [ways.bounds[one] for one in ways.decided_by(filled, number)] if ways.bounds else []
            for step in steps:
                if not hit.steps >> step & 1 or not self._guarded(step, hit, slots):
                    continue
                if decided and not all(self._keeps(bound, slots, place) for bound in decided):
                    continue
                found.append((rank, (ways, filled | bit, (*slots, (number, place, step)))))
        return found

    def _keeps(self, bound: Gap | SlotLink, slots: tuple[Filled, ...], place: int) -> bool:
        """Whether the event at this place, as the first behind a bound, is where and when it may be."""
        time = self.hits[place].time
        if isinstance(bound, Gap) and not bound.adjacent:
            return self.violation(bound, slots, place, time) is None
        last, latest = self.since(bound.after, slots)
        if isinstance(bound, Gap):
            return not self.is_one_of(bound, last + 1, slots)
        if bound.join.strict and place != last + 1:
            return False
        return bound.join.within is None or time - latest <= bound.join.within

    def _is_after(self, slots: tuple[Filled, ...], after: int, time: int) -> bool:
        hits = self.hits
        for number, place, _ in slots:  # noqa: SIM110 - for every event that is looked at, and a loop is faster
            if after >> number & 1 and hits[place].time >= time:
                return False
        return True

    def _guarded(self, step: int, hit: Hit, slots: tuple[Filled, ...]) -> bool:
        guard = self.automaton.guards[step]
        if guard is None:
            return True
        names, hits = self.automaton.step_names, self.hits
        events: dict[str, list[dict[str, Value]]] = {}
        for _, place, earlier in slots:  # in their order
            events.setdefault(names[earlier], []).append(hits[place].values or {})
        own = hit.values or {}
        events.setdefault(names[step], []).append(own)
        return guard(own, events)

    def is_one_of(self, gap: Gap, place: int, slots: tuple[Filled, ...]) -> bool:
        """Whether the event at this place, if there is one, is what a gap excludes."""
        if place >= len(self.hits):
            return False
        return self._is_of(gap.steps, self.hits[place], slots)

    def _is_of(self, steps: tuple[int, ...], hit: Hit, slots: tuple[Filled, ...]) -> bool:
        return any(hit.steps >> step & 1 and self._guarded(step, hit, slots) for step in steps)

    def violation(self, gap: Gap, slots: tuple[Filled, ...], until: int, before: int) -> int | None:
        """The least time of what must not happen and stands after the slots of a gap, and before a place and a
        time."""
        hits = self.hits
        since, begins = self.since(gap.after, slots)
        slots = tuple(slot for slot in slots if slot[1] < until)
        least = self._least
        found: int | None = None
        for place in range(since + 1, until):
            if least[place] >= before:
                break
            hit = hits[place]
            if begins < hit.time < before and self._is_of(gap.steps, hit, slots):
                found = before = hit.time
        return found

    def since(self, after: int, slots: tuple[Filled, ...]) -> tuple[int, int]:
        """The last place and the latest time of these slots, as far as they are filled."""
        hits = self.hits
        last, latest = -1, NEVER
        for number, place, _ in slots:
            if after >> number & 1:
                last, latest = max(last, place), max(latest, hits[place].time)
        return last, latest

    def _future(self, filling: Filling) -> object:
        """All that can matter to what follows one way to fill slots, beside the last event and the window."""
        ways, filled, slots = filling
        if self.automaton.guarded:
            return id(ways), slots
        times: list[object] = [self.since(after, slots)[1] for after in ways.afters if after & filled]
        bounds: tuple[Gap | SlotLink, ...] = (*ways.variant.gaps, *ways.variant.links)
        times += [self.since(bound.after, slots) for bound in bounds if not bound.before & filled]
        return id(ways), filled, tuple(times)


def _steps_from(hits: list[Hit]) -> list[int]:
    """For each place the steps of which there are events from there on, as bits; and none behind the last."""
    steps = [hit.steps for hit in hits] + [0]
    for place in range(len(hits) - 1, -1, -1):
        steps[place] |= steps[place + 1]
    return steps


def _least_from(hits: list[Hit]) -> list[int]:
    """For each place the least time from there on: where a search need not look further."""
    least = [hit.time for hit in hits]
    for place in range(len(least) - 2, -1, -1):
        least[place] = min(least[place], least[place + 1])
    return least
