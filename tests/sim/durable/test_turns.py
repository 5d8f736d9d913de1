"""Every promise is kept where the position of one subscription only is written, and told, at a tick."""

import pytest

from palio.routing.durable.home.tick_turns import TickTurns
from palio.sim.faults.run import simulate
from palio.sim.faults.soak import drawn, with_departures, with_older_disks
from tests.slices import sliced


@pytest.mark.parametrize("seed", sliced(range(1, 60), 6))
def test_every_promise_is_kept(seed, monkeypatch):
    monkeypatch.setattr(TickTurns.__init__, "__defaults__", (1,))
    kind = (drawn, lambda one: with_older_disks(drawn(one)), lambda one: with_departures(drawn(one)))[seed % 3]
    assert not simulate(kind(seed)).violations
