"""Who has been introduced to this broker's journal, on disk; see `introductions` for what that is good for."""

from __future__ import annotations

from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.facts import FactKind, FactsFound, values_of
from palio.routing.durable.network.topology import Topology


class Introduced:
    """The brokers whose readers this journal knows. `tick` is set when somebody is to be asked."""

    def __init__(self, desk: Desk, topology: Topology, tick: Alarm, facts: FactsFound) -> None:
        self._desk = desk
        self._topology = topology
        self._tick = tick
        self._brokers = set(values_of(FactKind.INTRODUCED, facts))
        self.asked_in: int | None = None  # the epoch in which those who are missing were asked

    @property
    def missing(self) -> set[str]:
        """The brokers whose readers are not known."""
        return self._topology.known - self._brokers - {self._desk.broker}

    @property
    def is_due(self) -> bool:
        """Whether somebody is missing who may be in reach, and was not asked.

        Who does not answer cannot be reached before the network changes.
        """
        return self.asked_in != self._topology.epoch and bool(self.missing)

    def wanted(self) -> tuple[str, ...]:
        """Those who are missing; they are asked with the next tick, if they may be in reach."""
        if self.is_due:
            self._tick.set()
        return tuple(sorted(self.missing))

    def add(self, broker: str) -> None:
        """Note that the readers of a broker are known."""
        self._brokers.add(broker)
        self._desk.save(FactKind.INTRODUCED.of(broker), 1)

    def forget(self, broker: str) -> None:
        """Forget a broker that is gone for good; if that is this one, everyone has lived without it."""
        gone = self._brokers if broker == self._desk.broker else self._brokers & {broker}
        for one in sorted(gone):
            self._brokers.discard(one)
            self._desk.save(FactKind.INTRODUCED.of(one), None)
        if gone:
            self.asked_in = None
