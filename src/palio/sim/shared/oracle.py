"""`SharedOracle`: what has to be true of shared records, from what is seen at the edge of the brokers.

It knows who has put what, and what the broker had there at that moment: so which change was made upon which
other one. It knows nothing of counters, names and orders. A change that was made upon another one is *later*;
two of which neither is later than the other are concurrent, and either may count.

1. Who is told that a change is everywhere finds at every broker, to which there was a way all the time since it
   was asked, this change or one that is not earlier; also on disk.
2. When a row of a neighbour comes over a new link, nothing is earlier than what the neighbour had when it said
   it.
3. When all is quiet, brokers between which there is a way have the same, whatever still is cut.
4. When all is repaired, all have the same; no change counts that is earlier than one of which somebody was told
   that it is kept; and nothing is there that nobody has put.
5. Who waits is told, unless the broker has crashed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from palio.protocol.sharing import SharedRecord
from palio.routing.sharing import KIND as KEPT

if TYPE_CHECKING:
    from palio.sim.shared.world import SimulatedBroker, SimulatedWire

State: TypeAlias = dict[str, "SharedVersion | None"]  # by key


class SharedVersion(msgspec.Struct, eq=False):
    """A change that somebody made, upon another one."""

    number: int
    key: str
    value: bytes | None
    upon: SharedVersion | None
    began: float
    by: str
    life: int
    everywhere: bool
    told: bool = False

    def is_earlier_than(self, other: SharedVersion) -> bool:
        before = other.upon
        while before is not None and before is not self:
            before = before.upon
        return before is self


class SharedOracle:
    """What was seen of a run so far."""

    def __init__(self, brokers: list[SimulatedBroker]) -> None:
        self._brokers = {broker.name: broker for broker in brokers}
        self._changes: dict[tuple[str, int, str, bytes | None], SharedVersion] = {}
        self._by_number: dict[int, SharedVersion] = {}
        self._since: dict[frozenset[str], float] = {}  # since when both ends use a link
        self.violations: list[str] = []

    def wrong(self, sentence: str) -> None:
        self.violations.append(sentence)

    # What is seen

    def puts(
        self,
        broker: SimulatedBroker,
        number: int,
        key: str,
        record: SharedRecord | None,
        now: float,
        *,
        everywhere: bool,
    ) -> None:
        upon = self.state_of(broker).get(key)
        if record is None:  # what is there already is put: it is waited for all the same
            value, before = (None, None) if upon is None else (upon.value, upon.upon)
            change = SharedVersion(number, key, value, before, now, broker.name, broker.life, everywhere)
        else:
            change = SharedVersion(number, key, record.value, upon, now, broker.name, broker.life, everywhere)
            self._changes[_version(record)] = change
        self._by_number[number] = change

    def state_of(self, broker: SimulatedBroker) -> State:
        """What a broker has now."""
        if broker.router is None:
            return {}
        return {record.key: self._found(record, broker.name) for record in broker.router.shared}

    def _on_disk(self, broker: SimulatedBroker) -> State:
        values = [value for (kind, _), value in broker.disk.records.items() if kind == KEPT]
        records = [msgspec.msgpack.decode(value, type=SharedRecord) for value in values]
        return {record.key: self._found(record, broker.name) for record in records}

    def _found(self, record: SharedRecord, where: str) -> SharedVersion | None:
        change = self._changes.get(_version(record))
        if change is None:
            self.wrong(f"{where} has what nobody has put: {record}.")
        return change

    def links_of(self, broker: SimulatedBroker, now: float) -> None:
        """A broker has done something: which links do both ends use now?"""
        for name, wire in broker.wires.items():
            other = self._brokers[name]
            both = frozenset((broker.name, name))
            if (
                broker.router is None
                or other.router is None
                or len(wire.told) < 2
                or broker.older
                or other.older
            ):
                self._since.pop(both, None)
            elif broker.name in other.router.neighbours() and name in broker.router.neighbours():
                self._since.setdefault(both, now)
            else:
                self._since.pop(both, None)

    def cut(self, wire: SimulatedWire) -> None:
        self._since.pop(frozenset(wire.ends), None)

    def crashed(self, broker: SimulatedBroker) -> None:
        for name in broker.wires:
            self._since.pop(frozenset((broker.name, name)), None)

    def _reached(self, start: str, since: float) -> list[SimulatedBroker]:
        """All to whom there is a way of links that have been used since then."""
        found = [start]
        for name in found:
            for other in self._brokers[name].wires:
                if other not in found and self._since.get(frozenset((name, other)), since + 1.0) <= since:
                    found.append(other)
        return [self._brokers[name] for name in found]

    # What has to be so

    def ready(self, broker: SimulatedBroker, numbers: tuple[int, ...], now: float) -> None:
        for number in numbers:
            change = self._by_number[number]
            if change.told:
                self.wrong(f"{broker.name} tells twice that change {number} is ready.")
            change.told = True
            reached = self._reached(broker.name, change.began) if change.everywhere else [broker]
            for one in reached:
                self._require(one, self.state_of(one), change, "in memory")
                if one.disk.records or one.disk.facts:
                    self._require(one, self._on_disk(one), change, "on disk")

    def _require(self, broker: SimulatedBroker, state: State, change: SharedVersion, where: str) -> None:
        there = state.get(change.key)
        nothing = there is None and not (change.value is None and change.upon is None)
        if nothing or (there is not None and there.is_earlier_than(change)):
            what = "nothing" if there is None else f"change {there.number}"
            self.wrong(f"SharedVersion {change.number} is ready, and {broker.name} has {what} {where}.")

    def rows_arrive(self, broker: SimulatedBroker, sender: SimulatedBroker, had: State) -> None:
        state = self.state_of(broker)
        for key, theirs in had.items():
            ours = state.get(key)
            if theirs is not None and (ours is None or ours.is_earlier_than(theirs)):
                self.wrong(f"A row of {sender.name} comes to {broker.name} before change {theirs.number}.")

    def look_at_rest(self, now: float) -> None:
        for broker in self._brokers.values():
            if broker.router is not None and not broker.older:
                for other in self._reached(broker.name, now):
                    if self._contents(broker) != self._contents(other):
                        self.wrong(f"All is quiet, and {broker.name} and {other.name} do not have the same.")

    def look_at_end(self, now: float, *, durable: bool) -> None:
        for broker in self._brokers.values():
            if broker.router is None or set(broker.router.neighbours()) != set(broker.wires):
                self.wrong(f"All is repaired, and {broker.name} does not have all its links.")
                return
        self.look_at_rest(now)
        for broker in self._brokers.values():
            state = self.state_of(broker)
            for change in self._by_number.values():
                is_near = broker in self._reached(change.by, now)
                if change.told and is_near and not broker.older:
                    self._require(broker, state, change, "at the end")
                if durable and change.told and is_near and not broker.older:
                    self._require(broker, self._on_disk(broker), change, "on disk at the end")
        for change in self._by_number.values():
            if not change.told and self._brokers[change.by].life == change.life:
                self.wrong(f"Nobody was told what became of change {change.number}.")

    def _contents(self, broker: SimulatedBroker) -> dict[str, Any]:
        return {key: change.value for key, change in self.state_of(broker).items() if change is not None}


def _version(record: SharedRecord) -> tuple[str, int, str, bytes | None]:
    """What tells a version from all others; nothing is concluded from it."""
    return record.key, record.counter, record.broker, record.value
