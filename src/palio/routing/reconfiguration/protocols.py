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
    lost link. If the other end is in the same part again, that one sends it on to there: up the tree as it is
    now, and down as it was before. Links keep the order, so all rows have passed wherever a `Flush` arrives.
    What does not arrive is made up for by the seconds of `deferred`.

1. Nothing is parked where nobody was told of it: a leaf drops its rows at once, and quietly.
2. Settings count from the next lost link on, or from the next new one.
3. What others say makes rows be dropped sooner, and nothing else; and it is passed on at a pace.
"""

from __future__ import annotations

from typing import Any

import msgspec

from palio.protocol.peers import Component, Hello
from palio.protocol.reconfiguration import MOST_STEPS, Flush
from palio.routing.core import Core
from palio.routing.effects import Send
from palio.routing.links import NeighbourLink, made_by_loss
from palio.routing.pace import Pace
from palio.routing.reconfiguration.parking import Parking
from palio.routing.reconfiguration.settings import ReconfigurationSettings

# Messages of a neighbour that are heard at once, and then one in so many seconds (guesses: as many as brokers
# that have lost the same neighbour).
HEARD_AT_ONCE = 64
HEARD_EVERY = 0.05
# Losses of parents that are remembered until it is heard that they are repaired (a guess).
MOST_LOSSES = 16


class Loss(msgspec.Struct, frozen=True):
    """The link to a broker is gone, by which this side has a name of its own.

    `former` is the name that both sides had, and `way` the path on which it came, up to the lost neighbour.
    """

    broker: str
    former: Component
    way: tuple[str, ...]


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

    def __init__(self, core: Core) -> None:
        self._core = core
        self.settings: ReconfigurationSettings = core.configuration.reconfiguration
        self._parking = Parking(core)
        self._losses: dict[Component, Loss] = {}  # by the name that our part has had since
        self._paces: dict[str, Pace] = {}
        self._counts = {"parked": 0, "flushed": 0, "expired": 0}

    # Links

    def link_lost(self, link: NeighbourLink, loss: Loss | None) -> None:
        """Handles a link of the acyclic network that is gone; its port is closed.

        There is a `loss` if our part has a new name by it.
        """
        self._paces.pop(link.broker, None)
        part = None
        if loss is not None:
            part = self._core.naming.component
            self._losses[part] = loss
            if len(self._losses) > MOST_LOSSES:
                del self._losses[next(iter(self._losses))]
        seconds = self.settings.parks_for
        if seconds and self._core.waves.ports and (link.rows or link.advertisements):
            self._counts["parked"] += 1
            self._parking.park(link, part, seconds)
        else:
            self._parking.drop_at_once(link)

    def link_gained(self, link: NeighbourLink, hello: Hello) -> None:
        """Handles a link of the acyclic network that is in use from now on."""
        if self.settings.notifies and link.knows_reconfiguration and made_by_loss(hello.component):
            self._core.behind_rows.append(Send(link.broker, Flush(hello.component)))

    def on_timer(self) -> None:
        """Drop what has been parked for long enough."""
        self._counts["expired"] += self._parking.expire()

    # What neighbours tell

    def hear(self, neighbour: str, message: Any) -> None:
        pace = self._paces.get(neighbour)
        if pace is None:
            pace = self._paces[neighbour] = Pace(HEARD_AT_ONCE, HEARD_EVERY)
        if pace.takes(self._core.now):
            self._flush(neighbour, message)

    def _flush(self, neighbour: str, message: Flush) -> None:
        ours = self._core.broker
        if message.way:
            if message.way[0] != ours:
                return
            onward = message.way[1:]
            if onward:
                self._pass_on(onward[0], message, onward)
            else:
                self._drop(message.part.broker, None)
        elif message.part.broker != ours:
            self._pass_on(self._core.naming.direction(message.part), message, but=neighbour)
        else:
            loss = self._losses.pop(message.part, None)
            if loss is not None:
                self._drop(loss.broker, message.part)
                self._tell_other_end(loss, message.part)

    def _drop(self, broker: str, part: Component | None) -> None:
        """Drop what is parked of the link to a broker, if its loss has given this name to our part."""
        parked = self._parking.of(broker)
        if parked is not None and parked.part == part:
            self._counts["flushed"] += 1
            self._parking.drop(parked)

    def _tell_other_end(self, loss: Loss, part: Component) -> None:
        """The other end of a lost link can drop its rows, too, if our part is one again with that one's."""
        naming = self._core.naming
        if naming.component == loss.former and self.settings.notifies:
            way = way_between(naming.path, loss.way)
            if way:
                self._pass_on(way[0], Flush(part), way)

    def _pass_on(self, to: str | None, message: Flush, way: tuple[str, ...] = (), but: str = "") -> None:
        link = self._core.links.get(to) if to is not None and to != but else None
        if link is None or not link.established or not link.knows_reconfiguration:
            return
        if message.steps < MOST_STEPS and len(way) <= MOST_STEPS:
            onward = msgspec.structs.replace(message, way=way, steps=message.steps + 1)
            self._core.behind_rows.append(Send(link.broker, onward))

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
