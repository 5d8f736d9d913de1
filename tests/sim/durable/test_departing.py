"""Brokers that leave for good: the oracle finds who does not wait for what it has to wait for.

`test_seeds` and `palio sim soak --faults` have the runs in which nothing is wrong.
"""

import pytest

from palio.routing.durable.leaving import Leaving
from palio.routing.durable.network.answering import Answering
from palio.sim.faults import violations
from palio.sim.faults.run import simulate
from palio.sim.faults.soak import drawn, with_departures
from tests.slices import sliced

MOST_RUNS = 150


def waits_for_nobody(monkeypatch):
    """It leaves as soon as its subscriptions have gone."""
    monkeypatch.setattr(Leaving, "_unread", lambda self: [])


def never_leaves(monkeypatch):
    monkeypatch.setattr(Leaving, "_go", lambda self: None)


def takes_subscriptions_along(monkeypatch):
    """It hands nothing over, and goes all the same."""
    monkeypatch.setattr(Leaving, "_hand_over", lambda self, problem: None)
    monkeypatch.setattr(Leaving, "_is_free", True)


def believes_what_comes_late(monkeypatch):
    """Whoever believes that subscriptions have their home there still is not asked."""
    monkeypatch.setattr(Answering, "_at", lambda self, broker: [])


PLANTED = {
    waits_for_nobody: (violations.LeftTooEarly,),
    never_leaves: (violations.Unanswered,),
    takes_subscriptions_along: (violations.LostNotification, violations.WrongHomes, violations.LeftTooEarly),
    believes_what_comes_late: (violations.LostNotification, violations.TrimmedTooFar),
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_caught(monkeypatch, plant):
    plant(monkeypatch)
    for seed in range(1, MOST_RUNS + 1):
        found = simulate(with_departures(drawn(seed))).violations
        if caught := [one for one in found if type(one) in PLANTED[plant]]:
            assert str(caught[0]).endswith(".")
            return
    raise AssertionError(f"It was not caught in {MOST_RUNS} runs.")


@pytest.mark.parametrize("seed", sliced([1007, 1051, 1108, 1169, 1239, 1279, 2065, 3078, *range(1, 60)], 10))
def test_without_faults_every_promise_is_kept(seed):
    """The first of these have failed once."""
    run = simulate(with_departures(drawn(seed)))
    assert not run.violations
    assert run.record.left or any(not one.departs for one in run.world.stations.values())
