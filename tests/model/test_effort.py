"""Effort is counted in steps: the same wherever it is spent, and however the work is cut into pieces."""

from __future__ import annotations

import pytest

from palio import Filter, FilterTooLarge
from palio.model.effort import BREATH, Effort, Meter, Undecided, metered, pause, spend
from palio.model.errors import TooHard

HARD = " and ".join(f'not t contains "{letter}{letter}x"' for letter in "abcdefgh")
SUFFIX = 't ends with "00001" and t contains "q1"'
LARGE = " or ".join(f'(a{n} > {n} and t{n % 7} contains "2x{n}")' for n in range(30))
QUESTIONS = {
    "parse": lambda: Filter.parse(HARD),
    "covers": lambda: Filter.parse(HARD).covers(Filter.parse(SUFFIX)),
    "overlaps": lambda: Filter.parse(HARD).overlaps(Filter.parse(SUFFIX)),
    "hash": lambda: hash(Filter.parse(LARGE)),
    "lists": lambda: Filter.parse(" and ".join(f'tags has "x{n}"' for n in range(8))),
    "patterns": lambda: Filter.parse('t regex "[a-z]{1,40}-[0-9]+" and t like "%_a_%" and not t like "x_%y"'),
    "values": lambda: Filter.parse(f"x in ({', '.join(map(str, range(2_000)))})"),
}
questions = pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)


@questions
def test_steps_are_the_same_each_time_and_however_often_it_is_interrupted(question):
    breaths = 0

    def breathe() -> None:
        nonlocal breaths
        breaths += 1
        with metered(Meter(10**9)):  # something else happens in between
            Filter.parse(SUFFIX)

    whole, cut = Meter(10**9), Meter(10**9, breathe)
    with metered(whole):
        answer = question()
    with metered(cut):
        again = question()
    assert again == answer
    assert whole.spent == cut.spent > BREATH
    assert 0 < breaths <= cut.spent // BREATH
    assert question() == answer  # without any meter


@questions
def test_what_takes_too_long_is_ended_and_nothing_wrong_is_remembered(question):
    answer = question()
    whole = Meter(10**9)
    with metered(whole):
        question()
    for limit in (0, whole.spent // 3, whole.spent - 1):
        meter = Meter(limit)
        with pytest.raises(TooHard) as caught, metered(meter):
            question()
        assert caught.value.limit == limit
        assert question() == answer
    with metered(Meter(whole.spent)):
        again = question()
    assert again == answer


def test_a_filter_that_was_too_hard_to_tell_from_others_can_be_told_later():
    filter = Filter.parse(LARGE)
    with pytest.raises(TooHard), metered(Meter(1_000)):
        hash(filter)
    assert hash(filter) == hash(Filter.parse(LARGE))


def test_effort_that_ran_out_is_no_matter_of_the_meter():
    meter = Meter(10**9)
    with metered(meter):
        effort = Effort(10, steps=3)
        effort.spend(4)
        with pytest.raises(Undecided):
            effort.spend(7)
    assert meter.spent == 12


def test_within_a_stretch_that_is_not_metered_nothing_is_counted_or_interrupted():
    def breathe() -> None:
        raise AssertionError("This was not to be interrupted.")

    meter = Meter(10, breathe)
    with metered(meter), metered(None):
        spend(10**6)
        Filter.parse(HARD)
    assert meter.spent == 0


def test_refusing_costs_no_more_than_the_limit_of_the_filter_language():
    meter = Meter(10**9)
    with metered(meter), pytest.raises(FilterTooLarge):
        Filter.parse(" and ".join(f"(a{n} = {n} or b{n} = {n} or c{n} = {n})" for n in range(60)))
    assert meter.spent < 5_000_000


def test_a_pause_lets_others_in_and_counts_no_steps():
    breaths = []
    meter = Meter(limit=1, breathe=lambda: breaths.append(None))
    with metered(meter):
        for _ in range(10):
            pause()
    pause()  # without a meter there is nobody to let in
    assert (len(breaths), meter.spent) == (10, 0)
