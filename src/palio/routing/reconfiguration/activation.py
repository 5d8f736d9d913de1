"""`Activation`: a new link that is told nothing which only the other end of it has wanted.

What a broker wanted is in the tables behind it, up to the lost link and beyond. If another link takes the place
of that one, rows that have only served to lead there would be told back over the new link, and be of no use. So
before the new link is told any rows, its ends find out which these are. Two lists say it, and both can be made
by the end of the lost link that has a new name for its part:

- what came on the lost link, and from nowhere else (`held`): not to be told by the end on this side;
- what was told on the lost link and did not come on it (`others`): on that side only this one has wanted it, so
  it is not to be told by the other end. If the other end of the lost link has died, nobody else could know.

An end of a new link asks for them (`Prepare`) if its part has its name by a loss, unless it made that name
itself; the other end, which knows from the hello that it will be told, waits.

1. An end waits for `WAITS_FOR` seconds at the most; then it tells everything.
2. Only what has one source is held back, and as soon as it has another one, it is told (`Sight.show`).
3. What is still there after a while is told: what seemed to be of no use may have come to be.
4. Whoever waits, or holds back, tells nobody that the whole network knows something: as for `Waves.hold`.
5. With durable delivery nothing is held back: what becomes live relies on rows that have been told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.protocol.reconfiguration import DIGEST_BYTES, MOST_DIGESTS, Activate
from palio.routing.core import Core
from palio.routing.effects import Send, SetTimer
from palio.routing.links import NeighbourLink
from palio.routing.reconfiguration.parking import ParkedRows
from palio.routing.table import Table, TableEntry

TIMER = "activation"
# Seconds for which a new link waits for what is not to be told on it (a guess: some ways through a network).
WAITS_FOR = 1.0


class Waiting(msgspec.Struct, eq=False):
    """A new link that is not told any rows yet: its `peer` or our own side (`ours`) is to say which not."""

    link: NeighbourLink
    until: float
    ours: bool
    peer: bool
    held: set[bytes] = msgspec.field(default_factory=set)


class Activation:
    """New links that wait, and what is held back from those that do not. `open_port` begins to tell."""

    def __init__(self, core: Core, open_port: Callable[[NeighbourLink], None]) -> None:
        self._core = core
        self._open_port = open_port
        self._waiting: dict[str, Waiting] = {}
        self._held: dict[str, float] = {}  # by port, until when something is held back from it
        self._timer_at: float | None = None

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def wait(self, link: NeighbourLink, *, ours: bool, peer: bool) -> None:
        """Tell no rows on a link before it is known which not."""
        self._waiting[link.broker] = Waiting(link, self._core.now + WAITS_FOR, ours, peer)
        self._set_timer()

    def lost(self, broker: str) -> None:
        self._waiting.pop(broker, None)
        self._held.pop(broker, None)

    def said_by_peer(self, broker: str, digests: bytes, seconds: float) -> None:
        """The other end of a link has said what is not to be told on it."""
        waiting = self._waiting.get(broker)
        if waiting is not None:
            waiting.peer = False
            self._hold(waiting, digests, seconds)

    def said_by_ours(self, message: Activate, seconds: float) -> None:
        """Our own side has said what it is not to tell on new links, and what their other ends are not to."""
        for waiting in [one for one in self._waiting.values() if one.ours]:
            waiting.ours = False
            self._core.effects.append(Send(waiting.link.broker, Activate(message.part, message.others)))
            self._hold(waiting, message.held, seconds)

    def _hold(self, waiting: Waiting, digests: bytes, seconds: float) -> None:
        waiting.held |= taken_apart(digests)
        if not (waiting.ours or waiting.peer):
            self._open(waiting, seconds)

    def _open(self, waiting: Waiting, seconds: float) -> None:
        broker = waiting.link.broker
        del self._waiting[broker]
        if waiting.held:
            for side in (self._core.tables.filters, self._core.tables.advertisements):
                side.table.hold_back(broker, _held_back(side.table, waiting.held))
            self._held[broker] = self._core.now + seconds
            self._set_timer()
        self._open_port(waiting.link)

    def on_timer(self, seconds: float) -> None:
        """Tell what has been held back, or waited for, for long enough."""
        self._timer_at = None
        now = self._core.now
        for waiting in [one for one in self._waiting.values() if one.until <= now]:
            self._open(waiting, seconds)
        for port in [port for port, until in self._held.items() if until <= now]:
            del self._held[port]
            for side in (self._core.tables.filters, self._core.tables.advertisements):
                side.table.release(port)
        self._set_timer()

    def _set_timer(self) -> None:
        due = min([*[one.until for one in self._waiting.values()], *self._held.values()], default=None)
        if due is not None and due != self._timer_at:
            self._timer_at = due
            self._core.effects.append(SetTimer(TIMER, due))

    # The two lists

    def told_alone(self, link: NeighbourLink) -> bytes:
        """What was told on a link that is about to be closed, and on its other side nobody else has wanted.

        Somebody else would have been heard of, wherever there is something to be heard.
        """
        tables, port = self._core.tables, link.broker
        told: list[Any] = []
        for entry in tables.filters.table.entries():
            if port in entry.sent and (not tables.attracts or any(port in one.sent for one in entry.partners)):
                told.append(entry.item)
        told += [entry.item for entry in tables.advertisements.table.entries() if port in entry.sent]
        heard = {entry.item for rows in (link.rows, link.advertisements) for entry in rows.values()}
        return together([item for item in told if item not in heard])


def wanted_alone(parked: ParkedRows) -> bytes:
    """What came on a lost link and from nowhere else."""
    entries: list[TableEntry[Any]] = [*parked.link.rows.values(), *parked.link.advertisements.values()]
    return together([entry.item for entry in entries if entry.sources.excluded == parked.port])


def _held_back(table: Table[Any], digests: set[bytes]) -> list[Any]:
    """The places of entries that have one source and are meant by these digests."""
    entries = [entry for entry in table.entries() if entry.sources.excluded is not None]
    return [entry.place for entry in entries if digest_of(entry.item) in digests]


def digest_of(item: Filter | Advertisement) -> bytes:
    """A few bytes for a filter or an advertisement, the same at every broker."""
    return blake2b(item.form, digest_size=DIGEST_BYTES, person=type(item).__name__.encode()).digest()


def together(items: Iterable[Filter | Advertisement]) -> bytes:
    """The digests of all, as far as they may be told at once."""
    return b"".join([digest_of(item) for item in items][:MOST_DIGESTS])


def taken_apart(digests: bytes) -> set[bytes]:
    return {digests[begin : begin + DIGEST_BYTES] for begin in range(0, len(digests), DIGEST_BYTES)}
