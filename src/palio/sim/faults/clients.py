"""`FaultClients`: who is told what a broker has for a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.routing.durable.effects import Hand
from palio.sim.faults.keepers import FaultKeeper
from palio.sim.faults.publishers import FaultPublisher
from palio.sim.faults.station import FaultyStation
from palio.sim.faults.takers import FaultConsumer

if TYPE_CHECKING:
    from palio.sim.faults.world import World


class FaultClients:
    def __init__(self, world: World) -> None:
        self.world = world
        world.clients = self
        self.publishers: dict[str, FaultPublisher] = {}
        self.takers: dict[str, FaultConsumer] = {}
        self.keepers: dict[str, FaultKeeper] = {}  # by broker
        self._shifted: dict[str, str] = {}  # publishers that go on under another name, at another broker

    def publisher(self, name: str) -> FaultPublisher:
        """Who speaks for a publisher now."""
        return self.publishers[self._shifted.get(name, name)]

    def shift(self, name: str, broker: str) -> None:
        """Let a publisher go on at another broker."""
        former, broker = self.publisher(name), self.world.place_for(broker)
        session = self._shifted[name] = f"{name}@{broker}"
        if session not in self.publishers:
            station = self.world.stations[broker]
            publisher = FaultPublisher(
                self.world, session, station, advertises=former.advertises, documents=former.documents
            )
            self.publishers[session] = publisher
            publisher.connect()

    def elsewhere(self, publisher: FaultPublisher) -> FaultPublisher:
        """Who goes on for a publisher whose broker leaves."""
        name = publisher.name.partition("@")[0]
        if self.publisher(name) is publisher:
            self.shift(name, self.world.place_for(publisher.station.name))
        return self.publisher(name)

    def answered(self, station: FaultyStation, session: str, answer: object) -> None:
        if session in self.publishers:
            self.publishers[session].answered(answer)
        elif station.name in self.keepers and self.keepers[station.name].owns(session):
            self.keepers[station.name].answered(session, answer)
        else:
            self.takers[session.partition(".")[0]].answered(session, answer)

    def handed(self, station: FaultyStation, hand: Hand) -> None:
        if station.name in self.keepers and self.keepers[station.name].owns(hand.session):
            self.keepers[station.name].handed(hand)
        else:
            self.takers[hand.name].handed(station, hand)

    def began(self, station: FaultyStation) -> None:
        """A broker has begun."""
        if station.name in self.keepers:
            self.keepers[station.name].connect()

    def lost(self, broker: str) -> None:
        """A broker has crashed."""
        for publisher in list(self.publishers.values()):
            if publisher.station.name == broker:
                publisher.lost()
        for taker in self.takers.values():
            taker.lost(broker)
        if broker in self.keepers:
            self.keepers[broker].lost()

    def unanswered(self) -> list[str]:
        clients: list[FaultPublisher | FaultConsumer | FaultKeeper] = [
            *self.publishers.values(),
            *self.takers.values(),
            *self.keepers.values(),
        ]
        return [what for client in clients for what in client.unanswered()]
