"""`SharingWorld`: brokers, links and disks, around the routers of live brokers, and one queue of events.

Links keep order, and lose what is under way when they break; their ends find out at different times. Disks
write one thing after the other. What a run comes to is noted in a `SharedRecord`ing of its own (`oracle`).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from palio.model.filter import Filter
from palio.protocol.peers import Hello, Interest, Update
from palio.protocol.requests import Subscribe
from palio.protocol.sharing import Share, Verified, Verify
from palio.routing.configuration import Configuration
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import STORE_EFFECTS, Recovered, StoreEffect
from palio.routing.effects import CloseLink, Send, SharedReady
from palio.routing.facts import Facts
from palio.routing.occurrences import LinkDown, LinkUp, Open
from palio.routing.router import Router
from palio.sim.effect_loop import EffectLoop
from palio.sim.faults.disk import Disk
from palio.sim.shared.oracle import SharedOracle
from palio.sim.shared.script import CrashBroker, CutLink, FillDisk, PutRecord, SharedScenario
from palio.sim.topologies import TopologyLink

KIND = "sim"
QUIET = 20.0  # simulated seconds after which everything is over
_DISK = 0.004  # seconds of a write
_NOTICED = 0.05  # seconds, at the most, until an end of a link notices that it is gone
_REDIAL = 0.5  # seconds until a link is tried again that a broker did not want


class SimulatedBroker:
    """A broker with its disk. `life` is another one after each crash and each beginning."""

    def __init__(self, name: str, *, older: bool) -> None:
        self.name = name
        self.older = older
        self.disk = Disk()
        self.router: Router | None = None
        self.life = 0
        self.timers: dict[str, int] = {}
        self.wires: dict[str, SimulatedWire] = {}
        self.writing = False


class SimulatedWire:
    """A link. What is sent in one epoch is lost in the next."""

    def __init__(self, one: SimulatedBroker, other: SimulatedBroker, link: TopologyLink) -> None:
        self.ends = {one.name: (other, link.kind), other.name: (one, link.other_kind)}
        self.cost, self.latency = link.cost, link.latency
        self.wanted = True
        self.epoch = 0
        self.told: set[str] = set()  # ends that take it for up
        self.arrival = dict.fromkeys(self.ends, 0.0)  # of the last message, by where it goes
        self.rows_sent: set[str] = set()  # ends that have sent rows in this epoch


class SharingWorld:
    """One run. `play` it; what is wrong is in `oracle.violations`."""

    def __init__(self, scenario: SharedScenario, make_router: Callable[..., Router] = Router) -> None:
        self._scenario = scenario
        self._make_router = make_router
        self._chance = Random(f"shared world {scenario.seed}")
        self._facts = Facts()
        self._loop = EffectLoop[SimulatedBroker](
            {
                Send: lambda broker, effect: self._send(broker, effect.broker, effect.message),
                CloseLink: self._close,
                SharedReady: lambda broker, effect: self.oracle.ready(broker, effect.tokens, self.now),
                **dict.fromkeys(STORE_EFFECTS, self._keep),
            },
            done=lambda broker: self.oracle.links_of(broker, self.now),
        )
        self._after, self._run = self._loop.after, self._loop.run
        self._handle, self._carry_out = self._loop.handle, self._loop.carry_out
        layout = scenario.layout()
        self.brokers = [SimulatedBroker(f"b{one}", older=one in scenario.older) for one in range(layout.size)]
        self.wires: list[SimulatedWire] = []
        self.oracle = SharedOracle(self.brokers)
        for link in layout.links:
            one, other = self.brokers[link.one], self.brokers[link.other]
            wire = one.wires[other.name] = other.wires[one.name] = SimulatedWire(one, other, link)
            self.wires.append(wire)

    def play(self) -> list[str]:
        """Lets everything happen, then repairs all. Returns what was wrong."""
        for broker in self.brokers:
            self._begin(broker)
        for number, happening in enumerate(self._scenario.happenings):
            self._after(1.0 + happening.at, self._happen, number, happening)
        self._run(QUIET)
        self.oracle.look_at_rest(self.now)
        for wire in self.wires:
            wire.wanted = True
            self._connect(wire)
        self._run(2 * QUIET)
        self.oracle.look_at_end(self.now, durable=self._scenario.durable)
        return self.oracle.violations

    @property
    def now(self) -> float:
        return self._loop.now

    def _happen(self, number: int, happening: Any) -> None:
        match happening:
            case PutRecord(_, at, key, removes, everywhere):
                self._put(self.brokers[at], number, f"k{key}", removes=removes, everywhere=everywhere)
            case CutLink(_, link, back):
                wire = self.wires[link]
                wire.wanted = back is not None
                self._cut(wire)
                if back is not None:
                    self._after(back + 2 * _NOTICED, self._connect, wire)
            case CrashBroker(_, at, share, back):
                self._crash(self.brokers[at], share, back)
            case FillDisk(_, at, lasts):
                self.brokers[at].disk.full = True
                self._after(lasts, setattr, self.brokers[at].disk, "full", False)

    def _put(self, broker: SimulatedBroker, number: int, key: str, *, removes: bool, everywhere: bool) -> None:
        if broker.router is None:
            return
        value = None if removes else f"value {number}".encode()
        records = broker.router.shared.changed(((KIND, key, value),))
        self.oracle.puts(broker, number, key, records[0] if records else None, self.now, everywhere=everywhere)
        self._carry_out(broker, broker.router.share(records, number, self.now, everywhere=everywhere))

    # Brokers

    def _begin(self, broker: SimulatedBroker) -> None:
        if broker.router is not None:
            return
        broker.life += 1
        broker.disk.open(broker.life, f"{broker.name} {broker.life}")
        durable = DurableSettings() if self._scenario.durable else None
        configuration = Configuration(broker=broker.name, incarnation=broker.life, durable=durable)
        recovered = broker.disk.recovered() if self._scenario.durable else Recovered()
        broker.router = self._make_router(configuration, self._facts, recovered)
        self._carry_out(broker, broker.router.on_timer("begin", self.now))
        self._handle(broker, Open(), "session")
        self._handle(broker, Subscribe("h", Filter.parse(f'at = "{broker.name}"')), "session")
        for wire in broker.wires.values():
            self._after(self._chance.uniform(0.0, 0.1), self._connect, wire)

    def _crash(self, broker: SimulatedBroker, share: float, back: float) -> None:
        if broker.router is None:
            return
        broker.disk.crash(share)
        broker.router, broker.writing = None, False
        broker.life += 1
        broker.timers.clear()
        for wire in broker.wires.values():
            self._cut(wire)
        self.oracle.crashed(broker)
        self._after(back + 2 * _NOTICED, self._begin, broker)

    def _keep(self, broker: SimulatedBroker, effect: StoreEffect) -> None:
        broker.disk.queue.append(effect)
        self._write(broker)

    def _write(self, broker: SimulatedBroker) -> None:
        if not broker.writing and broker.disk.queue and not broker.disk.is_blocked:
            broker.writing = True
            self._after(_DISK, self._written, broker, broker.life)

    def _written(self, broker: SimulatedBroker, life: int) -> None:
        if broker.life != life:
            return
        broker.writing = False
        message = broker.disk.complete()
        if message is not None:
            self._handle(broker, message, "store")
        self._write(broker)

    # Links

    def _close(self, broker: SimulatedBroker, effect: CloseLink) -> None:
        wire = broker.wires[effect.broker]
        self._cut(wire)
        self._after(_REDIAL, self._connect, wire)

    def _connect(self, wire: SimulatedWire) -> None:
        up = all(end.router is not None for end, _ in wire.ends.values())
        if not wire.wanted or not up or wire.told:
            return
        wire.epoch += 1
        wire.told, wire.rows_sent = set(wire.ends), set()
        for name, (other, kind) in wire.ends.items():
            broker = next(end for end, _ in wire.ends.values() if end.name == name)
            self._handle(broker, LinkUp(kind, wire.cost), other.name)

    def _cut(self, wire: SimulatedWire) -> None:
        wire.epoch += 1
        self.oracle.cut(wire)
        for name in list(wire.told):
            self._after(self._chance.uniform(0.0, _NOTICED), self._notice, wire, name)

    def _notice(self, wire: SimulatedWire, name: str) -> None:
        if name in wire.told:
            wire.told.discard(name)
            other, _ = wire.ends[name]
            self._handle(other.wires[name].ends[other.name][0], LinkDown(), other.name)

    def _send(self, broker: SimulatedBroker, to: str, message: Any) -> None:
        wire = broker.wires[to]
        other, _ = wire.ends[broker.name]
        if broker.older or other.older:
            if isinstance(message, Hello):
                message = msgspec.structs.replace(message, shared=None)
            elif isinstance(message, Share | Verify | Verified):
                self.oracle.wrong(f"{broker.name} tells {to} what one of them does not know: {message}.")
                return
        had = None
        if _brings_rows(message) and broker.name not in wire.rows_sent:
            wire.rows_sent.add(broker.name)
            had = self.oracle.state_of(broker)
        arrival = max(wire.arrival[to], self.now + wire.latency * self._chance.uniform(0.5, 1.5))
        wire.arrival[to] = arrival
        ends = broker, other
        self._after(arrival - self.now, self._arrive, wire, wire.epoch, ends, message, had)

    def _arrive(
        self,
        wire: SimulatedWire,
        epoch: int,
        ends: tuple[SimulatedBroker, SimulatedBroker],
        message: Any,
        had: Any,
    ) -> None:
        sender, broker = ends
        if wire.epoch == epoch and broker.router is not None and broker.name in wire.told:
            if had is not None and not broker.older and not sender.older:
                self.oracle.rows_arrive(broker, sender, had)
            self._handle(broker, message, sender.name)


def _brings_rows(message: Any) -> bool:
    update = message.update if isinstance(message, Interest) else message
    return isinstance(update, Update) and bool(update.add)
