"""No check that cannot fail: each one finds the fault that was planted for it."""

from functools import cache

import msgspec
import pytest

from palio.sim.faults import violations
from palio.sim.faults.failures import shrink, story
from palio.sim.faults.oracle import CHECKS
from palio.sim.faults.run import FaultRun, simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.soak import drawn
from palio.sim.faults.steps import Say, Take
from palio.sim.faults.violations import BrokenPromise
from tests.sim.durable import planted

MOST_RUNS = 120
FAULTS = {
    planted.ConfirmsBeforeItWrites: violations.ConfirmedTooEarly,
    planted.ConfirmsTheWrongSequence: violations.SequenceReused,
    planted.ForgetsAnEvent: violations.LostNotification,
    planted.AdvancesWithoutSpooling: violations.LostNotification,
    planted.GivesUpAtOnce: violations.LostNotification,
    planted.ForgetsAcknowledgements: violations.AfterDone,
    planted.ForgetsTheLastAcknowledgement: violations.AfterDone,
    planted.WritesAllAcknowledgementsButTheLast: violations.AfterDone,
    planted.KeepsTheEpoch: violations.WrongEpoch,
    planted.DoesNotMark: violations.Unmarked,
    planted.ForgetsIds: violations.PublishedTwice,
    planted.ReadsEverything: violations.Outside,
    planted.TurnsRound: violations.Disorder,
    planted.CountsDeliveriesAnew: violations.OneDelivery,
    planted.RenumbersRedeliveries: violations.TwoDeliveries,
    planted.TrimsEverything: violations.TrimmedTooFar,
    planted.NeverRemoves: violations.WrongHomes,
    planted.NeverSaysReady: violations.Unanswered,
    planted.NeverRests: violations.Unquiet,
    planted.HasNoLimit: violations.TooMuchInMemory,
    planted.HidesItsHistory: violations.HistoryLost,
    planted.GoesOnAfterTheEnd: violations.AfterEnd,
    planted.ChangesWhatWasSaid: violations.NeverSaid,
    planted.KeepsGhosts: violations.Ghost,
    planted.TakesItForAnotherOne: violations.BegunAgain,
    planted.Fails: violations.EndedWithError,
}


# What a run must have so that a fault can show itself.
NEEDS = {
    planted.AdvancesWithoutSpooling: {"crashes": 3},
    planted.KeepsTheEpoch: {"cuts": 4, "lags": 3},
    planted.ForgetsTheLastAcknowledgement: {"batched": True},
    planted.WritesAllAcknowledgementsButTheLast: {"batched": True, "crashes": 3},
}


@cache
def caught(router, kind):
    """The first run in which a fault shows itself."""
    for seed in range(1, MOST_RUNS + 1):
        scenario = msgspec.structs.replace(drawn(seed), **NEEDS.get(router, {}))
        run = simulate(scenario, make_router=router)
        if any(type(one) is kind for one in run.violations):
            return run
    raise AssertionError(f"{router.__name__} was not caught as {kind.__name__} in {MOST_RUNS} runs")


@pytest.mark.parametrize("router", FAULTS, ids=lambda router: router.__name__)
def test_a_planted_fault_is_caught(router):
    run = caught(router, FAULTS[router])
    assert all(str(one).endswith(".") for one in run.violations)


def test_what_is_delivered_too_late_is_caught(monkeypatch):
    monkeypatch.setattr("palio.routing.durable.home.outbox.has_expired", lambda envelope, now: False)
    monkeypatch.setattr("palio.routing.durable.home.spool.has_expired", lambda envelope, now: False)
    caught(planted.Router, violations.Expired)


def test_every_kind_of_broken_promise_is_caught_somewhere():
    kinds = {
        one
        for one in vars(violations).values()
        if isinstance(one, type) and issubclass(one, BrokenPromise) and one is not BrokenPromise
    }
    # In test_steering, test_forgetting and test_departing.
    elsewhere = {violations.DuringPause, violations.ForgottenTooEarly, violations.ForgottenByBoth}
    elsewhere |= {violations.LeftTooEarly}
    assert kinds == {*FAULTS.values(), violations.Expired, *elsewhere}
    assert len(CHECKS) >= len(kinds) - 4  # some checks tell two kinds


def test_a_failing_run_is_shrunk_to_a_short_story():
    run = caught(planted.AdvancesWithoutSpooling, violations.LostNotification)

    def again(scenario):
        return simulate(scenario, make_router=planted.AdvancesWithoutSpooling)

    short = shrink(run, again)
    assert len(short.script) <= 12 < len(run.script)
    lines = list(story(short, short.violations[0]))
    assert "never came" in lines[0]
    assert any("crashes" in line for line in lines)
    assert len(lines) < 40


def test_a_story_is_not_about_who_says_nothing():
    steps = (
        Take(time=0.1, name="s0", broker="b0", filter="n > 0"),
        Say(time=0.5, publisher="p0", contents=((1, 1, 1),), number=1),
    )
    run = simulate(FaultScenario(shape="single", brokers=1, takers=1, publishers=2, script=steps))
    told = "\n".join(story(run, violations.LostNotification(number=1)))
    assert "p0 publishes at b0" in told
    assert "p1 publishes" not in told


def test_a_story_is_not_about_parts_that_never_met():
    """Leaving out that a broker joins must not leave two networks that only another one connects."""
    scenario = FaultScenario.from_json(
        '{"type":"faults","seed":30004305,"shape":"graph","script":['
        '{"type":"join","number":1,"time":0.1,"broker":"b1"},'
        '{"type":"join","number":2,"time":0.2,"broker":"b2"}]}'
    )
    run = simulate(scenario)
    assert [{wire.one.name, wire.other.name} for wire in run.world.wires] == [{"b0", "b2"}, {"b1", "b2"}]
    run.violations = [violations.LostNotification(number=1)]
    tried = []

    def again(shorter):
        tried.append(shorter.keep)
        return FaultRun(shorter, run.world, run.script, run.violations)

    shrink(run, again)
    assert tried
    assert (2,) not in tried  # b0 and b1 would not have met
