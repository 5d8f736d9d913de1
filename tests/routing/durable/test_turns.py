"""Of many subscriptions, some have their turn at each tick: all have it in the end."""

import pytest

from palio.routing.durable.facts import FactKind
from palio.routing.durable.home.tick_turns import TickTurns
from tests.routing.durable.test_rare import publish, told
from tests.routing.durable.world import World


def taken(turns, ones, wanting):
    found = []
    for one in turns.of(ones):
        if one in wanting:
            turns.taken()
            found.append(one)
    return found


def test_everyone_who_wants_has_a_turn():
    turns, ones = TickTurns(at_once=2), list("abcdef")
    wanting = set("abcdf")
    assert taken(turns, ones, wanting) == ["a", "b"]
    assert not turns.is_over
    assert taken(turns, ones, wanting) == ["c", "d"]
    assert taken(turns, ones, wanting) == ["f", "a"]
    assert not turns.is_over, "there may be more who want"
    assert taken(turns, ones, set("b")) == ["b"]
    assert turns.is_over
    assert taken(turns, ones, wanting) == ["a", "b"]
    assert taken(turns, [], wanting) == []
    assert turns.is_over
    assert taken(turns, ["a"], wanting) == ["a"]


def test_who_has_gone_takes_no_turn():
    turns = TickTurns(at_once=2)
    assert taken(turns, list("abcdef"), set("abcdef")) == ["a", "b"]
    assert taken(turns, ["a"], {"a"}) == ["a"]
    assert turns.is_over


@pytest.mark.parametrize("seed", range(4))
def test_all_journals_hear_how_far_everyone_is(seed, monkeypatch):
    monkeypatch.setattr(TickTurns.__init__, "__defaults__", (1,))
    world = World(f"turns {seed}", ["a", "b"], [("a", "b")])
    for number in range(5):
        world.attach(f"t{number}", "b", f"s{number}", f"n = {number}")
    world.run()
    assert all(told(world, "DurableReady", f"s{number}") for number in range(5))
    publish(world, "a", 0, 1, 7, 8, 9)
    world.run()
    durable = world.routers["b"].durable
    readers = [one.identity for one in durable.homes.subscriptions.values()]
    assert [world.disks["a"].facts[FactKind.READER.of(reader, "b")] for reader in readers] == [5] * 5
    assert world.disks["a"].trimmed == 5
    assert {one.written_position["a"] for one in durable.homes.subscriptions.values()} == {5}
