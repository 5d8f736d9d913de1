"""The way to live is a table: it is complete, and a home goes by it."""

import pytest

from palio.routing.durable.home.going_live import BEGIN_AGAIN, WAY, GoingLive, Stage, WaveEnded
from tests.routing.durable.test_rare import publish, told
from tests.routing.durable.world import World

seeds = pytest.mark.parametrize("seed", range(6))


@pytest.fixture
def went(monkeypatch) -> list:
    """What led from which stage to which, as it happens."""
    seen = []
    go = GoingLive._go

    def watched(self, event):
        before = self.stage
        go(self, event)
        seen.append((before, event, self.stage))

    monkeypatch.setattr(GoingLive, "_go", watched)
    return seen


def test_every_stage_is_left_and_reached():
    assert set(WAY) == set(Stage)
    assert {following for events in WAY.values() for following in events.values()} == set(Stage)
    assert {event for events in WAY.values() for event in events} > BEGIN_AGAIN


@seeds
def test_a_new_subscription_goes_all_the_way(seed, went):
    world = World(f"way {seed}", ["a", "b"], [("a", "b")])
    world.run()
    went.clear()
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    assert told(world, "DurableReady", "s0")
    assert went[-3:] == [
        (Stage.RESTING, "settled", Stage.WAVE),
        (Stage.WAVE, "wave ended", Stage.POLL),
        (Stage.POLL, "complete", Stage.RESTING),
    ]
    assert all(WAY[before][event] is after for before, event, after in went)


@seeds
def test_whatever_goes_wrong_leads_to_another_beginning(seed, went):
    world = World(f"way {seed}", ["a", "b", "c"], [("a", "b"), ("b", "c")])
    world.run()
    world.attach("one", "a", "s0", "n > 0")
    for _ in range(8):
        for _ in range(world.choose.randint(0, 60)):
            world.step() or world.wait()
        world.cut(world.choose.choice(sorted(world.up, key=sorted))) if world.up else None
        world.heal()
    world.run()
    publish(world, "c", 1)
    durable = world.routers["a"].durable
    assert not durable.parts.going_live.is_under_way
    assert durable.statistics().subscriptions[0].state == "live"
    assert went[-1] == (Stage.POLL, "complete", Stage.RESTING)


def test_a_wave_that_ends_late_is_not_taken_for_the_present_one(went):
    world = World("late", ["a"], [])
    world.run()
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    went.clear()
    world.routers["a"].durable.wave_ended(WaveEnded(1))
    assert went == []


def test_when_all_is_quiet_nothing_is_waited_for():
    world = World("quiet", ["a", "b"], [("a", "b")])
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    publish(world, "b", 1, 2, 3)
    statistics = world.routers["a"].durable.statistics()
    assert (statistics.writes, statistics.questions, statistics.wishes) == (0, 0, 0)
    assert (statistics.handed >= 3, [one.durable for one in statistics.subscriptions]) == (True, ["s0"])
    assert statistics.epoch == world.routers["b"].durable.statistics().epoch
    assert world.routers["b"].durable.statistics().readers == 1
