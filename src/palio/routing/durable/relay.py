"""A relay: a broker that routes and keeps nothing, in a network whose other brokers have journals.

It has neither journal nor store, and nobody waits for it. What durable delivery needs of everyone on the way it
does all the same, by the same parts as others:

1. *Epochs* (`topology`). It counts its links, and passes on what others count, before anything else that it
   sends. So what passes it in one epoch has lost nothing here; what comes in another one leaves without any.
2. *Polls and letters* (`polling`, `unicast`). It passes questions on, and answers with its epoch alone; letters
   and progress take the ways that the answers have shown.
3. *Nothing that lasts is promised here.* It tells what it has heard at once, without having anybody on disk;
   whom it tells of are strangers to others at first (`strangers`). When its last link goes it forgets all that
   it was told.

What lasts may not be asked of it (`KeepsNothing`): to publish, since what is confirmed has to be on a disk, and
all that is about durable subscriptions and journals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from palio.model.errors import PalioError
from palio.protocol.durable import letters, peers
from palio.routing.durable.alarm import TICK, Alarm
from palio.routing.durable.desk import Desk, DurableSettings
from palio.routing.durable.network.membership import CountingLinks
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.progress import PassingReports
from palio.routing.durable.network.topology import Counts, Topology
from palio.routing.durable.network.unicast import Unicast
from palio.routing.effects import Send

MOST_NAMED = 5  # brokers to which a client is sent


class KeepsNothing(PalioError):
    """A request for something that lasts, at a relay."""

    broker: str
    others: tuple[str, ...]

    def sentence(self) -> str:
        where = f": {', '.join(self.others)}" if self.others else ", when one is connected"
        return (
            f"The broker {self.broker!r} is a relay: it passes events on and keeps nothing. "
            f"Ask one with a journal{where}."
        )


class RelaySurroundings(Protocol):
    """What a relay needs of the router around it."""

    @property
    def incarnation(self) -> int:
        """How often the broker has begun anew."""

    def neighbours(self) -> Mapping[str, Any]:
        """The brokers to which there is a link in use."""

    def mark_ways(self, entry: str, source: str | None) -> list[tuple[str, str]]:
        """Where a mark goes on, and under which entry."""

    def began_anew(self, broker: str) -> None:
        """Handles that another broker has begun another life."""


class Relay:
    """The part of a relay in durable delivery."""

    def __init__(self, broker: str, around: RelaySurroundings) -> None:
        self._around = around
        incarnation = around.incarnation
        self._desk = desk = Desk(broker, DurableSettings(), incarnation)
        self._tick = tick = Alarm(desk, TICK, desk.settings.tick)
        self.topology = topology = Topology(broker, incarnation, {}, {}, is_relay=True)
        self.links = links = CountingLinks(around.neighbours)
        self.polling = polling = Polling(desk, links.brokers, topology, incarnation << 30)
        self._letters = Unicast(desk, polling, tick, {})
        self._passing = PassingReports(desk, topology, polling, around.mark_ways, tick)
        self.link_handlers: dict[type, Callable[[str, Any], None]] = {
            peers.TopologyChanged: self._hear,
            peers.Marks: self._passing.hear,
            peers.Ask: self._asked,
            peers.Told: lambda source, message: polling.told(message, source),
            letters.Carry: self._carry,
        }

    @property
    def epoch(self) -> int:
        return self.topology.epoch

    def begin(self, effects: list[Any], now: float) -> None:
        """Begin to handle a message; its effects are put there."""
        self._desk.effects, self._desk.now = effects, now

    def link_gained(self, neighbour: str, *, is_relay: bool) -> None:
        if is_relay:
            self.links.relays.add(neighbour)
        self.links.counting.add(neighbour)
        topology = self.topology
        own = topology.change()
        for name in self.links.brokers():
            if name == neighbour:
                self._tell(
                    name, topology.all(), tuple(topology.forgotten.items()), tuple(topology.relays.items())
                )
            else:
                self._tell(name, (), (), own)
        self._changed()

    def link_lost(self, neighbour: str) -> None:
        self.polling.link_lost(neighbour)
        self.links.counting.discard(neighbour)
        self.links.relays.discard(neighbour)
        own = self.topology.change()
        if not self.links.counting:
            self.topology.forget_all()
        for name in self.links.brokers():
            self._tell(name, (), (), own)
        self._changed()

    def on_timer(self, name: str) -> None:
        if name != TICK:
            return
        self._tick.rang()
        if self._letters.ways_missing:
            self._letters.ways_missing = False
            self._answer(self.polling.ask())  # whoever answers shows the way to it
        if self._passing.tell():
            self._letters.ways_missing = True
            self._tick.set()

    def others(self) -> tuple[str, ...]:
        """Brokers that have a journal, as far as is known here: neighbours first."""
        known, near = self.topology.known, self.links.brokers()
        names = [name for name in sorted(near) if name in known]
        return (*names, *sorted(known - set(names)))

    def refusal(self) -> KeepsNothing:
        """What a client is told that asks for something that lasts."""
        return KeepsNothing(self._desk.broker, self.others()[:MOST_NAMED])

    # From neighbours

    def _hear(self, source: str, message: peers.TopologyChanged) -> None:
        topology = self.topology
        forgotten = tuple([one for one in message.forgotten if topology.forget(*one)])
        versions = message.versions + message.strangers
        anew = {broker for broker, version in versions if topology.begins_anew(broker, version)}
        news, relays = topology.hear(versions), topology.hear_relays(message.relays)
        for broker, _ in news:
            if broker in anew:
                self._around.began_anew(broker)
        own = self._desk.broker
        if any(broker == own for broker, _ in forgotten):
            relays = (*relays, (own, topology.relays[own]))  # it is there after all
        if news or forgotten or relays:
            for name in self.links.brokers():
                if name != source or any(relay == own for relay, _ in relays):
                    self._tell(name, news, forgotten, relays)
            self._changed()

    def _asked(self, source: str, ask: peers.Ask) -> None:
        if self.polling.hear(ask, source):
            self._answer(ask)

    def _answer(self, ask: peers.Ask) -> None:
        self.polling.answer(peers.Told(ask.asker, ask.number, (self.topology.epoch,)))

    def _carry(self, source: str, letter: letters.Carry) -> None:
        if letter.receiver != self._desk.broker:  # otherwise it was one with a journal when that was written
            self._letters.deliver(letter)

    def _tell(self, broker: str, versions: Counts, forgotten: Counts, relays: Counts) -> None:
        self._desk.effects.append(Send(broker, peers.TopologyChanged(versions, forgotten, relays)))

    def _changed(self) -> None:
        self._passing.epoch_changed()
        self.polling.forget_ways()
