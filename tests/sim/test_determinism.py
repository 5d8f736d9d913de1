"""The same scenario gives the same run, byte by byte, in any process."""

import hashlib
import os
import subprocess
import sys
from functools import cache

import msgspec
import pytest

from palio.routing.facts import Facts
from palio.routing.router import Router
from palio.sim.outcome import Outcome
from palio.sim.run import run, simulate
from palio.sim.scenario import Scenario
from palio.sim.soak import drawn

SEEDS = (3, 20, 45, 71, 110)
PROGRAM = """
import hashlib, sys
from palio.sim.run import simulate
from palio.sim.soak import drawn
for seed in map(int, sys.argv[1:]):
    print(hashlib.sha256(str(simulate(drawn(seed), trace=True).trace).encode()).hexdigest())
"""


def trace(scenario: Scenario) -> str:
    return str(simulate(scenario, trace=True).trace)


@cache
def traced(seed: int) -> str:
    """What happens in the run of a seed, played once for all that compare others with it."""
    return trace(drawn(seed))


def unclocked(outcome: Outcome) -> Outcome:
    return msgspec.structs.replace(outcome, wall_seconds=0.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_twice_is_the_same(seed):
    assert trace(drawn(seed)) == traced(seed) != ""


def test_hashing_does_not_matter():
    def digests(hash_seed: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *map(str, SEEDS)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        return done.stdout.split()

    here = [hashlib.sha256(traced(seed).encode()).hexdigest() for seed in SEEDS]
    assert digests("1") == digests("2") == here


def test_outcomes_differ_in_nothing_but_the_clock():
    scenario = Scenario(churn=0.5)
    one, other = (unclocked(run(scenario)) for _ in range(2))
    assert one == other


def test_another_seed_is_another_run():
    assert trace(Scenario(seed=1)) != trace(Scenario(seed=2))


def test_tracing_changes_nothing():
    scenario = drawn(9)
    one = simulate(scenario, trace=True)
    other = simulate(scenario, trace=False)
    assert one.network.history.deliveries == other.network.history.deliveries
    assert one.network.handled == other.network.handled


@pytest.mark.parametrize("seed", SEEDS)
def test_sharing_facts_changes_nothing(seed):
    """Brokers of one process share what is true of filters; they say exactly what they would say alone."""
    alone = simulate(drawn(seed), trace=True, make_router=lambda configuration, facts: Router(configuration))
    assert str(alone.trace) == traced(seed)


@pytest.mark.parametrize("seed", [*range(24, 32), 33, 36, 39, 45])  # covering on all topologies, then merging
def test_one_index_for_all_brokers_changes_nothing(seed):
    """In a large network a notification is matched once for all; no broker says anything else by that."""
    shared = Facts(matches=True)
    together = simulate(
        drawn(seed), trace=True, make_router=lambda configuration, facts: Router(configuration, shared)
    )
    own = simulate(drawn(seed), trace=True)
    assert str(together.trace) == str(own.trace)
    assert unclocked(together.outcome()) == unclocked(own.outcome())


def test_a_scenario_survives_its_text():
    for seed in SEEDS:
        assert Scenario.from_json(drawn(seed).to_json()) == drawn(seed)
