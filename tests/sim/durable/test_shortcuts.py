"""Branches that only save work: without them the outcome is the same, and every promise is kept."""

import msgspec
import pytest

from palio.routing.durable import shortcuts
from palio.sim.faults.run import simulate
from palio.sim.faults.scenario import TROUBLE
from palio.sim.faults.soak import drawn
from tests.slices import sliced

SEEDS = range(52_000_000, 52_000_024)


def quiet(seed):
    """The scenario of a seed, in which nothing goes wrong.

    Nor are there relays: who joins by one may begin with an event that another order of messages leaves out.
    """
    nothing = dict.fromkeys((*TROUBLE, "halts", "rewinds", "relays"), 0)
    return msgspec.structs.replace(drawn(seed), **nothing, mix=())


def outcome(run):
    """By subscription: what was handed out, and how often.

    Reads together end a moment apart from reads alone, so events of different publishers may come in another
    order; that those of each publisher come in theirs is a promise, and so looked at in every run.
    """
    found = {}
    for one in run.record.handings:
        found.setdefault(one.name, []).append(
            (one.delivery, one.attempt, one.envelope.origin, one.envelope.sequence)
        )
    return {name: sorted(handed) for name, handed in found.items()}


@pytest.mark.parametrize("seed", sliced(SEEDS, 8))
def test_nothing_else_comes_without_them(seed, monkeypatch):
    with_them = simulate(quiet(seed))
    monkeypatch.setattr(shortcuts, "TAKEN", False)
    without = simulate(quiet(seed))
    assert not with_them.violations
    assert not without.violations
    assert outcome(without) == outcome(with_them)


def test_they_are_taken(monkeypatch):
    """Otherwise the comparison above would be one of equals."""
    seeds = SEEDS[:8]
    before = sum(simulate(quiet(seed)).world.handled for seed in seeds)
    monkeypatch.setattr(shortcuts, "TAKEN", False)
    assert sum(simulate(quiet(seed)).world.handled for seed in seeds) > before


@pytest.mark.parametrize("seed", sliced(SEEDS, 8))
def test_every_promise_is_kept_without_them(seed, monkeypatch):
    monkeypatch.setattr(shortcuts, "TAKEN", False)
    assert not simulate(drawn(seed)).violations
