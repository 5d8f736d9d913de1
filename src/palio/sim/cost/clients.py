"""Clients of a measured run: publishers that keep to a rate, and takers that acknowledge soon.

Who has lost its broker waits for it. What a publisher could not say meanwhile, and what was not confirmed, it
says when its broker is back, with the same ids as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.subscriptions import Acknowledged, Attach, DurableReady
from palio.protocol.requests import Publish, Published, Ready, Refused, Subscribe
from palio.routing.durable.effects import Hand
from palio.routing.effects import Deliver
from palio.routing.occurrences import Open
from palio.sim.faults.station import FaultyStation

if TYPE_CHECKING:
    from palio.sim.cost.world import MeasuredWorld

# Seconds in which a taker deals with what came, and then acknowledges all of it.
_ACKNOWLEDGE_EACH = 0.01


@dataclass(eq=False, repr=False)
class CostPublisher:
    """Publishes at one origin. What is not confirmed yet is kept, by the number of its request."""

    _world: MeasuredWorld
    name: str
    station: FaultyStation
    unconfirmed: dict[int, Notification] = field(default_factory=dict)

    def open(self) -> None:
        self._world.post(self.station, Open(), self.name)
        for number, notification in self.unconfirmed.items():
            self._world.post(self.station, Publish((notification,), number), self.name)

    def say(self, number: int, notification: Notification) -> None:
        self.unconfirmed[number] = notification
        if self.station.router is not None:
            self._world.post(self.station, Publish((notification,), number), self.name)


@dataclass(eq=False, repr=False)
class CostConsumer:
    """Has one subscription, of either kind."""

    _world: MeasuredWorld
    name: str
    station: FaultyStation
    topic: int
    durable: bool
    ready: bool = False
    got: dict[int, float] = field(default_factory=dict)  # by the number of the notification: when it came first
    _unacknowledged: list[int] = field(default_factory=list)

    def open(self) -> None:
        world = self._world
        filter = Filter.parse(f"topic = {self.topic}")
        world.post(self.station, Open(), self.name)
        wish = Attach(self.name, filter) if self.durable else Subscribe(self.name, filter, ready=True)
        world.post(self.station, wish, self.name)

    def handed(self, delivery: int) -> None:
        """Deliveries are acknowledged together."""
        if not self._unacknowledged:
            self._world.after(_ACKNOWLEDGE_EACH, self._acknowledge)
        self._unacknowledged.append(delivery)

    def _acknowledge(self) -> None:
        done, self._unacknowledged = tuple(self._unacknowledged), []
        if self.station.router is not None:
            self._world.post(self.station, Acknowledged(self.name, done), self.name)


class MeasuredClients:
    """All clients, and what they saw."""

    def __init__(self, world: MeasuredWorld) -> None:
        self.world = world
        self.publishers: dict[str, CostPublisher] = {}
        self.takers: dict[str, CostConsumer] = {}
        self.said: dict[int, tuple[float, int]] = {}  # by number: when somebody wanted to say it, and its topic
        self.twice = 0  # first attempts of what had come before
        self.refused: list[str] = []
        world.clients = self

    def say(self, publisher: str, number: int, topic: int) -> None:
        """Somebody wants to publish something now."""
        self.said[number] = self.world.now, topic
        notification = Notification(
            {"n": number, "topic": topic, "value": number / 7}, id=f"{publisher}-{number}"
        )
        self.publishers[publisher].say(number, notification)

    # What the world tells

    def answered(self, station: FaultyStation, session: str, answer: object) -> None:
        match answer:
            case Published(number):
                self.publishers[session].unconfirmed.pop(number, None)
            case DurableReady() | Ready():
                self.takers[session].ready = True
            case Refused():
                self.refused.append(f"{session}: {answer.reason}")

    def handed(self, station: FaultyStation, hand: Hand) -> None:
        for delivery, attempt, envelope in hand.deliveries:
            self._came(hand.name, envelope.notification, first=attempt == 1)
            self.takers[hand.name].handed(delivery)

    def delivered(self, deliver: Deliver) -> None:
        for envelope in deliver.envelopes:
            self._came(deliver.session, envelope.notification, first=True)

    def _came(self, name: str, notification: Notification, *, first: bool) -> None:
        got = self.takers[name].got
        number = notification["n"]
        assert isinstance(number, int)
        if number in got:
            self.twice += first
        else:
            got[number] = self.world.now

    def lost(self, broker: str) -> None:
        """A broker has crashed; its clients wait for it."""

    def began(self, station: FaultyStation) -> None:
        """A broker has begun; nobody here has waited for that."""

    def back(self, broker: str) -> None:
        """A broker has begun anew."""
        clients: list[CostPublisher | CostConsumer] = [*self.publishers.values(), *self.takers.values()]
        for client in clients:
            if client.station.name == broker:
                client.open()
