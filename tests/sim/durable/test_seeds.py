"""Durable delivery keeps its promises in many short runs full of faults.

`palio sim soak --faults` runs more of them. `once_failed.txt` has those that once broke a promise, each
shrunk, with its steps written out, below the sentence that says which promise it was.
"""

from pathlib import Path

import pytest

from palio.routing.durable.origin.introduced import Introduced
from palio.sim.failures import replay_command
from palio.sim.faults.failures import shrink, story
from palio.sim.faults.run import simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.soak import drawn
from palio.sim.faults.violations import LostNotification
from palio.sim.soak import COMBINATIONS
from tests.slices import sliced

FIRST, COUNT, CHUNK = 1, 504, 12
ONCE_FAILED = [
    line
    for line in Path(__file__).with_name("once_failed.txt").read_text().splitlines()
    if line.startswith("{")
]


def explain(scenario: FaultScenario) -> str:
    run = shrink(simulate(scenario))
    lines = story(run, run.violations[0])
    return "\n".join(
        [replay_command(scenario), "shortened:", f"{replay_command(run.scenario)} --story", *lines]
    )


def right(scenario: FaultScenario):
    """The run, if the oracle has nothing to say against it."""
    run = simulate(scenario)
    assert not run.violations, explain(scenario)
    return run


@pytest.mark.parametrize("first", sliced(range(FIRST, FIRST + COUNT, CHUNK), 8))
def test_every_promise_is_kept(first):
    deliveries = sum(len(right(drawn(seed)).record.handings) for seed in range(first, first + CHUNK))
    assert deliveries > 2 * CHUNK, "little was asked of the oracle"


@pytest.mark.parametrize("text", ONCE_FAILED, ids=range(len(ONCE_FAILED)))
def test_what_once_failed(text):
    right(FaultScenario.from_json(text))


def test_runs_with_a_broker_that_joins_need_introductions(monkeypatch):
    """Those that once failed are lost again where a journal trims without knowing who is away."""
    monkeypatch.setattr(Introduced, "missing", frozenset())
    joining = [FaultScenario.from_json(text) for text in ONCE_FAILED if '"type":"join"' in text]
    lost = [
        one
        for one in joining
        if any(isinstance(broken, LostNotification) for broken in simulate(one).violations)
    ]
    assert len(lost) >= 4


def test_these_runs_meet_every_combination_and_every_trouble():
    scenarios = [drawn(seed) for seed in range(FIRST, FIRST + COUNT)]
    met = {((one.strategy, one.merging_excess), one.topology, one.advertisements) for one in scenarios}
    assert met == set(COMBINATIONS)
    for field in (
        "crashes",
        "pauses",
        "cuts",
        "partitions",
        "lags",
        "full_disks",
        "slow_disks",
        "jumps",
        "leaves",
    ):
        for topology in ("acyclic", "hierarchical", "graph", "hybrid"):
            found = [one for one in scenarios if one.topology == topology and getattr(one, field)]
            assert len(found) > 10, f"hardly any {field} in {topology} networks"


@pytest.mark.parametrize("seed", [3, 36, 115])
def test_a_run_is_repeated_exactly(seed):
    one, other = simulate(drawn(seed)), simulate(drawn(seed))
    assert one.record.lines == other.record.lines
    assert one.world.handled == other.world.handled


@pytest.mark.parametrize("seed", [1, 2, 40])
def test_a_scenario_is_read_back_from_its_text(seed):
    scenario = drawn(seed)
    assert FaultScenario.from_json(scenario.to_json()) == scenario
