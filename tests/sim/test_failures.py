"""A failure is shortened and told; what is printed shows it again."""

import shlex

import pytest

from palio.sim.failures import optional_steps, replay_command, shrink, story
from palio.sim.run import SimulatedRun, simulate
from palio.sim.scenario import Scenario
from palio.sim.violations import LinkRefused, Missing, RowsDiffer
from tests.sim import faults

LARGE = Scenario(
    brokers=12, subscribers=8, publishers=3, subscriptions=40, notifications=60, interests=2, churn=0.5
)  # fmt: skip


def forgetful(scenario: Scenario) -> SimulatedRun:
    """Brokers that lose every update that takes a row back."""
    return simulate(scenario, trace=True, make_router=faults.with_fault(faults.KeepsRows))


def lossy(scenario: Scenario) -> SimulatedRun:
    """Brokers that lose every notification for a neighbour."""
    return simulate(
        scenario, trace=True, make_router=faults.with_fault(lambda: faults.LosesForward(None)), tables=False
    )


@pytest.fixture(scope="module")
def shortened() -> SimulatedRun:
    """A run in which a notification is lost, and hardly anything else happens."""
    return shrink(lossy(LARGE), lossy)


def test_a_lost_notification_becomes_a_story_of_a_few_lines(shortened):
    run = shortened
    scenario = run.scenario
    violation = run.verdict.violations[0]
    assert isinstance(violation, Missing)
    assert scenario.brokers == 2
    assert (scenario.subscriptions, scenario.notifications, scenario.churn) == (1, 1, 0.0)
    lines = list(story(run, violation))
    assert lines[0] == str(violation)
    text = "\n".join(lines)
    for part in ("link b", "subscribe", "update 1: +1", "ready", "publish 1"):
        assert part in text
    assert len(lines) < 12


def test_a_difference_of_tables_is_told_by_the_updates_of_the_link():
    run = shrink(forgetful(LARGE), forgetful)
    # A row that was never taken back is found when its number comes again, or else when all is at rest.
    violation = next(one for one in run.verdict.violations if isinstance(one, RowsDiffer | LinkRefused))
    assert run.scenario.keep is not None
    assert len(run.scenario.keep) <= 4
    assert any("update" in line for line in story(run, violation))


def test_what_is_printed_fails_again(shortened):
    program, *words, text = shlex.split(replay_command(shortened.scenario))
    assert [program, *words] == ["palio", "sim", "replay"]
    again = lossy(Scenario.from_json(text))
    assert again.verdict.violations == shortened.verdict.violations


def test_shrinking_has_its_bounds():
    run = lossy(LARGE)
    assert shrink(run, lossy, most_messages=0) is run


def test_steps_that_can_be_left_out_can_all_be_left_out():
    assert optional_steps(LARGE)
    run = simulate(faults.replace(LARGE, keep=()))
    assert run.verdict.violations == []
    assert run.network.forwards()[0] == run.verdict.checked == 0


def test_every_single_step_can_be_left_out():
    scenario = Scenario(
        brokers=4, subscriptions=6, notifications=6, interests=1, churn=1.0, advertisements=True
    )
    steps = optional_steps(scenario)
    for step in steps:
        kept = tuple(one for one in steps if one != step)
        assert simulate(faults.replace(scenario, keep=kept)).verdict.violations == [], step
