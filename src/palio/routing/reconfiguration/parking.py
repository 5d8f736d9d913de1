"""`Reconfiguration`: what becomes of the rows of a link that is lost.

The simplest protocol, `strawman`, drops them at once: everybody behind is told, and if another link takes the
place of the lost one soon, told again that they are back. With the others they are *parked* for a while. Then
the rows that come on the new link usually find what they say in the tables already, and nobody else hears of
the change.

1. A parked row attracts no events, is not told to a new neighbour, and still stands with those who were told of
   it: nothing is taken back before it is dropped (`sight`).
2. Every parked row is dropped: when its time has come, when the link to the same neighbour is lost once more,
   or when there are `MOST_PARKED` lots. So tables end up as if the lost link had never been.
3. Nothing is parked where nobody was told of it: a leaf drops its rows at once, and quietly.
4. Settings count from the next lost link on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from palio.routing.core import Core
from palio.routing.effects import SetTimer
from palio.routing.links import NeighbourLink
from palio.routing.reconfiguration.settings import ReconfigurationSettings

TIMER = "reconfiguration"
# Lots of parked rows, each of another neighbour (a guess: eight times as many as a broker should have). The
# oldest goes first.
MOST_PARKED = 64
# Rows are parked on ports that no broker has the name of.
_PARKED = "\0"


class ParkedRows(msgspec.Struct, eq=False):
    """The rows of a lost link, and until when they are parked."""

    port: str
    link: NeighbourLink
    until: float


class ReconfigurationStatistics(msgspec.Struct, frozen=True):
    """What became of lost links. `waiting` are those whose rows are parked now."""

    protocol: str
    waiting: int = 0
    rows: int = 0  # parked now, advertisements, too
    parked: int = 0  # lost links whose rows were parked
    expired: int = 0  # of these, those whose rows were dropped when their time had come


class Reconfiguration:
    """Parks and drops rows. What a broker tells its neighbours follows from the tables."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.settings: ReconfigurationSettings = core.configuration.reconfiguration
        self._parked: dict[str, ParkedRows] = {}  # by neighbour, in the order in which links were lost
        self._lots: Counter[str] = Counter()  # by port: a link may be lost again before all is dropped
        self._timer_at: float | None = None
        self._counts = {"parked": 0, "expired": 0}

    def link_lost(self, link: NeighbourLink) -> None:
        """Handles a link of the acyclic network that is gone; its port is closed."""
        seconds = self.settings.parks_for
        if seconds and self._core.waves.ports and (link.rows or link.advertisements):
            self._park(link, seconds)
        else:
            self._drop_now(link)

    def _drop_now(self, link: NeighbourLink) -> None:
        self._core.deferred.add(("link", link.broker), self._dropping(link, link.broker))

    def on_timer(self) -> None:
        """Drop what has been parked for long enough."""
        self._timer_at = None
        for parked in [one for one in self._parked.values() if one.until <= self._core.now]:
            self._counts["expired"] += 1
            self._drop(parked)
        self._set_timer()

    def statistics(self) -> ReconfigurationStatistics:
        links = [one.link for one in self._parked.values()]
        rows = sum([len(link.rows) + len(link.advertisements) for link in links])
        return ReconfigurationStatistics(self.settings.protocol, len(links), rows, **self._counts)

    def _park(self, link: NeighbourLink, seconds: float) -> None:
        former = self._parked.get(link.broker)
        if former is None and len(self._parked) >= MOST_PARKED:
            former = next(iter(self._parked.values()))
        if former is not None:
            self._drop(former)
        port = _PARKED + link.broker
        self._lots[port] += 1
        self._core.tables.park(link.rows, link.advertisements, link.broker, port)
        self._parked[link.broker] = ParkedRows(port, link, self._core.now + seconds)
        self._counts["parked"] += 1
        self._set_timer()

    def _drop(self, parked: ParkedRows) -> None:
        del self._parked[parked.link.broker]
        self._core.deferred.add(("link", parked.port), self._unparking(parked))

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
