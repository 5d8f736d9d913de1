"""Fair queueing: whose turn it is. The numbers are those of the invariants in `palio.broker.turns`."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.broker.turns import Turns

seeds = pytest.mark.parametrize("seed", range(20))


def served(turns: Turns[str], costs: dict[str, float], rounds: int, weights: dict[str, float]) -> Counter[str]:
    """Clients `owner/name` that are always ready, each turn of which costs the same: what each has cost."""
    spent: Counter[str] = Counter()
    for client in costs:
        turns.ready(client, client.partition("/")[0])
    for _ in range(rounds):
        found = turns.next()
        assert found is not None
        client, owner = found
        spent[client] += costs[client]  # type: ignore[assignment]
        turns.ready(client, str(owner))
        turns.charge(client, str(owner), costs[client], weights.get(str(owner), 1.0))
    return spent


@seeds
def test_1_principals_that_always_ask_cost_the_same_whatever_they_ask_for_and_on_however_many_sessions(seed):
    chance = Random(f"turns {seed}")
    costs = {
        f"{owner}/{session}": chance.choice([0.125, 1.0, 30.0])
        for owner in "abc"
        for session in range(chance.choice([1, 2, 50]))
    }
    weights = {"c": 4.0}
    spent = served(Turns(), costs, 3_000, weights)
    dearest = max(costs.values())
    by_owner = {
        owner: sum(cost for client, cost in spent.items() if client[0] == owner) / weights.get(owner, 1.0)
        for owner in "abc"
    }
    assert max(by_owner.values()) - min(by_owner.values()) <= dearest
    for owner in "abc":
        sessions = [spent[client] for client in costs if client[0] == owner]
        assert max(sessions) - min(sessions) <= dearest


@seeds
def test_2_who_asks_for_little_has_the_next_turn(seed):
    chance = Random(f"turns {seed}")
    turns: Turns[str] = Turns()
    served(turns, {f"greedy/{n}": chance.uniform(0.1, 9.0) for n in range(chance.choice([1, 40]))}, 500, {})
    for _ in range(50):
        turns.ready("modest/1", "modest")
        assert turns.next() == ("modest/1", "modest")
        turns.charge("modest/1", "modest", 0.01)
        for _ in range(chance.randint(1, 5)):
            found = turns.next()
            assert found is not None
            client, owner = found
            assert owner == "greedy"
            turns.ready(client, owner)
            turns.charge(client, owner, 5.0)


def test_3_who_was_quiet_for_long_does_not_keep_the_others_waiting():
    turns: Turns[str] = Turns()
    served(turns, {"old/1": 1.0}, 10_000, {})
    turns.ready("new/1", "new")
    owners = []
    for _ in range(10):
        found = turns.next()
        assert found is not None
        client, owner = found
        owners.append(owner)
        turns.ready(client, owner)
        turns.charge(client, owner, 1.0)
    assert owners.count("old") == owners.count("new") == 5


def test_who_owes_something_cannot_get_rid_of_it_by_going_away():
    turns: Turns[str] = Turns()
    served(turns, {"a/1": 1.0, "b/1": 1.0}, 10, {})
    turns.next()
    turns.charge("a/1", "a", 100.0)
    turns.leave("a/1", "a")
    turns.ready("a/2", "a")
    owners = []
    for _ in range(50):
        found = turns.next()
        assert found is not None
        owners.append(found[1])
        turns.ready(*found)
        turns.charge(*found, 1.0)
    assert "a" not in owners


@given(st.lists(st.tuples(st.sampled_from("rnclhx"), st.integers(0, 4), st.integers(0, 9)), max_size=200))
def test_whoever_is_ready_and_not_held_back_has_a_turn_and_nobody_else(steps):
    turns: Turns[str] = Turns()
    ready: dict[str, None] = {}
    held: set[str] = set()
    for what, n, cost in steps:
        client, owner = f"{n % 3}/{n}", f"{n % 3}"
        match what:
            case "r":
                turns.ready(client, owner)
                ready[client] = None
            case "n":
                found = turns.next()
                can = [one for one in ready if one[0] not in held]
                assert (found is not None) is bool(can)
                if found is not None:
                    assert found[0] in can
                    del ready[found[0]]
            case "c":
                turns.charge(client, owner, float(cost))
            case "l":
                turns.leave(client, owner)
                ready.pop(client, None)
            case "h":
                turns.hold(owner)
                held.add(owner)
            case "x":
                turns.release(owner)
                held.discard(owner)
        assert len(turns) == len({one[0] for one in ready} - held)


def test_4_nothing_is_remembered_of_those_who_are_gone_and_owe_nothing():
    turns: Turns[str] = Turns()
    for n in range(10_000):
        turns.ready(f"{n}/1", f"{n}")
        found = turns.next()
        assert found is not None
        turns.charge(*found, 1.0)
        turns.leave(*found)
    assert len(turns._clients) == 0
    assert len(turns._owners._cost) < 2_000
    assert len(turns._owners._heap) < 2_000


def test_what_was_done_for_somebody_in_the_turn_of_another_counts_as_its_own():
    turns: Turns[str] = Turns()
    for client in ("a", "b"):
        turns.ready(client, client.upper())
    turns.owe("A", 5.0)
    turns.owe("nobody", 5.0)
    order = []
    for _ in range(6):
        found = turns.next()
        assert found is not None
        order.append(found[0])
        turns.ready(*found)
        turns.charge(*found, 1.0)
    assert order == ["b"] * 5 + ["a"] or order == ["b"] * 6


def test_one_client_of_several_can_be_charged_alone():
    turns: Turns[str] = Turns()
    for client in ("a", "b"):
        turns.ready(client, "everybody")
    turns.owe("a", 3.0)
    order = []
    for _ in range(4):
        found = turns.next()
        assert found is not None
        order.append(found[0])
        turns.ready(*found)
        turns.charge(*found, 1.0)
    assert order.count("b") >= 3
