"""Who is away for longer than others wait is forgotten; nobody else is, nor by a part that is cut off."""

from itertools import pairwise

import msgspec
import pytest

from tests.routing.durable.test_rare import told
from tests.routing.durable.world import SETTINGS, World

AFTER = 60.0
seeds = pytest.mark.parametrize("seed", range(4))


def network(monkeypatch, seed, *, after=AFTER, brokers="abc") -> World:
    settings = msgspec.structs.replace(SETTINGS, forget_after=after)
    monkeypatch.setattr("tests.routing.durable.world.SETTINGS", settings)
    world = World(f"absence {seed}", list(brokers), list(pairwise(brokers)))
    world.run()
    return world


def known(world, broker) -> set:
    return set(world.routers[broker].durable.topology.known)


def forgotten(world) -> set:
    return {(by, broker, why) for _, what, by, broker, why in _five(world) if what == "forgotten"}


def _five(world):
    return [line for line in world.history if len(line) == 5]


@seeds
def test_who_is_away_for_long_enough_is_forgotten_by_all(monkeypatch, seed):
    world = network(monkeypatch, seed)
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    world.crash("c")
    began = world.now
    world.run()
    assert world.now - began >= AFTER
    assert known(world, "a") == known(world, "b") == {"a", "b"}
    assert {(by, broker) for by, broker, _ in forgotten(world)} == {("a", "c"), ("b", "c")}
    assert "away" in {why for *_, why in forgotten(world)}
    world.attach("two", "b", "s1", "n > 0")
    world.run()
    assert told(world, "DurableReady", "s1"), "nobody waits for it any more"
    world.heal()
    world.run()
    assert known(world, "a") == known(world, "c") == {"a", "b", "c"}, "it is there after all"


@seeds
def test_who_comes_back_in_time_is_not_and_its_time_begins_anew(monkeypatch, seed):
    world = network(monkeypatch, seed)
    for _ in range(4):
        world.crash("c")
        while world.step():
            pass
        world.now += 0.4 * AFTER
        for timer in [key for key, at in world.timers.items() if at <= world.now]:
            world.timers[timer] = world.now
        world.heal()
        for _ in range(400):
            world.step()
    world.run()
    assert not forgotten(world)


@seeds
def test_a_part_that_is_cut_off_forgets_nobody(monkeypatch, seed):
    world = network(monkeypatch, seed, brokers="abcde")
    world.cut(frozenset("bc"))
    world.run()
    assert known(world, "d") == set("cde")
    assert known(world, "a") == set("abcde"), "two of five"
    world.heal()
    world.run()
    for broker in "abcde":
        assert known(world, broker) == set("abcde")


@seeds
def test_of_two_halves_that_with_the_first_name_forgets_the_other(monkeypatch, seed):
    world = network(monkeypatch, seed, brokers="ab")
    world.cut(frozenset("ab"))
    world.run()
    assert (known(world, "a"), known(world, "b")) == ({"a"}, {"a", "b"})


@seeds
def test_who_begins_and_finds_nobody_waits_for_them_as_long(monkeypatch, seed):
    world = network(monkeypatch, seed, brokers="ab")
    world.crash("b")
    world.crash("a")
    world.begin("a")
    began = world.now
    world.run()
    assert known(world, "a") == {"a"}
    assert world.now - began >= AFTER


def test_nobody_is_unless_it_is_asked_for(monkeypatch):
    world = network(monkeypatch, 1, after=0.0)
    world.crash("c")
    world.run()
    world.now += 1_000 * AFTER
    world.run()
    assert known(world, "a") == set("abc")
