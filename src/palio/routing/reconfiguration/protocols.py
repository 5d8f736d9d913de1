"""`Reconfiguration`: what becomes of the rows of a link that is lost, and what a new one is told.

The simplest protocol, `strawman`, drops them at once: everybody behind is told, and if another link takes the
place of the lost one soon, told again that they are back. With the others they are *parked* (`parking`). Then
the rows that come on the new link usually find what they say in the tables already, and nobody else hears of
the change. They differ in when parked rows are dropped:

`deferred`
    after some seconds.
`notified`
    when the rows of the new link have passed. Which link is lost and which one takes its place, the names of
    parts say (`links`): who loses its parent makes a name for its part, and the link that joins this part with
    another one is the new link. Each end of it sends a `Flush` behind its rows, with the name of the other's
    part. It goes the way on which that name came, back to the broker that made it, which is one end of the
    lost link. If its part is one again with the one from which it was lost, it sends the `Flush` on to the
    other end: up the tree as it is now, and down as it was before. That end drops its rows, and answers; then
    the first one does. Links keep the order, so all rows have passed wherever a `Flush` arrives. If the other
    end is dead, nobody answers: of the rows that came from there, some may come back by links that others find.
    What does not arrive is made up for by the seconds of `deferred`.
`informed`
    as `notified`; and the new link is not told what only its other end has wanted (`activation`).

1. Nothing is parked where nobody was told of it: a leaf drops its rows at once, and quietly.
2. Settings count from the next lost link on, or from the next new one.
3. What others say makes rows be dropped sooner, or told a little later, and nothing else; and it is passed on,
   and waited for, at a pace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from palio.protocol.peers import Component, Hello, LinkKind
from palio.protocol.reconfiguration import MOST_STEPS, Activate, Flush, Prepare
from palio.routing.core import Core
from palio.routing.effects import Send
from palio.routing.links import NeighbourLink, made_by_loss
from palio.routing.pace import Pace
from palio.routing.reconfiguration.activation import TIMER as ACTIVATION
from palio.routing.reconfiguration.activation import Activation, wanted_alone
from palio.routing.reconfiguration.parking import TIMER as PARKING
from palio.routing.reconfiguration.parking import Parking
from palio.routing.reconfiguration.settings import ReconfigurationSettings

TIMERS = (PARKING, ACTIVATION)
# Messages of a neighbour that are heard at once, and then one in so many seconds (guesses: as many as brokers
# that have lost the same neighbour).
HEARD_AT_ONCE = 64
HEARD_EVERY = 0.05
# Of the latest repairs so many say how long rows are parked (a guess).
REPAIRS_REMEMBERED = 16
# New links that wait before they are told anything: so many at once, and then one in so many seconds (guesses:
# others come without end from somebody who means no good, and nobody shall have to wait for them).
WAITS_AT_ONCE = 16
WAIT_EVERY = 4.0
# Losses of parents that are remembered until it is heard that they are repaired (a guess).
MOST_LOSSES = 16


class Loss(msgspec.Struct, frozen=True):
    """The link to a broker is gone, by which this side has a name of its own.

    `former` is the name that both sides had, and `way` the path on which it came, up to the lost neighbour.
    """

    broker: str
    former: Component
    way: tuple[str, ...]
    told_alone: bytes = b""  # digests (`activation`)
    at: float = 0.0


class ReconfigurationStatistics(msgspec.Struct, frozen=True):
    """What became of lost links. `waiting` are those whose rows are parked now."""

    protocol: str
    waiting: int = 0
    rows: int = 0  # parked now, advertisements, too
    parked: int = 0  # lost links whose rows were parked
    flushed: int = 0  # of these, those whose rows were dropped as all rows of the new link had passed
    expired: int = 0  # those whose rows were dropped when their time had come


class Reconfiguration:
    """Decides when rows are dropped. What a broker tells its neighbours follows from the tables."""

    def __init__(self, core: Core, open_port: Callable[[NeighbourLink], None]) -> None:
        self._core = core
        self.settings: ReconfigurationSettings = core.configuration.reconfiguration
        self._parking = Parking(core)
        self._activation = Activation(core, self._open)
        self._open_port = open_port
        self._owed: dict[str, Flush] = {}  # by neighbour whose link waits
        self._named_at = float("-inf")  # when our part got the name that it has
        self._activated: dict[str, Component] = {}  # by neighbour that waits: the name of our part in the hello
        self._repairs: deque[float] = deque(maxlen=REPAIRS_REMEMBERED)  # how long they have taken
        self._waits = Pace(WAITS_AT_ONCE, WAIT_EVERY)
        self._losses: dict[Component, Loss] = {}  # by the name that our part has had since
        self._repaired: deque[Component] = deque(maxlen=MOST_LOSSES)  # of the losses, those that are repaired
        self._paces: dict[str, Pace] = {}
        self._counts = {"parked": 0, "flushed": 0, "expired": 0}

    # Links

    def link_lost(self, link: NeighbourLink, loss: Loss | None) -> None:
        """Handles a link of the acyclic network that is gone; its port is closed.

        There is a `loss` if our part has a new name by it.
        """
        self._paces.pop(link.broker, None)
        self._activation.lost(link.broker)
        for waiting in (self._owed, self._activated):
            waiting.pop(link.broker, None)
        part = None
        if loss is not None:
            part = self._core.naming.component
            self._losses[part] = loss
            if len(self._losses) > MOST_LOSSES:
                del self._losses[next(iter(self._losses))]
        seconds = self.settings.parks_for(self._repairs)
        if seconds and self._core.waves.ports and (link.rows or link.advertisements):
            self._counts["parked"] += 1
            self._parking.park(link, part, seconds)
        else:
            self._parking.drop_at_once(link)

    def closing(self, link: NeighbourLink) -> bytes:
        """What to remember of what was told on a link, before its port is closed."""
        return self._activation.told_alone(link) if self._informs else b""

    def named(self) -> None:
        """Handles that our part has another name."""
        self._named_at = self._core.now

    def activates(self, link: NeighbourLink) -> bool:
        """Whether to say in a hello that the other end is going to hear what not to tell."""
        part = self._core.naming.component
        fresh = self._core.now <= self._named_at + self.settings.hold_back
        if not (self._informs and fresh and made_by_loss(part) and link.kind is LinkKind.PEER):
            return False
        self._activated[link.broker] = part
        return True

    @property
    def _informs(self) -> bool:
        return self.settings.informs and self._core.between is None

    @property
    def is_activating(self) -> bool:
        """Whether a new link waits before it is told anything."""
        return self._activation.is_waiting

    def _activate(self, link: NeighbourLink, hello: Hello) -> bool:
        """Whether a link has to wait before it is told anything."""
        part = self._activated.pop(link.broker, None)
        ours, peer = False, hello.activates and self._informs and self._waits.takes(self._core.now)
        if part is not None and link.knows_reconfiguration:
            loss = self._losses.get(part)
            if part.broker != self._core.broker and self._waits.takes(self._core.now):
                ours = self._pass_on(self._core.naming.direction(part), Prepare(part, (self._core.broker,)))
            if not ours:
                told_alone = loss.told_alone if loss is not None else b""
                self._core.effects.append(Send(link.broker, Activate(part, told_alone)))
        if ours or peer:
            self._activation.wait(link, ours=ours, peer=peer)
        return ours or peer

    def link_gained(self, link: NeighbourLink, hello: Hello) -> bool:
        """Handles a link of the acyclic network that is in use from now on.

        Returns whether it is to be told of rows at once.
        """
        waits = self._activate(link, hello)
        if self.settings.notifies and link.knows_reconfiguration and made_by_loss(hello.component):
            if waits:
                self._owed[link.broker] = Flush(hello.component)
            else:
                self._core.behind_rows.append(Send(link.broker, Flush(hello.component)))
        return not waits

    def on_timer(self, name: str) -> None:
        """Drop what has been parked for long enough, and tell what has been held back."""
        if name == PARKING:
            self._counts["expired"] += self._parking.expire()
        else:
            self._activation.on_timer(self.settings.hold_back)

    # What neighbours tell

    def hear(self, neighbour: str, message: Any) -> None:
        pace = self._paces.get(neighbour)
        if pace is None:
            pace = self._paces[neighbour] = Pace(HEARD_AT_ONCE, HEARD_EVERY)
        if not pace.takes(self._core.now):
            return
        if isinstance(message, Flush):
            self._flush(neighbour, message)
        elif isinstance(message, Prepare):
            self._prepare(neighbour, message)
        else:
            self._hear_activate(neighbour, message)

    def _flush(self, neighbour: str, message: Flush) -> None:
        ours, part = self._core.broker, message.part
        if (
            message.steps >= MOST_STEPS
            or len(message.back) >= MOST_STEPS
            or message.way[:1] not in ((), (ours,))
        ):
            return
        onward = replace(message, way=message.way[1:], steps=message.steps + 1)
        if onward.way:
            back = (*message.back, ours) if message.back else ()
            self._pass_on(onward.way[0], replace(onward, back=back))
        elif part.broker == ours:
            self._flush_own(part, confirmed=bool(message.way))
        elif message.way:
            self._drop(part.broker, None)
            if message.back:
                self._pass_on(neighbour, Flush(part, message.back[::-1]))
        else:
            self._pass_on(self._core.naming.direction(part), onward, but=neighbour)

    def _flush_own(self, part: Component, *, confirmed: bool) -> None:
        """Our part, which had this name, is joined with another one; or the other end says that this is its."""
        loss = self._losses.get(part)
        if loss is None:
            return
        if part not in self._repaired:
            self._repaired.append(part)
            self._repairs.append(self._core.now - loss.at)
        if confirmed:
            del self._losses[part]
            self._drop(loss.broker, part)
        elif self._core.naming.component == loss.former and self.settings.notifies:
            way = way_between(self._core.naming.path, loss.way)
            if way:
                self._pass_on(way[0], Flush(part, way, (self._core.broker,)))

    def _prepare(self, neighbour: str, message: Prepare) -> None:
        part, way = message.part, message.way
        if part.broker != self._core.broker:
            if len(way) < MOST_STEPS:
                onward = Prepare(part, (*way, self._core.broker))
                self._pass_on(self._core.naming.direction(part), onward, but=neighbour)
            return
        held = others = b""
        loss = self._losses.get(part)
        if loss is not None:
            others = loss.told_alone
            parked = self._parking.of(loss.broker)
            if parked is not None and parked.part == part:
                held = wanted_alone(parked)
        self._pass_on(neighbour, Activate(part, held, others, way[::-1]))

    def _hear_activate(self, neighbour: str, message: Activate) -> None:
        if not message.way:
            self._activation.said_by_peer(neighbour, message.held, self.settings.hold_back)
        elif message.way[0] == self._core.broker:
            onward = message.way[1:]
            if onward:
                self._pass_on(onward[0], replace(message, way=onward))
            else:
                self._activation.said_by_ours(message, self.settings.hold_back)

    def _drop(self, broker: str, part: Component | None) -> None:
        """Drop what is parked of the link to a broker, if its loss has given this name to our part."""
        parked = self._parking.of(broker)
        if parked is not None and parked.part == part:
            self._counts["flushed"] += 1
            self._parking.drop(parked)

    def _pass_on(self, to: str | None, message: Flush | Prepare | Activate, but: str = "") -> bool:
        """Whether there is a neighbour of that name, other than one, which knows such messages."""
        link = self._core.links.get(to) if to is not None and to != but else None
        if link is None or not link.established or not link.knows_reconfiguration:
            return False
        self._core.behind_rows.append(Send(link.broker, message))
        return True

    def _open(self, link: NeighbourLink) -> None:
        """Begin to tell rows on a link that had to wait."""
        self._open_port(link)
        owed = self._owed.pop(link.broker, None)
        if owed is not None:
            self._core.behind_rows.append(Send(link.broker, owed))

    # Looking in

    def statistics(self) -> ReconfigurationStatistics:
        links = [one.link for one in self._parking.all()]
        rows = sum([len(link.rows) + len(link.advertisements) for link in links])
        return ReconfigurationStatistics(self.settings.protocol, len(links), rows, **self._counts)


def way_between(ours: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """From the last broker of a path to that of another one: up to where they part, and down from there.

    Both begin at the same broker. Empty if they do not, or end at the same one.
    """
    same = 0
    while same < min(len(ours), len(other)) and ours[same] == other[same]:
        same += 1
    return (*reversed(ours[same - 1 : -1]), *other[same:]) if same else ()
