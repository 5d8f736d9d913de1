"""The events of one pattern and one key that can still matter, and what a watermark makes of them.

`hits` are known and in their order; `waiting` have come, but others may still come before them. The policies
are decided here. Since an open beginning keeps everything behind it waiting (`search`), what has to be
remembered is always a stretch of events from the first open beginning on; everything before it is forgotten.

A match is told as soon as it is certain, with one exception: where it depends on the way in which an earlier
beginning is completed what that takes (`consume own`) or where the next match may begin (`skip to`), and there
are several ways, a match behind it waits until one of them is decided, also if all of them would let it be.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import reduce
from operator import attrgetter
from typing import TypeAlias

import msgspec

from palio.matching.patterns.automaton import Automaton
from palio.matching.patterns.hit import FOREVER, NEVER, Hit
from palio.matching.patterns.search import Exhausted, MatchFound, Search

# What was found: the events with the numbers of their steps, when it was complete, and whether it is only a
# part that timed out then.
Finding: TypeAlias = "tuple[tuple[tuple[Hit, int], ...], int, bool]"

# Events that one pattern remembers for one key: some hours of a busy symbol. Beyond it the oldest are
# forgotten.
MAX_HITS = 1_024
# Open beginnings behind which `consume own` looks on in one look: each costs a search. Behind more of them a
# match waits, as it would by default.
MAX_BESIDE = 16


_order_of_time = attrgetter("time", "position")


class Partition(msgspec.Struct, array_like=True):
    """What is remembered, when it has to be looked at again at the latest, and the watermark of the last
    look."""

    hits: list[Hit] = []
    waiting: list[Hit] = []
    due: int = FOREVER
    looked: int = NEVER

    def size(self) -> int:
        return len(self.hits) + len(self.waiting)

    def look(self, automaton: Automaton, watermark: int, losses: Losses) -> list[Finding]:
        """All that is certain now. Forgets what cannot matter any more, and sets when it is due again."""
        policies = automaton.pattern.policies
        self.due = FOREVER
        self._arrive(policies.order == "time", watermark)
        found: list[Finding] = []
        steps = 0
        for hit in self.hits:
            steps |= hit.steps
        if policies.select == "every":
            self._every(automaton, watermark, found, losses)
        elif automaton.mortal or automaton.tells or automaton.can_complete(steps):
            self._first(automaton, watermark, policies.consume, found, losses)
        else:
            self._expire(automaton, watermark)
        self.looked = watermark
        excess = len(self.hits) - MAX_HITS
        if excess > 0:
            losses.overflow += excess
            del self.hits[:excess]
        for hit in self.waiting:
            self.due = min(self.due, hit.time)
        return found

    def _arrive(self, by_time: bool, watermark: int) -> None:
        waiting = self.waiting
        if len(waiting) > 1:
            waiting.sort(key=_order_of_time if by_time else attrgetter("position"))
        ready = bisect_right(waiting, watermark, key=attrgetter("time")) if by_time else len(waiting)
        self.hits += waiting[:ready]
        del waiting[:ready]

    def _expire(self, automaton: Automaton, watermark: int) -> None:
        """No match is possible yet: forget what comes before the first beginning that has time left."""
        starters, within = automaton.starters, automaton.within
        alive = watermark - within
        for place, hit in enumerate(self.hits):
            if hit.time > alive and hit.steps & starters and not hit.spent:
                del self.hits[:place]
                self.due = hit.time + within
                return
        self.hits.clear()

    def _first(
        self, automaton: Automaton, watermark: int, consume: str, found: list[Finding], losses: Losses
    ) -> None:
        hits, starters = self.hits, automaton.starters
        search = Search(automaton, hits, watermark, waiting=self.waiting, skip_spent=consume != "none")
        place, keep = 0, None
        taken = _Taken()
        while place < len(hits):
            hit = hits[place]
            if not hit.steps & starters or hit.spent:
                place += 1
                continue
            answer = _first_from(search, place, losses)
            if answer is None and automaton.tells and not hit.told:
                answer = self._partial(search, place, keep is None or consume == "none", found, losses)
            if isinstance(answer, MatchFound) and taken.leaves(answer):
                found.append(_finding(hits, answer))
                place = _spend(hits, place, answer, consume, automaton.skips_to)
                continue
            if answer is not None:
                if not isinstance(answer, MatchFound):
                    self.due = min(self.due, answer)
                keep = place if keep is None else keep
                if consume not in ("own", "none") or (consume == "own" and not taken.take(search, place)):
                    break
            place += 1
        del hits[: len(hits) if keep is None else keep]

    def _partial(
        self, search: Search, place: int, decided: bool, found: list[Finding], losses: Losses
    ) -> int | None:
        """Tells what became of a beginning that no match came of; or says when it can be told. As long as it is
        not decided what earlier beginnings take, it waits."""
        try:
            partial = search.partial(place)
        except Exhausted:
            losses.abandoned += 1
            return None
        if partial is None:
            return None
        if not decided:
            return FOREVER
        if partial.time > search.watermark:
            return partial.time
        self.hits[place].told = True
        found.append(_finding(self.hits, partial, timed_out=True))
        return None

    def _every(self, automaton: Automaton, watermark: int, found: list[Finding], losses: Losses) -> None:
        """Every match of which an event, or the end of an absence, is new since the last look."""
        hits = self.hits
        search = Search(automaton, hits, watermark, waiting=self.waiting, skip_spent=False)
        keep = None
        for place, hit in enumerate(hits):
            ends = hit.time + automaton.within
            if not hit.steps & automaton.starters or ends <= self.looked:
                continue
            try:
                reach = search.all(place)
            except Exhausted:
                losses.abandoned += 1
                until = ends if ends > watermark else None
            else:
                until = reach.until
                hit.told = hit.told or bool(reach.matches)
                if until is None and automaton.tells and not hit.told:
                    until = self._partial(search, place, True, found, losses)
                for ways in reach.matches.values():
                    if all(match.is_new(hits, self.looked) for match in ways):
                        found.append(_finding(hits, reduce(MatchFound.or_earlier, ways)))
            if until is not None:
                self.due = min(self.due, until)
                keep = place if keep is None else keep
        for hit in hits:
            hit.spent = True
        del hits[: len(hits) if keep is None else keep]


class _Taken:
    """Events that earlier beginnings, which are still open, could take from later matches: where a match uses
    up its own events only, one that has none of these is certain, whatever becomes of the others."""

    def __init__(self) -> None:
        self._places: set[int] = set()
        self._beginnings = 0

    def leaves(self, match: MatchFound) -> bool:
        return not any(place in self._places for place, _ in match.chosen)

    def take(self, search: Search, place: int) -> bool:
        """All that a beginning could use; False if that is not known, and everything behind it has to wait."""
        self._beginnings += 1
        if self._beginnings > MAX_BESIDE:
            return False
        try:
            self._places |= search.all(place, places=True).places
        except Exhausted:
            return False
        return True


class Losses(msgspec.Struct):
    """What was given up, by the reason."""

    overflow: int = 0
    abandoned: int = 0


def _finding(hits: list[Hit], match: MatchFound, *, timed_out: bool = False) -> Finding:
    return tuple((hits[one], step) for one, step in match.chosen), match.time, timed_out


def _first_from(search: Search, place: int, losses: Losses) -> MatchFound | int | None:
    try:
        return search.first(place)
    except Exhausted:
        losses.abandoned += 1
        return None


def _spend(hits: list[Hit], place: int, match: MatchFound, consume: str, skips_to: int | None) -> int:
    """Marks what a match uses up, and says where the next one may begin."""
    if skips_to is not None:
        places = [one for one, step in match.chosen if step == skips_to] or [place]
        return max(place + 1, places[0 if consume == "first" else -1])
    if consume == "none":
        hits[place].spent = True
        return place + 1
    if consume == "own":
        for one, _ in match.chosen:
            hits[one].spent = True
        return place + 1
    last = match.chosen[-1][0]
    if match.by_absence:  # its window is part of it, and ends after its last event
        for hit in hits[last + 1 :]:
            hit.spent = hit.spent or hit.time <= match.time
    return last + 1
