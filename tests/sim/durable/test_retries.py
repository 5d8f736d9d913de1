"""Takers that say how what they reject is to be tried again, among all other faults: every promise is kept."""

import msgspec
import pytest

from palio.routing.durable.attempts import MAX_FAILURES
from palio.sim.faults.run import simulate
from palio.sim.faults.soak import drawn

SEEDS = range(30_000_000, 30_000_016)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_is_kept(seed):
    run = simulate(msgspec.structs.replace(drawn(seed), retries=True))
    assert not run.violations, run.scenario.to_json()


def test_dead_letters_tell_of_their_attempts_after_all_that():
    """As far as anybody can know: what failed before a crash of the home is forgotten."""
    told = 0
    for seed in SEEDS:
        run = simulate(msgspec.structs.replace(drawn(seed), retries=True))
        for station in run.world.stations.values():
            for kept in station.disk.subscriptions.values():
                assert set(kept.failures) <= set(kept.dead) | set(kept.spool)
                for number, (attempts, _) in kept.dead.items():
                    failures = kept.failures[number]
                    assert 1 <= len(failures) <= min(attempts, MAX_FAILURES)
                    assert [one.time for one in failures] == sorted(one.time for one in failures)
                    told += any(one.reason for one in failures)
    assert told > 3
