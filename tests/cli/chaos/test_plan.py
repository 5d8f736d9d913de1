"""What is to go wrong is drawn from a seed, and from nothing else."""

from __future__ import annotations

import pytest

from palio.cli.chaos.plan import CALM, FAULT_KINDS, draw_plan

BROKERS = [f"b{number:02}" for number in range(1, 16)]


def drawn(seed, *, brokers=BROKERS, seconds=600.0, kinds=FAULT_KINDS, heartbeat=1.0, pace=1.0):
    return draw_plan(seed, brokers, seconds, kinds, heartbeat=heartbeat, every=4.0, pace=pace)


def test_the_same_seed_draws_the_same_faults_and_another_one_others():
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


@pytest.mark.parametrize("seed", range(20))
def test_faults_come_in_order_within_the_time_and_hit_brokers_that_there_are(seed):
    plan = drawn(seed)
    assert [one.number for one in plan] == list(range(1, len(plan) + 1))
    times = [one.at for one in plan]
    assert times == sorted(times)
    assert times[0] == CALM
    assert times[-1] < 600.0
    for one in plan:
        assert set(one.brokers) <= set(BROKERS)
        assert len(set(one.brokers)) == len(one.brokers)
    assert {one.kind for one in plan} == set(FAULT_KINDS)
    some = [len(one.brokers) for one in plan if one.kind == "split"]
    assert all(1 <= count <= len(BROKERS) // 2 for count in some)


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_only_what_is_asked_for_goes_wrong(kind):
    plan = drawn(3, kinds=[kind])
    assert plan
    assert {one.kind for one in plan} == {kind}


def test_kills_take_turns_between_inner_brokers_roots_one_and_three():
    plan = drawn(5, kinds=["kill"])
    hit = [(one.target, len(one.brokers)) for one in plan]
    assert set(hit[:4]) == {("inner", 0), ("root", 0), ("named", 3), ("named", 1)}
    assert set(hit[4:8]) == set(hit[:4])


def test_some_who_stand_still_are_noticed_and_some_are_not():
    lasts = [one.lasts for one in drawn(5, kinds=["stop"], heartbeat=2.0)]
    assert any(one < 3 * 2.0 for one in lasts)
    assert any(one > 4 * 2.0 for one in lasts)


def test_a_rolling_restart_alone_is_one_of_all_brokers():
    assert set(drawn(1, kinds=["restart"])[0].brokers) == set(BROKERS)
    assert {len(one.brokers) for one in drawn(1) if one.kind == "restart"} == {3}


def test_a_small_network_is_never_killed_as_a_whole():
    for seed in range(20):
        plan = drawn(seed, brokers=BROKERS[:3], kinds=["kill"])
        assert all(len(one.brokers) <= 2 for one in plan)
