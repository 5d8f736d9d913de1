"""Every strategy on every topology delivers what it should: many small scenarios before the oracle.

`palio sim soak` runs more of the same.
"""

from collections import Counter
from itertools import product

import msgspec
import pytest

from palio.routing.occurrences import Close
from palio.sim.clients import ClientStep, Phase
from palio.sim.failures import replay_command, shrink, story
from palio.sim.run import SimulatedRun, prepare, simulate
from palio.sim.scenario import Scenario
from palio.sim.soak import COMBINATIONS, drawn
from tests.slices import sliced

SEEDS = range(1, 529)
CHUNK = 24
replace = msgspec.structs.replace


def traced(scenario: Scenario) -> SimulatedRun:
    return simulate(scenario, trace=True)


def explain(scenario: Scenario) -> str:
    run = shrink(traced(scenario), traced)
    lines = story(run, run.verdict.violations[0])
    return "\n".join([replay_command(scenario), "shortened:", replay_command(run.scenario), *lines])


def right(scenario: Scenario) -> SimulatedRun:
    """The run, if the oracle has nothing to say against it."""
    run = simulate(scenario)
    assert not run.verdict.violations, explain(scenario)
    return run


@pytest.mark.parametrize("first", sliced(SEEDS[::CHUNK], 1))
def test_what_is_delivered_is_what_should_be(first):
    expected = sum(right(drawn(seed)).verdict.expected for seed in range(first, first + CHUNK))
    assert expected > 5 * CHUNK, "little was asked of the oracle"


def test_these_runs_meet_every_combination():
    scenarios = [drawn(seed) for seed in SEEDS]
    assert len(scenarios) >= 500
    met = {((one.strategy, one.merging_excess), one.topology, one.advertisements) for one in scenarios}
    assert met == set(COMBINATIONS)
    for field in ("shape", "churn", "link_churn"):
        pairs = {(one.strategy, getattr(one, field)) for one in scenarios}
        values = {getattr(one, field) for one in scenarios}
        assert len(pairs) == len(values) * 5, f"a strategy without some value of {field}"


def deliveries(run: SimulatedRun) -> Counter:
    """Who got what, and for which subscriptions, in words that do not depend on routes."""
    numbers: Counter = Counter()
    names = {}
    for name, publication in run.verdict.record.publications.items():
        names[name] = (publication.session, numbers[publication.session])
        numbers[publication.session] += 1
    return Counter(
        (one.session, names[one.envelope.origin, one.envelope.sequence], tuple(sorted(one.handles)))
        for one in run.network.history.deliveries
    )


@pytest.mark.parametrize("seed", sliced(range(8), 1))
def test_all_strategies_and_topologies_deliver_the_same(seed):
    scenario = Scenario(
        seed=seed, shape=("graph", "ring", "transit-stub", "grid")[seed % 4], brokers=9, subscribers=6,
        publishers=3, subscriptions=18, notifications=20, interests=3, covered=0.6, repeats=0.2, both=0.2,
        batch=2,
    )  # fmt: skip
    variants = [
        replace(scenario, strategy=strategy, merging_excess=excess, topology=topology, advertisements=semantics)
        for (strategy, excess), topology, semantics in COMBINATIONS
    ]
    first, *others = (deliveries(right(variant)) for variant in variants)
    assert sum(first.values()) >= 10
    for variant, other in zip(variants[1:], others, strict=True):
        assert other == first, replay_command(variant)


@pytest.mark.parametrize("topology", ["acyclic", "hierarchical", "graph", "hybrid"])
def test_each_strategy_keeps_less_than_the_one_before(topology):
    """Which is why there are several; and each must have had something to leave out."""
    rows = {}
    for strategy, excess in (one[0] for one in COMBINATIONS[:: len(COMBINATIONS) // 6]):
        scenario = Scenario(
            shape="graph", topology=topology, brokers=8, strategy=strategy, merging_excess=excess,
            subscribers=20, subscriptions=80, notifications=60, interests=2, covered=0.5,
        )  # fmt: skip
        outcome = right(scenario).outcome()
        rows[strategy, excess] = outcome.table_rows
        if topology in ("acyclic", "graph"):  # in a hierarchy everything goes to the top, wanted or not
            assert (outcome.wasted_forwards > 0) == (strategy == "flooding" or excess > 0)
    flooding, simple, identity, covering, perfect, imperfect = rows.values()
    assert flooding == 0
    # In a graph, only equal filters of one broker are one.
    assert simple > identity or (topology == "graph" and simple == identity)
    assert identity > covering > perfect > imperfect


@pytest.mark.parametrize(
    ("topology", "advertisements"), [*product(("acyclic", "hierarchical", "graph", "hybrid"), (False, True))]
)
def test_after_churn_tables_are_as_if_built_from_scratch(topology, advertisements):
    """The comparison is part of every simulated run; here it is certain that there is something to compare."""
    for seed, (strategy, excess) in enumerate((one[0] for one in COMBINATIONS[:: len(COMBINATIONS) // 6]), 100):
        scenario = Scenario(
            seed=seed, shape="graph", topology=topology, brokers=8, strategy=strategy, merging_excess=excess,
            advertisements=advertisements, subscribers=8, publishers=3, subscriptions=30, notifications=10,
            interests=3, churn=0.8, covered=0.7,
        )  # fmt: skip
        outcome = right(scenario).outcome()
        assert outcome.unsubscribes > 0
        if strategy == "flooding":
            assert outcome.table_rows == 0
        else:
            assert outcome.table_rows > 0
            assert outcome.rows_removed > 0


@pytest.mark.parametrize("seed", sliced((5 * place % 48 for place in range(48)), 12))  # of every strategy
def test_when_everyone_has_left_nothing_is_left(seed):
    network, script = prepare(drawn(seed))
    for phase in script.phases:
        network.play(phase)
    steps = (step for phase in script.phases for step in phase.steps if isinstance(step, ClientStep))
    sessions = {step.session: step.broker for step in steps}
    ends = [ClientStep(0, 0.0, broker, session, Close()) for session, broker in sessions.items()]
    network.play(Phase("end", tuple(ends)))
    for station in network.stations:
        statistics = station.router.statistics()
        assert statistics.rows_received == statistics.rows_sent == 0, replay_command(drawn(seed))
        assert statistics.filters == statistics.advertisements == statistics.sessions == 0
