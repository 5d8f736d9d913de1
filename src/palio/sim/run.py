"""`run`: one scenario, from its network to its outcome.

The seed is used in independent pieces, one for the network and one for the clients, so that the same clients
can be put on another topology.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from time import perf_counter

import msgspec

from palio.protocol.requests import Advertise, Subscribe
from palio.routing.configuration import Configuration, Strategy
from palio.routing.facts import Facts
from palio.routing.occurrences import Open, SubscriberMessage
from palio.routing.reconfiguration.settings import ReconfigurationSettings
from palio.routing.router import Router
from palio.sim.clients import ClientStep, Phase, Script, Step
from palio.sim.metrics import measure
from palio.sim.network import SimulatedNetwork
from palio.sim.oracle import Verdict, judge
from palio.sim.outcome import Outcome
from palio.sim.scenario import Scenario
from palio.sim.sessions import SessionRecord
from palio.sim.shapes import draw
from palio.sim.tables import compare, consistency
from palio.sim.topologies import Paths, lay_out
from palio.sim.trace import RunTrace
from palio.sim.workloads import Workload

RouterMaker = Callable[[Configuration, Facts], Router]

# From so many brokers on, one index serves all. With fewer, each has its own, as a live broker does.
LARGE = 64


class SimulatedRun(msgspec.Struct, eq=False):
    """A run that has come to its end, with all that can be asked about it."""

    scenario: Scenario
    network: SimulatedNetwork
    verdict: Verdict
    wall_seconds: float

    @property
    def trace(self) -> RunTrace:
        assert self.network.trace is not None, "the run was not traced"
        return self.network.trace

    def outcome(self) -> Outcome:
        return measure(self.network, self.verdict, wall_seconds=self.wall_seconds)


def run(scenario: Scenario) -> Outcome:
    """Simulate a scenario. The same scenario gives the same outcome, but for `wall_seconds`."""
    return simulate(scenario).outcome()


def simulate(
    scenario: Scenario, *, trace: bool = False, make_router: RouterMaker = Router, tables: bool = True
) -> SimulatedRun:
    """Simulate a scenario, and let the oracle judge it.

    `tables` checks the tables, too: what each broker recorded as sent against what its neighbour has and,
    after churn, against tables that are built from scratch.
    """
    begin = perf_counter()
    network, script = prepare(scenario, trace=trace, make_router=make_router)
    with without_collections():
        for phase in script.phases:
            network.play(phase)
        network.finish()
        verdict = judge(network.history, advertisements=scenario.advertisements, way=_ways(network))
    if tables and not network.history.is_broken:
        verdict.violations += consistency(network)
        record = verdict.record
        if (scenario.churn or scenario.link_churn) and network.is_whole:
            verdict.violations += compare(network, _fresh(scenario, record, make_router), scenario, record)
    return SimulatedRun(scenario, network, verdict, perf_counter() - begin)


def prepare(
    scenario: Scenario, *, trace: bool = False, make_router: RouterMaker = Router
) -> tuple[SimulatedNetwork, Script]:
    """The network of a scenario before anything has happened, and the script to play on it."""
    chance = Random(f"network {scenario.seed}")
    graph = draw(scenario.shape, scenario.brokers, chance)
    layout = lay_out(graph, scenario.topology, chance)
    # About filters, for all brokers; what they know of each other stays their own.
    facts = Facts(matches=scenario.brokers >= LARGE)
    settings = Configuration(
        broker="-",
        strategy=Strategy(scenario.strategy),
        advertisements=scenario.advertisements,
        merging_excess=scenario.merging_excess,
        reconfiguration=ReconfigurationSettings(protocol=scenario.reconfiguration),
    )

    def router(name: str) -> Router:
        return make_router(msgspec.structs.replace(settings, broker=name), facts)

    network = SimulatedNetwork(layout, router, RunTrace() if trace else None)
    return network, Script(scenario, Workload(scenario, graph), len(layout.links))


def _ways(network: SimulatedNetwork) -> Callable[[str, str], frozenset[int] | None]:
    numbers = {station.name: number for number, station in enumerate(network.stations)}
    paths = Paths(network.layout)
    return lambda one, other: paths.between(numbers[one], numbers[other])


@contextmanager
def without_collections() -> Iterator[None]:
    """No search for cyclic garbage: a network is millions of objects that are all needed until its end."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _fresh(scenario: Scenario, record: SessionRecord, make_router: RouterMaker) -> SimulatedNetwork:
    """A network on which nothing ever happened but what the clients of another one still hold at its end."""
    if scenario.strategy == "merging" and scenario.merging_excess:
        scenario = msgspec.structs.replace(scenario, strategy="covering", merging_excess=0.0)
    network, script = prepare(scenario, make_router=make_router)
    brokers = {station.name: number for number, station in enumerate(network.stations)}
    steps: list[Step] = []
    for session in record.sessions.values():
        if session.open:
            items: list[SubscriberMessage] = [
                Open(),
                *(Advertise(f"a{number}", one) for number, one in enumerate(session.by_advertisement)),
                *(Subscribe(f"f{number}", one) for number, one in enumerate(session.by_filter)),
            ]
            steps += [ClientStep(0, 0.0, brokers[session.broker], session.name, item) for item in items]
    network.play(script.phases[0])
    network.play(Phase("fresh", tuple(steps)))
    return network
