"""Thoughts: done a little at a time, whatever they are about, and given up wherever they are."""

from __future__ import annotations

from time import perf_counter

import pytest

from palio import Filter
from palio.broker.thinking import Stacks, Thought
from palio.model.effort import BREATH, Meter, metered, spend
from palio.model.errors import TooHard
from palio.protocol.encoding import UnreadableMessage, decode, encode
from palio.protocol.requests import Subscribe

HARD = " and ".join(f'not t contains "{letter}{letter}x"' for letter in "abcdefgh")
NOW = 0.0  # a moment that is over: each turn is as short as can be


def test_a_thought_ends_as_if_it_had_not_been_interrupted():
    found = []

    def think(meter: Meter) -> None:
        with metered(meter):
            found.append(Filter.parse(HARD))

    thought = Thought(think, 10**9, Stacks())
    turns = 1
    while not thought.go_on(NOW):
        turns += 1
    assert turns > 5
    assert found == [Filter.parse(HARD)]


def test_with_time_enough_it_is_one_turn():
    thought = Thought(lambda meter: meter.spend(100 * BREATH), 10**9, Stacks())
    assert thought.go_on(perf_counter() + 60.0)


def test_messages_are_read_in_pieces_beside_each_other():
    """Within the decoder, which is C, and calls back for filters."""
    texts = [HARD.replace("x", letter) for letter in "pqrst"]
    payloads = [encode(Subscribe("h", Filter.parse(text))) for text in texts]
    read: dict[int, object] = {}

    def reading(place: int) -> Thought:
        def think(meter: Meter) -> None:
            with metered(meter):
                read[place] = decode(payloads[place])

        return Thought(think, 10**9, Stacks())

    thoughts = [reading(place) for place in range(len(texts))]
    turns = 0
    while thoughts:
        thoughts = [thought for thought in thoughts if not thought.go_on(NOW)]
        turns += 1
    assert turns > 5
    assert read == {place: Subscribe("h", Filter.parse(text)) for place, text in enumerate(texts)}


def test_what_it_raises_is_raised_where_it_goes_on():
    payload = encode(Subscribe("h", Filter.parse(HARD)))

    def think(meter: Meter) -> None:
        with metered(meter):
            decode(payload)

    thought = Thought(think, 3 * BREATH, Stacks())
    assert not thought.go_on(NOW)
    with pytest.raises(UnreadableMessage) as caught:
        assert thought.go_on(perf_counter() + 60.0)
    assert caught.value.error == TooHard.__name__


def test_one_that_is_given_up_ends_where_it_is():
    ended = []

    def think(meter: Meter) -> None:
        assert thought.is_current
        try:
            with metered(meter):
                spend(2 * BREATH)
                raise AssertionError("It was given up before.")
        finally:
            ended.append(True)

    thought = Thought(think, 10**9, Stacks())
    assert not thought.go_on(NOW)
    assert not thought.is_current
    thought.give_up()
    assert ended == [True]


def test_stacks_are_used_again_whatever_has_become_of_thoughts():
    stacks = Stacks()

    def fail(meter: Meter) -> None:
        with metered(meter):
            spend(2 * BREATH)
        raise ValueError("again")

    def think(meter: Meter) -> None:
        with metered(meter):
            spend(3 * BREATH)
        done.append(meter)

    done: list[Meter] = []
    for _ in range(50):
        failing, thinking, given_up = [Thought(one, 10**9, stacks) for one in (fail, think, think)]
        assert not given_up.go_on(NOW)
        assert not failing.go_on(NOW)
        assert not thinking.go_on(NOW)
        given_up.give_up()
        with pytest.raises(ValueError, match="again"):
            failing.go_on(perf_counter() + 60.0)
        assert thinking.go_on(perf_counter() + 60.0)
        for over in (failing, thinking, given_up):
            over.give_up()  # which is no news to any of them, nor to who uses their stacks next
            assert not over.is_current
    assert len(done) == 50
    assert len(stacks._idle) == 2
    with metered(None):
        spend(10**12)  # nobody's meter is left behind
