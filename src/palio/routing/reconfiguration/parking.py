"""`Parking`: the rows of lost links, as long as they are parked.

1. A parked row attracts no events, is not told to a new neighbour, and still stands with those who were told of
   it: nothing is taken back before it is dropped (`sight`).
2. Every parked row is dropped: when its time has come, when the link to the same neighbour is lost once more,
   or when there are `MOST_PARKED` lots. So tables end up as if the lost link had never been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from palio.protocol.peers import Component
from palio.routing.core import Core
from palio.routing.effects import SetTimer
from palio.routing.links import NeighbourLink

TIMER = "reconfiguration"
# Lots of parked rows, each of another neighbour (a guess: eight times as many as a broker should have). The
# oldest goes first.
MOST_PARKED = 64
# Rows are parked on ports of names that begin so, as those of no neighbours do.
PARKED = "\0"


class ParkedRows(msgspec.Struct, eq=False):
    """The rows of a lost link, and until when they are parked.

    `part` is the name that this side has by the loss, if that is a new one.
    """

    port: str
    link: NeighbourLink
    part: Component | None
    until: float


class Parking:
    """Parked rows by neighbour, in the order in which links were lost."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._parked: dict[str, ParkedRows] = {}
        self._lots: Counter[str] = Counter()  # by port: a link may be lost again before all is dropped
        self._timer_at: float | None = None

    def park(self, link: NeighbourLink, part: Component | None, seconds: float) -> None:
        """Park what came on a link, whose port is closed."""
        former = self._parked.get(link.broker)
        if former is None and len(self._parked) >= MOST_PARKED:
            former = next(iter(self._parked.values()))
        if former is not None:
            self.drop(former)
        port = PARKED + link.broker
        self._lots[port] += 1
        self._core.tables.park(link.rows, link.advertisements, link.broker, port)
        self._parked[link.broker] = ParkedRows(port, link, part, self._core.now + seconds)
        self._set_timer()

    def of(self, broker: str) -> ParkedRows | None:
        """What is parked of the link to a broker."""
        return self._parked.get(broker)

    def all(self) -> list[ParkedRows]:
        return list(self._parked.values())

    def drop(self, parked: ParkedRows) -> None:
        del self._parked[parked.link.broker]
        self._core.deferred.add(("link", parked.port), self._unparking(parked))

    def drop_at_once(self, link: NeighbourLink) -> None:
        """Drop the rows of a lost link without having parked them."""
        self._core.deferred.add(("link", link.broker), self._dropping(link, link.broker))

    def expire(self) -> int:
        """Drop what has been parked for long enough. Returns how many lots these were."""
        self._timer_at = None
        expired = [one for one in self._parked.values() if one.until <= self._core.now]
        for parked in expired:
            self.drop(parked)
        self._set_timer()
        return len(expired)

    def _unparking(self, parked: ParkedRows) -> Iterator[None]:
        yield from self._dropping(parked.link, parked.port)
        self._lots[parked.port] -= 1
        if not self._lots[parked.port]:
            del self._lots[parked.port]
            self._core.tables.unpark(parked.port)

    def _dropping(self, link: NeighbourLink, port: str) -> Iterator[None]:
        tables = self._core.tables
        for number in list(link.rows):
            tables.filters.drop(link.rows, (number,), port)
            yield
        for number in list(link.advertisements):
            tables.advertisements.drop(link.advertisements, (number,), port)
            yield

    def _set_timer(self) -> None:
        due = min([one.until for one in self._parked.values()], default=None)
        if due is not None and due != self._timer_at:
            self._timer_at = due
            self._core.effects.append(SetTimer(TIMER, due))
