"""Takers that say how what they reject is to be tried again, among all other faults: every promise is kept."""

import msgspec
import pytest

from palio.protocol.durable.attempts import MAX_FAILURES
from palio.sim.faults.run import simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.soak import drawn

SEEDS = range(30_000_000, 30_000_016)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_is_kept(seed):
    run = simulate(msgspec.structs.replace(drawn(seed), retries=True))
    assert not run.violations, run.scenario.to_json()


def test_an_outbox_that_is_full_when_pages_are_asked_for_again():
    """Its broker ended with an error: what was caught up with was gone after the first of several origins."""
    found = (
        '{"type":"faults","seed":31000754,"shape":"grid","topology":"hierarchical","brokers":8,'
        '"strategy":"flooding","takers":6,"publishers":3,"notifications":49,"pauses":2,"partitions":1,'
        '"refilters":2,"anew":true,"lake":true,"retries":true,"outbox":4,"page":50}'
    )
    assert not simulate(FaultScenario.from_json(found)).violations


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
