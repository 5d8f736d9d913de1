"""Subscriptions that are paused, and moved back, in runs full of faults: every promise is kept."""

from random import Random

import msgspec
import pytest

from palio.protocol.durable.control import Paused
from palio.routing.durable.effects import SaveFact
from palio.routing.durable.facts import FactKind
from palio.routing.durable.home.steering import SoughtPlace, Steering
from palio.sim.faults import violations
from palio.sim.faults.run import simulate
from palio.sim.faults.soak import drawn, drawn_evenly
from tests.sim.durable.planted import Planted
from tests.sim.durable.test_seeds import right
from tests.slices import sliced

FIRST, COUNT, SHARES = 31_000_000, 60, 2


def steered(seed):
    """The scenario of a seed, with pauses and rewinds."""
    chance = Random(f"steering {seed}")
    return msgspec.structs.replace(
        drawn(seed), halts=chance.choice((0, 1, 3)), rewinds=chance.choice((0, 0, 1, 2))
    )


@pytest.mark.parametrize("share", sliced(range(SHARES), 1))
def test_every_promise_is_kept(share):
    takings = [
        taking
        for seed in range(FIRST + share, FIRST + COUNT, SHARES)
        for taking in right(steered(seed)).record.takings.values()
    ]
    assert sum(len(taking.halts) for taking in takings) > COUNT / SHARES / 4
    assert sum(taking.rewound for taking in takings) > COUNT / SHARES / 4


def caught(kind, most=60, **more):
    for seed in range(FIRST, FIRST + most):
        run = simulate(msgspec.structs.replace(steered(seed), halts=3, rewinds=1), **more)
        if any(type(one) is kind for one in run.violations):
            return run
    raise AssertionError(f"This was not caught as {kind.__name__} in {most} runs.")


class ForgetsPauses(Planted):
    """A crash takes the pause with it."""

    def spoil_one(self, effect, now):
        if isinstance(effect, SaveFact) and effect.fact.kind is FactKind.PAUSED:
            return [msgspec.structs.replace(effect, fact=FactKind.HELD.of("nobody"))]
        return [effect]


def test_a_pause_that_is_not_on_disk_is_caught():
    caught(violations.DuringPause, make_router=ForgetsPauses)


def test_a_pause_that_is_only_answered_is_caught(monkeypatch):
    def pause(self, session, message):
        self._desk.answer(session, Paused(message.name, True))

    monkeypatch.setattr(Steering, "pause", pause)
    caught(violations.DuringPause)


def test_a_rewind_that_drops_what_waits_is_caught(monkeypatch):
    monkeypatch.setattr(SoughtPlace, "wants", lambda self, envelope: False)
    monkeypatch.setattr(SoughtPlace, "position", lambda self, before: before)
    caught(violations.LostNotification)


@pytest.mark.parametrize("field", ["halts", "rewinds"])
def test_without_them_a_scenario_means_what_it_did(field):
    assert all(getattr(drawn_evenly(seed), field) == 0 for seed in range(200))
