"""Brokers that forget who is away: the oracle finds who does so too early, or is the smaller part.

`test_seeds` and `palio sim soak --faults` have the runs in which nothing is wrong.
"""

import pytest

from palio.routing.durable.network.absence import Absentees
from palio.sim.faults import violations
from palio.sim.faults.run import simulate
from palio.sim.faults.soak import drawn, with_forgetting
from tests.slices import sliced

MOST_RUNS = 60


def at_once(monkeypatch):
    """Whoever does not answer is forgotten, however short it has been away."""
    forget_overdue = Absentees._forget_overdue

    def without_waiting(self):
        self._since = {broker: (0.0, version) for broker, (_, version) in self._since.items()}
        forget_overdue(self)

    monkeypatch.setattr(Absentees, "_forget_overdue", without_waiting)


def each_part(monkeypatch):
    """Also the smaller part of a network forgets the other one."""
    monkeypatch.setattr(Absentees, "_may_forget", lambda self, present: True)


@pytest.mark.parametrize(
    ("plant", "kind"),
    [(at_once, violations.ForgottenTooEarly), (each_part, violations.ForgottenByBoth)],
    ids=["at once", "each part"],
)
def test_a_planted_fault_is_caught(monkeypatch, plant, kind):
    plant(monkeypatch)
    for seed in range(1, MOST_RUNS + 1):
        found = simulate(with_forgetting(drawn(seed))).violations
        if caught := [one for one in found if type(one) is kind]:
            assert str(caught[0]).endswith(".")
            return
    raise AssertionError(f"It was not caught in {MOST_RUNS} runs.")


@pytest.mark.parametrize("seed", sliced(range(2_000, 2_060), 6))
def test_without_faults_every_promise_is_kept(seed):
    assert not simulate(with_forgetting(drawn(seed))).violations


def test_in_some_runs_somebody_is_forgotten():
    assert any(simulate(with_forgetting(drawn(seed))).record.forgotten for seed in range(1, 20))
