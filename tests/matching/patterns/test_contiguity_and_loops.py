"""What the engines of others are known for, worked by hand: contiguity, loops, greediness.

Events are words such as `a1`: a letter, and a number that comparisons can use. They come a second apart, and a
match is written as its events.
"""

import re

import pytest

from palio import Notification
from palio.matching.patterns import Detector

SECOND = 1_000_000


def found(pattern: str, events: str, *, close: bool = True) -> list[str]:
    """The matches of a pattern in which `A` stands for `A[t = "a"]`, told at once or when nothing comes any
    more."""
    text = re.sub(
        r"(?<!first )(?<!last )(?<!count\()\b([ABCD])\b(?![\[.])",
        lambda name: f'{name[0]}[t = "{name[0].lower()}"]',
        pattern,
    )
    detector = Detector({"p": text if "within 1 h" in text else f"{text} within 1 h"})
    matches = []
    for place, event in enumerate(events.split()):
        attributes = {"t": event[0], "n": int(event[1:] or 0)}
        detector.take(Notification(attributes), time=place * SECOND, position=place, id=event)
        matches += detector.advance(place * SECOND)
    if close:
        matches += detector.close()
    return [" ".join(one.id for one in match.constituents) for match in matches]


# Contiguity: the events of Flink's page on CEP, "a", "c", "b1", "b2".


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("A next B", []),
        ("A then B", ["a b1"]),
        ("A then B within 1 h select every", ["a b1", "a b2"]),
        ("A not next C then B", []),
        ("A not next B then B2", ["a b1"]),
        ("A next C next B", ["a c b1"]),
        ("A next C then B within 1 h select every", ["a c b1", "a c b2"]),
    ],
)
def test_contiguity(pattern, matches):
    pattern = pattern.replace("B2", 'E[t = "b"]')
    assert found(pattern, "a c b1 b2") == matches


def test_strict_contiguity_is_about_all_events_of_a_key():
    detector = Detector({"p": 'A[t = "a"] next B[t = "b"] within 1 h by k'})
    for place, (letter, key) in enumerate([("a", 1), ("a", 2), ("x", 1), ("x", 3), ("b", 1), ("b", 2)]):
        detector.take(Notification({"t": letter, "k": key}), time=place, position=place, id=f"{letter}{place}")
    (match,) = detector.close()
    assert [one.id for one in match.constituents] == ["a1", "b5"]
    assert detector.counts.hits == 6


def test_what_nothing_follows_at_once_is_forgotten_at_once():
    detector = Detector({"p": 'A[t = "a"] next B[t = "b"] within 1 h'})
    for place, letter in enumerate("axbxaaxx"):
        detector.take(Notification({"t": letter}), time=place, position=place)
        detector.advance(place)
    assert detector.statistics().remembered == 0
    detector.take(Notification({"t": "a"}), time=9, position=9)
    detector.advance(9)
    assert detector.statistics().remembered == 1


def test_not_next_at_the_end_is_told_with_the_next_event_or_when_the_window_has_passed():
    assert found("A not next B", "a c", close=False) == ["a"]
    assert found("A not next B", "a b", close=False) == []
    assert found("A not next B", "a", close=False) == []
    assert found("A not next B", "a") == ["a"]


# Loops


def test_a_match_in_two_ways_is_told_once_though_one_of_them_is_certain_later():
    pattern = '(A or E[t = "b"]) and (C[t = "b"] not next D) within 1 h select every'
    assert found(pattern, "b1 b2 a3") == ["b1 b2", "b1 a3", "b2 a3"]


@pytest.mark.parametrize(
    ("pattern", "events", "matches"),
    [
        ("A+ then B", "a1 a2 a3 b", ["a1 a2 a3 b"]),
        ("A+ then B", "a1 c a2 b", ["a1 a2 b"]),
        ("A+ next B", "a1 a2 c b", []),
        ("A+ next B", "a1 c a2 b", ["a1 a2 b"]),
        ("A? then B", "b1 a b2", ["b1", "a b2"]),
        ("C then A* then B", "c b", ["c b"]),
        ("C then A* then B", "c a1 a2 b", ["c a1 a2 b"]),
        ("A{2,3} then B", "a1 b1 a2 b2", ["a1 a2 b2"]),
        ("A{2,3} then B", "a1 a2 a3 a4 b", ["a1 a2 a3 b"]),
        ("A{2,} then B", "a1 a2 a3 a4 b", ["a1 a2 a3 a4 b"]),
        ("A{2} then B", "a1 a2 a3 b", ["a1 a2 b"]),
        ("A then B? then C", "a c", ["a c"]),
        ("A then B? then C", "a b c", ["a b c"]),
        ("A then not D then B? then C", "a d b c", []),
        ("A then not D then B? then C", "a b d c", ["a b c"]),
        ("A then not D then B? then C", "a d c", []),
        ("A then B? next C", "a d b c", ["a b c"]),
        ("A then B? next C", "a d c", []),
        ("A next B? then C", "a d c", ["a c"]),
    ],
)
def test_loops(pattern, events, matches):
    assert found(pattern, events, close=False) == matches


def test_every_match_of_a_loop():
    assert sorted(found("A+ then B within 1 h select every", "a1 a2 b")) == ["a1 a2 b", "a1 b", "a2 b"]


def test_every_match_of_a_loop_that_nothing_completes_is_not_looked_for():
    events = " ".join(f"a{number}" for number in range(40))
    detector = Detector({"p": 'A[t = "a"]+ then B[t = "b"] within 1 h select every'})
    for place, event in enumerate(events.split()):
        detector.take(Notification({"t": event[0]}), time=place, position=place)
        assert detector.advance(place) == []
    assert detector.counts.abandoned == 0


# Greedy or not: n > 0 goes on, n > 5 could end it.
UP = "A[n > 0]{} then B[n > 5]"


@pytest.mark.parametrize(
    ("loop", "at_once", "in_the_end"),
    [("+?", ["x1 x6"], ["x1 x6", "x7 x8"]), ("+", [], ["x1 x6 x7 x8"]), ("{1,2}", ["x1 x6 x7"], ["x1 x6 x7"])],
)
def test_an_event_that_could_be_both_belongs_to_a_greedy_loop(loop, at_once, in_the_end):
    assert found(UP.format(loop), "x1 x6 x7", close=False) == at_once
    assert found(UP.format(loop), "x1 x6 x7 x8") == in_the_end


def test_a_loop_at_the_end_goes_on_if_it_is_greedy():
    assert found("A then B+", "a b1 b2", close=False) == []
    assert found("A then B+", "a b1 b2 c b3") == ["a b1 b2 b3"]
    assert found("A then B+?", "a b1 b2", close=False) == ["a b1"]
    assert found("A then B{1,2}", "a b1 b2", close=False) == ["a b1 b2"]
    assert found("A then B?", "a") == ["a"]
    assert found("A then B?", "a b", close=False) == ["a b"]


def test_a_long_loop_is_one_automaton_and_an_unbounded_one_is_bounded():
    events = " ".join(f"a{number}" for number in range(100))
    (match,) = found("A{2,50} then B", f"{events} b")
    assert len(match.split()) == 51
    (match,) = found("A+ then B", f"{events} b")
    assert len(match.split()) == 65


def test_a_long_loop_that_comes_to_nothing_is_searched_quickly():
    detector = Detector({"p": 'A[t = "a"]+ then B[t = "b"] then C[t = "c"] within 1 s'})
    for time in range(900):
        detector.take(Notification({"t": "b" if time == 500 else "a"}), time=time, position=time)
    assert detector.close() == []
    assert detector.counts.abandoned == 0


# Until


def test_a_loop_takes_nothing_behind_what_ends_it():
    assert found("A then B+ until C", "a b1 b2 c b3", close=False) == ["a b1 b2"]
    assert found("A then B+ until C then D", "a b1 b2 c b3 d", close=False) == ["a b1 b2 d"]
    assert found("B+ until C then D", "c b1 b2 c b3 d", close=False) == ["b1 b2 d"]
    assert found("A then B{2,} until C", "a b1 c b2 b3") == []
    assert found("A then B* until C then D", "a c b1 d", close=False) == ["a d"]


def test_what_ends_a_loop_can_be_what_follows_it():
    assert found('A+ until C then E[t = "c"]', "a1 a2 c a3", close=False) == ["a1 a2 c"]


def test_an_event_that_ends_a_loop_is_not_part_of_it():
    assert found("A[n > 0]+ until E[n > 5] then B", "x1 x2 x7 x3 b", close=False) == ["x1 x2 b"]


def test_a_greedy_loop_at_the_end_is_told_when_it_is_ended():
    assert found("A then B+ until C", "a b1 b2", close=False) == []
    assert found("A then B+ until C", "a b1 b2 c", close=False) == ["a b1 b2"]


# Figures over earlier events of a loop


def test_a_loop_goes_on_as_long_as_its_sum_allows_it():
    less_than_ten = "A[n > 0 and n < 10 - sum(A.n)]+ then B"
    assert found(less_than_ten, "x1 x6 x4 x2 b", close=False) == ["x1 x6 x2 b"]


def test_a_step_is_compared_with_all_of_a_loop():
    assert found("A[n < 50]+ then E[n > avg(A.n) * 2]", "x10 x20 x25 x60", close=False) == ["x10 x20 x25 x60"]
    enough = 'A[t = "x"]+ then B[t = "b" and sum(A.n) > 5]'
    assert found(enough, "x3 b1 x4 b2", close=False) == ["x3 x4 b2"]
    assert found('A{2,} then E[t = "b" and count(A) > 2]', "a b1 a b2 a b3") == ["a a a b3"]


def test_a_loop_that_rises():
    rising = "A[n > 0 and (count(A) = 0 or n > last(A.n))]{2,} then B"
    assert found(rising, "x1 x3 x2 x5 b", close=False) == ["x1 x3 x5 b"]


# Windows between neighbours


def test_a_window_between_neighbours():
    assert found("A then within 2 s B", "a1 c c b1 a2 c b2") == ["a2 b2"]
    assert found("A then within 2 s B then C", "a b c c c c", close=False) == ["a b c"]
    assert found("A+ then within 1 s B", "a1 c a2 b") == ["a1 a2 b"]
    assert found("A next within 1 s B", "a b") == ["a b"]


def test_what_did_not_come_soon_enough_holds_back_nothing():
    text = '(A then within 2 s B) or (D then E[t = "b"])'
    assert found(text, "a c c c d b", close=False) == ["d b"]


# What follows a match: the table of Flink's page on CEP for `b+ c` on b1 b2 b3 c, without what Flink finds
# beside the first match of each beginning.


@pytest.mark.parametrize(
    ("policy", "matches"),
    [
        ("", ["b1 b2 b3 c"]),
        ("skip to next", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        ("consume none", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        ("skip to first B", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        ("skip to last B", ["b1 b2 b3 c", "b3 c"]),
        ("skip to first C", ["b1 b2 b3 c"]),
    ],
)
def test_skip(policy, matches):
    assert found(f"B+ then C within 1 h {policy}", "b1 b2 b3 c", close=False) == matches


def test_skip_to_an_event_that_ends_one_match_and_begins_the_next():
    rising = "A[n > 0] then E[n > A.n] within 1 h skip to last E"
    assert found(rising, "x1 x2 x3 x1 x4", close=False) == ["x1 x2", "x2 x3", "x3 x4"]
    assert found("A? then B within 1 h skip to first A", "b1 a b2", close=False) == ["b1", "a b2", "b2"]
