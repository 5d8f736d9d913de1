"""`run`: one measured scenario, from its network to its costs.

Network, clients and notifications are drawn from independent pieces of the seed, so that they are the same for
transient and durable delivery, and with and without an outage.
"""

from __future__ import annotations

from random import Random
from time import perf_counter

from palio.routing.configuration import Configuration
from palio.routing.durable.desk import DurableSettings
from palio.sim.cost.clients import CostConsumer, CostPublisher, MeasuredClients
from palio.sim.cost.scenario import CostOutcome, CostScenario
from palio.sim.cost.world import MeasuredWorld
from palio.sim.faults.station import FaultyStation, Wire
from palio.sim.metrics import spread
from palio.sim.run import without_collections
from palio.sim.shapes import draw
from palio.sim.topologies import Layout, Paths, lay_out

# Until then brokers are connected, or something is wrong.
_CONNECTED_AT = 20.0
# In this time after the last notification all is quiet, or something is wrong.
_QUIET_WITHIN = 600.0
# Takers of durable subscriptions come one after the other, and not all in one moment.
_ATTACH_EACH = 0.002


def run(scenario: CostScenario) -> CostOutcome:
    """Simulate a scenario. The same scenario gives the same outcome, but for `wall_seconds`."""
    with without_collections():
        return Measured(scenario).outcome()


class Measured:
    """A run that is made, and then asked for what it cost."""

    def __init__(self, scenario: CostScenario) -> None:
        begin = perf_counter()
        self.scenario = scenario
        chance = Random(f"network {scenario.seed}")
        self.layout: Layout = lay_out(draw(scenario.shape, scenario.brokers, chance), "acyclic", chance)
        durable = scenario.delivery == "durable"
        configuration = Configuration(broker="-", durable=DurableSettings() if durable else None)
        self.world = world = MeasuredWorld(scenario.seed, self.layout, configuration, batch=1)
        self.clients = MeasuredClients(world)
        world.run(until=_CONNECTED_AT)
        self._place_clients(durable=durable)
        world.run(until=world.now + _QUIET_WITHIN)
        self.all_ready = all(taker.ready for taker in self.clients.takers.values())
        self.setup, world.counts = world.counts, type(world.counts)()
        self._begin = world.now
        self._read_before = self._reads_one_by_one()
        self.repaired_at = self._begin + scenario.lead + scenario.outage_seconds
        self._plan_notifications()
        if scenario.outage != "none":
            world.after(scenario.lead, self._break)
        self.quiet = world.run(until=self.repaired_at + scenario.tail + _QUIET_WITHIN)
        self.wall_seconds = perf_counter() - begin

    def _place_clients(self, *, durable: bool) -> None:
        scenario, world, clients = self.scenario, self.world, self.clients
        stations = list(world.stations.values())
        Random(f"places {scenario.seed}").shuffle(stations)
        # Origins from the one end and homes from the other: they are different brokers where there are enough.
        self.origins = stations[: scenario.origins]
        self.homes = stations[::-1][: scenario.homes]
        for number, station in enumerate(self.origins):
            publisher = clients.publishers[f"p{number}"] = CostPublisher(world, f"p{number}", station)
            publisher.open()
        interests = Random(f"interests {scenario.seed}")
        for number in range(scenario.subscriptions):
            name, station = f"s{number}", self.homes[number % scenario.homes]
            topic = interests.randrange(scenario.topics)
            taker = clients.takers[name] = CostConsumer(world, name, station, topic, durable=durable)
            world.after(number * _ATTACH_EACH, taker.open)

    def _plan_notifications(self) -> None:
        scenario = self.scenario
        chance = Random(f"notifications {scenario.seed}")
        lead = scenario.lead + scenario.outage_seconds if scenario.outage != "none" else 0.0
        for number in range(round((lead + scenario.tail) * scenario.rate)):
            time = (number + chance.random()) / scenario.rate
            publisher = f"p{chance.randrange(scenario.origins)}"
            self.world.after(time, self.clients.say, publisher, number, chance.randrange(scenario.topics))

    # Outages

    def _break(self) -> None:
        scenario, world = self.scenario, self.world
        if scenario.outage == "link":
            wire = self._link_between(self.origins[0], self.homes[0])
            wire.cut_until = self.repaired_at
            world.cut(wire, 0.0)
            world.after(scenario.outage_seconds, world.connect, wire)
        else:
            victim = self.homes[0] if scenario.outage == "home" else self.origins[0]
            world.crash(victim, 0.0, scenario.outage_seconds)

    def _link_between(self, one: FaultyStation, other: FaultyStation) -> Wire:
        numbers = {name: number for number, name in enumerate(self.world.stations)}
        way = Paths(self.layout).between(numbers[one.name], numbers[other.name])
        return self.world.wires[min(way) if way else 0]

    # What it cost

    def _reads_one_by_one(self) -> int:
        """What all homes have read in their present lives, counted for each subscription."""
        routers = [station.router for station in self.world.stations.values()]
        services = [router.durable for router in routers if router is not None]
        return sum([service.parts.reading.one_by_one for service in services if service is not None])

    def outcome(self) -> CostOutcome:
        scenario, clients = self.scenario, self.clients
        missing = backlog = 0
        last = self.repaired_at
        latencies: list[float] = []
        by_topic: dict[int, list[tuple[int, float]]] = {}
        for number, (time, topic) in clients.said.items():
            by_topic.setdefault(topic, []).append((number, time))
        broken_at = self._begin + scenario.lead
        for taker in clients.takers.values():
            for number, time in by_topic.get(taker.topic, []):
                came = taker.got.get(number)
                if came is None:
                    missing += 1
                elif scenario.outage == "none" or came < broken_at:
                    latencies.append(came - time)
                elif time < self.repaired_at <= came:
                    backlog += 1
                    last = max(last, came)
        errors = [self.world.record.error, *clients.refused]
        wrong = (not self.all_ready) + (not self.quiet) + sum(bool(error) for error in errors)
        delays = spread("latency", latencies)
        return CostOutcome(
            violations=missing + clients.twice + wrong,
            setup_messages=self.setup["messages"],
            setup_bytes=self.setup["bytes"],
            published=len(clients.said),
            deliveries=sum(len(taker.got) for taker in clients.takers.values()),
            **self.world.counts,
            reads_one_by_one=self._reads_one_by_one() - self._read_before,
            backlog=backlog,
            catch_up_seconds=last - self.repaired_at,
            latency_mean=delays["latency_mean"],
            latency_p99=delays["latency_p99"],
            simulated_seconds=self.world.now,
            wall_seconds=self.wall_seconds,
        )
