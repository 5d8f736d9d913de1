"""`ChaosOracle`: what everybody had to get, and what came of it. It shares no code with what routes: a filter
is two numbers to it, and everything that it knows was seen by clients.

Promises, each of which a test breaks on purpose:

1. What was confirmed comes to every durable subscription that wants it, at the latest when all faults are over.
2. What comes was published, is wanted by who gets it, and is there under one name (origin and sequence) only.
3. What comes again to a durable subscription says that it may have come before (`redelivered`); to a transient
   one nothing comes twice.
4. Events of a publisher come in the order in which they were published, as far as they come for the first time.
5. While nothing is wrong, before the first fault and after the last one, nothing is lost for anybody.

What transient subscriptions miss while something is wrong is no broken promise: it is counted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

Seen: TypeAlias = tuple[str, int]  # a publisher, and its count
Key: TypeAlias = tuple[str, int]  # an origin, and its sequence

# Values that events have: 0 to this, without it.
VALUES = 100
# Violations that are kept; all are counted.
_MOST_KEPT = 100


class WantedValues(msgspec.Struct, frozen=True):
    """What somebody wants: events whose value is at least `low`, and below `high`."""

    low: int = 0
    high: int = VALUES

    def wants(self, value: int) -> bool:
        return self.low <= value < self.high

    @property
    def text(self) -> str:
        """The filter, as it is asked for."""
        return f"exists(chaos) and value >= {self.low} and value < {self.high}"


class Separation(msgspec.Struct):
    """Brokers that cannot reach any other one for a while."""

    some: frozenset[str]
    begin: float
    end: float = math.inf

    def separates(self, one: str, other: str) -> bool:
        return (one in self.some) != (other in self.some)


class PublishedEvent(msgspec.Struct):
    """An event, and who got it: sets of transient takers are bits."""

    publisher: str
    value: int
    at: float
    confirmed: float | None = None
    key: Key | None = None
    came: int = 0
    late: int = 0


class WatchedTaker:
    """Somebody who gets events, and what it has seen."""

    def __init__(self, name: str, broker: str, wish: WantedValues) -> None:
        self.name = name
        self.broker = broker
        self.wish = wish
        self.newest: dict[str, int] = {}  # by publisher; of a transient one, of this connection
        self.got = 0
        self.again = 0


class TransientTaker(WatchedTaker):
    """Somebody who publishes, too, and is owed what is published while it is there."""

    def __init__(self, name: str, wish: WantedValues, bit: int) -> None:
        super().__init__(name, name, wish)
        self.bit = bit
        self.count = 0  # of events that it has published
        self._reasons = {"new"}  # why it is away
        self._since = 0.0
        self._spans: list[tuple[float, float]] = []  # in which it was there

    @property
    def there_since(self) -> float | None:
        return None if self._reasons else self._since

    def away(self, reason: str, at: float) -> None:
        if not self._reasons:
            self._spans.append((self._since, at))
        self._reasons.add(reason)

    def back(self, reason: str, at: float) -> None:
        """That is no reason any more, and perhaps there is no other."""
        if reason in self._reasons:
            self._reasons.discard(reason)
            if not self._reasons:
                self._since = at
                self.newest.clear()

    def was_there(self, begin: float, end: float) -> bool:
        """All the time between."""
        if not self._reasons and self._since <= begin:
            return True
        return any(first <= begin and end <= last for first, last in self._spans)


class DurableTaker(WatchedTaker):
    """It is owed everything that is confirmed."""

    def __init__(self, name: str, broker: str, wish: WantedValues) -> None:
        super().__init__(name, broker, wish)
        self.waiting: dict[Seen, float] = {}  # what was confirmed and has not come: when it was confirmed
        self.seen: set[Seen] = set()
        self.owed = 0
        self.longest = 0.0  # that something was waited for, in seconds
        self.longest_unexcused = 0.0  # the same, while nobody was away; as far as it was looked at

    def lag(self, now: float) -> float:
        """For how long it has been waiting for what it misses."""
        return now - next(iter(self.waiting.values())) if self.waiting else 0.0


class ChaosOracle:
    """Clients tell it what they do and see; times are seconds of one clock.

    An event is late if it comes more than `late` seconds after it was published, while nobody was away.
    """

    def __init__(self, late: float = 1.0) -> None:
        self.late = late
        self.events: dict[Seen, PublishedEvent] = {}
        self.transient: dict[str, TransientTaker] = {}
        self.durable: dict[str, DurableTaker] = {}
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self._names: dict[Key, Seen] = {}
        self._order: list[tuple[float, Seen]] = []  # in which events were published
        self._apart: list[Separation] = []

    def wrong(self, sentence: str) -> None:
        """A promise was broken."""
        self.counts["violations"] += 1
        if len(self.violations) < _MOST_KEPT:
            self.violations.append(sentence)

    # Who there is

    def add_transient(self, broker: str, wish: WantedValues) -> TransientTaker:
        """One for a broker, whose name it has."""
        taker = self.transient[broker] = TransientTaker(broker, wish, len(self.transient))
        return taker

    def add_durable(self, name: str, broker: str, wish: WantedValues) -> DurableTaker:
        taker = self.durable[name] = DurableTaker(name, broker, wish)
        return taker

    # What happens

    def apart(self, some: frozenset[str], at: float) -> Separation:
        """These brokers and all others cannot reach each other, until its `end` is set."""
        separation = Separation(some, at)
        self._apart.append(separation)
        return separation

    def published(self, publisher: str, value: int, at: float) -> int:
        """Somebody begins to publish an event. Returns its count."""
        self.counts["published"] += 1
        source = self.transient[publisher]
        source.count += 1
        seen = publisher, source.count
        self.events[seen] = PublishedEvent(publisher, value, at)
        self._order.append((at, seen))
        return source.count

    def confirmed(self, publisher: str, count: int, key: Key, at: float) -> None:
        """A broker has confirmed it."""
        seen = publisher, count
        event = self.events[seen]
        event.confirmed = at
        self.counts["confirmed"] += 1
        self._is_named(seen, key)
        for taker in self.durable.values():
            if taker.wish.wants(event.value):
                taker.owed += 1
                if seen not in taker.seen:
                    taker.waiting[seen] = at

    def came(self, taker: str, publisher: str, count: int, key: Key, at: float, *, again: bool) -> None:
        """An event has come to somebody, perhaps `again`, as far as that is said with it."""
        seen = publisher, count
        event = self.events.get(seen)
        who = self.durable.get(taker) or self.transient[taker]
        self.counts["delivered"] += 1
        if event is None:
            self.wrong(f"{taker} got {_name(seen)}, which nobody has published.")
            return
        if not who.wish.wants(event.value):
            self.wrong(f"{taker} got {_name(seen)} of value {event.value}, which it does not want.")
        self._is_named(seen, key)
        if isinstance(who, DurableTaker):
            is_first = self._came_to_durable(who, seen, at, again=again)
        else:
            assert isinstance(who, TransientTaker)
            is_first = self._came_to_transient(who, seen, event, at)
        if is_first:
            who.got += 1
            if count < who.newest.get(publisher, -1):
                self.wrong(f"{taker} got {_name(seen)} after {_name((publisher, who.newest[publisher]))}.")
            who.newest[publisher] = count

    def _came_to_durable(self, who: DurableTaker, seen: Seen, at: float, *, again: bool) -> bool:
        if (since := who.waiting.pop(seen, None)) is not None:
            who.longest = max(who.longest, at - since)
        if seen not in who.seen:
            who.seen.add(seen)
            return True
        who.again += 1
        self.counts["again"] += 1
        if not again:
            self.wrong(f"{who.name} got {_name(seen)} again, and nothing said so.")
        return False

    def _came_to_transient(self, who: TransientTaker, seen: Seen, event: PublishedEvent, at: float) -> bool:
        bit = 1 << who.bit
        if event.came & bit:
            who.again += 1
            self.counts["doubled"] += 1
            self.wrong(f"{who.name} got {_name(seen)} twice.")
            return False
        event.came |= bit
        if at - event.at > self.late and self.owes(event, who):
            event.late |= bit
            self.counts["late"] += 1
        return True

    def _is_named(self, seen: Seen, key: Key) -> None:
        event = self.events[seen]
        if event.key is None:
            event.key = key
            if (other := self._names.setdefault(key, seen)) != seen:
                self.wrong(f"{_name(seen)} and {_name(other)} are both called {key[0]}/{key[1]}.")
        elif event.key != key:
            self.wrong(f"{_name(seen)} is there twice: as {event.key[0]}/{event.key[1]} and {key[0]}/{key[1]}.")

    # What came of it

    def is_complete(self) -> bool:
        """Whether no durable subscription misses anything."""
        return not any(taker.waiting for taker in self.durable.values())

    def unexcused_lag(self, taker: DurableTaker, now: float) -> float:
        """For how long it has been waiting for something while nobody is away: its own broker and that of
        the publisher are there, and can reach each other.
        """
        home = self.transient[taker.broker].there_since
        oldest: dict[str, float] = {}
        for (publisher, _), at in taker.waiting.items():
            oldest.setdefault(publisher, at)
            if len(oldest) == len(self.transient):
                break
        longest = 0.0
        for publisher, at in oldest.items():
            source = self.transient[publisher].there_since
            if home is not None and source is not None:
                together = [one.end for one in self._apart if one.separates(publisher, taker.broker)]
                longest = max(longest, now - max([at, home, source, *together]))
        return longest

    def owes(self, event: PublishedEvent, taker: TransientTaker) -> bool:
        """Whether who wants it was there when it was published and a moment longer, as was its publisher, and
        they could reach each other. What was not confirmed may never have left its publisher.
        """
        begin, end = event.at, event.at + self.late
        return (
            event.confirmed is not None
            and taker.wish.wants(event.value)
            and taker.was_there(begin, end)
            and self.transient[event.publisher].was_there(begin, end)
            and not any(
                one.begin < end and begin < one.end and one.separates(taker.name, event.publisher)
                for one in self._apart
            )
        )

    def between(self, begin: float, end: float) -> Iterator[tuple[Seen, PublishedEvent]]:
        """What was published from one time up to another, in its order."""
        for _, seen in self._order[bisect_left(self._order, (begin,)) : bisect_left(self._order, (end,))]:
            yield seen, self.events[seen]

    def missed(self, begin: float, end: float) -> Iterator[tuple[Seen, TransientTaker]]:
        """What transient subscriptions should have got of what was published between, and did not."""
        for seen, event in self.between(begin, end):
            for taker in self.transient.values():
                if not event.came >> taker.bit & 1 and self.owes(event, taker):
                    yield seen, taker

    def whole_after(self, begin: float, end: float) -> float | None:
        """How long after `begin` routes were whole: nothing that was published later, up to `end`, is missed.

        It is measured by events: the first one of its publisher that came after the last one that did not; so
        never too short, and too long by less than the pause between two events of a publisher. 0 if nothing is
        missed, and None if until the end something was.
        """
        mended: dict[tuple[str, str], float | None] = {}  # of those pairs for which something was missed
        for _, event in self.between(begin, end):
            for taker in self.transient.values():
                pair = event.publisher, taker.name
                if not event.came >> taker.bit & 1:
                    if self.owes(event, taker):
                        mended[pair] = None
                elif pair in mended and mended[pair] is None:
                    mended[pair] = event.at
        whole = begin
        for at in mended.values():
            if at is None:
                return None
            whole = max(whole, at)
        return whole - begin

    def judge_calm(self, begin: float, end: float, when: str) -> None:
        """Nothing is lost while nothing is wrong."""
        missed: defaultdict[str, list[Seen]] = defaultdict(list)
        for seen, taker in self.missed(begin, end):
            missed[taker.name].append(seen)
        for name, some in missed.items():
            self.wrong(
                f"{name} misses {len(some):,} events {when}, when nothing was wrong; {_name(some[0])} is one."
            )

    def judge_end(self, now: float) -> None:
        """All faults are over, and there was time enough."""
        for taker in self.durable.values():
            if taker.waiting:
                first, since = next(iter(taker.waiting.items()))
                self.wrong(
                    f"{taker.name} at {taker.broker} misses {len(taker.waiting):,} confirmed events; "
                    f"{_name(first)} was confirmed {now - since:.1f} seconds ago."
                )


def _name(seen: Seen) -> str:
    return f"{seen[0]}#{seen[1]}"
