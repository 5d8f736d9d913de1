"""Accounts: who holds how much. The numbers are those of `palio.broker.accounts`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palio.broker.accounts import FAR, Accounts


def test_1_and_2_who_holds_more_than_its_share_is_over_it_and_nobody_else():
    accounts = Accounts(100, 1_000)
    accounts.change("a", 100)
    accounts.change("b", 101)
    assert accounts.over("a") == 1.0
    assert accounts.over("b") > 1.0
    assert accounts.over("c") == 0.0
    accounts.change("b", -1)
    assert accounts.over("b") == 1.0


def test_3_who_holds_several_times_its_share_is_far_over_it():
    accounts = Accounts(100, 1_000)
    accounts.change("a", 100 * FAR + 1)
    assert accounts.over("a") > FAR


def test_4_while_all_together_hold_too_much_everybody_has_an_equal_part():
    accounts = Accounts(100, 300)
    for name in "abcd":
        accounts.change(name, 74)
    assert [accounts.over(name) > 1.0 for name in "abcd"] == [False] * 4
    accounts.change("d", 20)
    assert [accounts.over(name) > 1.0 for name in "abcd"] == [False, False, False, True]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 100)), max_size=50))
def test_what_was_given_back_is_not_remembered(changes):
    accounts = Accounts(10, 100)
    held = dict.fromkeys("abc", 0)
    for name, amount in changes:
        accounts.change(name, amount - held[name])
        held[name] = amount
        assert accounts.total == sum(held.values())
        assert accounts.held(name) == amount
    for name, amount in held.items():
        accounts.change(name, -amount)
    assert accounts.total == 0
    assert accounts._held == {}
