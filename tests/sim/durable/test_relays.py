"""Relays between brokers: every promise is kept, and a relay that does not do its part is found."""

import pytest

from palio.routing.durable.network.topology import Topology
from palio.routing.durable.relay import Relay
from palio.sim.faults import violations
from palio.sim.faults.run import prepare, simulate
from palio.sim.faults.soak import KINDS, drawn, soak_one, with_departures, with_some_relays
from tests.slices import sliced

MOST_RUNS = 150


def counts_no_links(monkeypatch):
    """What is lost with a link between two relays is noticed by nobody."""
    plain = Topology.change
    monkeypatch.setattr(Topology, "change", lambda self: () if self._is_relay else plain(self))


def stays_in_its_epoch(monkeypatch):
    """Events that have met two epochs go on as if it were one."""
    epoch = property(lambda self: self.__dict__.setdefault("first", self.topology.epoch))
    monkeypatch.setattr(Relay, "epoch", epoch)


def passes_no_letters_on(monkeypatch):
    monkeypatch.setattr(Relay, "_carry", lambda self, source, letter: None)


def tells_nobody_of_others(monkeypatch):
    def hear(self, source, message):
        self.topology.hear(message.versions)

    monkeypatch.setattr(Relay, "_hear", hear)


PLANTED = {
    counts_no_links: violations.LostNotification,
    stays_in_its_epoch: violations.WrongEpoch,
    passes_no_letters_on: violations.LostNotification,
    tells_nobody_of_others: violations.Unanswered,
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_caught(monkeypatch, plant):
    plant(monkeypatch)
    for seed in range(1, MOST_RUNS + 1):
        found = simulate(with_some_relays(drawn(seed))).violations
        if caught := [one for one in found if type(one) is PLANTED[plant]]:
            assert str(caught[0]).endswith(".")
            return
    raise AssertionError(f"It was not caught in {MOST_RUNS} runs.")


@pytest.mark.parametrize("seed", sliced([80, *range(1, 80)], 10))
def test_without_faults_every_promise_is_kept(seed):
    """The first of these has failed once."""
    run = simulate(with_some_relays(drawn(seed)))
    assert not run.violations
    assert not any(station.disk.facts or station.disk.head for station in run.world.stations.values()
                   if station.is_relay)  # fmt: skip


@pytest.mark.parametrize("seed", sliced([39, 40, *range(1, 40)], 4))
def test_brokers_leave_through_relays(seed):
    """The first of these have failed once."""
    run = simulate(with_some_relays(with_departures(drawn(seed))))
    assert not run.violations


def test_relays_are_in_a_part_of_all_soaks_and_change_nothing_else():
    assert 5 < sum(drawn(seed).relays > 0 for seed in range(200)) < 60
    assert "relays" in KINDS
    with_them = soak_one(5, kinds=["relays"]).scenario
    assert with_them.relays
    layout, script = prepare(with_some_relays(drawn(5)))
    plain, other = prepare(drawn(5))
    assert layout.size == plain.size + with_them.relays
    steps = {str(step) for step in script}
    assert {str(step) for step in other} <= steps
