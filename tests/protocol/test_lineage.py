"""The fork point of two lineages is where their journals, compared event by event, begin to differ."""

from __future__ import annotations

import random
from itertools import takewhile
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from palio.protocol.durable.lineage import (
    LONGEST_LINEAGE,
    MOST_GAPS,
    GapKind,
    Incarnation,
    JournalGap,
    Lineage,
    begun,
    fork_point,
    runs_of,
    with_gap,
)
from tests.slices import examples


class Paper:
    """A journal on a disk: its events, each one like no other, and its lineage."""

    def __init__(self) -> None:
        self.events: list[int] = []
        self.lineage: Lineage = ()

    def copied(self) -> Paper:
        copy = Paper()
        copy.events, copy.lineage = list(self.events), self.lineage
        return copy


def histories(choose: random.Random, steps: int) -> tuple[Paper, list[Paper]]:
    """A journal that was opened, written, and came back older, again and again; and what it was meanwhile."""
    paper, moments, given_ids = Paper(), [Paper()], 0
    for _ in range(steps):
        match choose.choice(["append", "append", "restart", "older"]):
            case "append" if paper.lineage:
                for _ in range(choose.randint(1, 3)):
                    given_ids += 1
                    paper.events.append(given_ids)
                    moments.append(paper.copied())
            case "older" if moments:
                paper = choose.choice(moments).copied()
                paper = _opened(paper, given_ids := given_ids + 1)
            case _:
                paper = _opened(paper, given_ids := given_ids + 1)
        moments.append(paper.copied())
    return paper, moments


def _opened(paper: Paper, id: int) -> Paper:
    number = paper.lineage[-1].number + 1 if paper.lineage else 1
    paper.lineage = begun(paper.lineage, Incarnation(number, f"{id:x}", len(paper.events)))
    return paper


@examples(300)
@given(choose=st.randoms(use_true_random=False), steps=st.integers(1, 30))
def test_up_to_the_fork_point_both_have_the_same_and_beyond_nothing(choose: random.Random, steps: int) -> None:
    now, moments = histories(choose, steps)
    for then in moments:
        for sequence in range(len(then.events) + 1):
            had = then.events[:sequence]
            same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(had, now.events, strict=False))))
            assert fork_point(sequence, then.lineage, now.lineage) == same


def test_what_nobody_knows_is_believed() -> None:
    known = (Incarnation(3, "a", 10), Incarnation(4, "b", 20))
    assert fork_point(25, (), known) == 25
    assert fork_point(25, known, ()) == 25
    # Both know nothing of what is before their first incarnation.
    other = (Incarnation(3, "c", 8),)
    assert [fork_point(at, known, other) for at in (5, 8, 9, 25)] == [5, 8, 8, 8]


def test_a_disk_that_is_gone_shares_nothing() -> None:
    assert fork_point(25, (Incarnation(1, "a", 0),), (Incarnation(2, "b", 0),)) == 0


def test_a_lineage_is_bounded_and_openings_that_bring_nothing_do_not_count() -> None:
    lineage: Lineage = ()
    for number in range(1, 200):
        lineage = begun(lineage, Incarnation(number, f"{number:x}", 7))
    assert lineage == (Incarnation(199, "c7", 7),)
    for number in range(200, 400):
        lineage = begun(lineage, Incarnation(number, f"{number:x}", number))
    assert len(lineage) == LONGEST_LINEAGE
    assert lineage[-1].number == 399
    assert fork_point(390, lineage[:-5], lineage) == 390


def test_gaps_are_bounded_and_what_one_has_named_stays_named() -> None:
    chance, kinds = random.Random("gaps"), get_args(GapKind)
    for journals in (1, 2, 5):
        gaps: tuple[JournalGap, ...] = ()
        named: set[tuple[str, str, int]] = set()
        for _ in range(60):
            origin, what = f"b{chance.randrange(journals)}", chance.choice(kinds[: MOST_GAPS // journals])
            after = chance.randrange(99)
            gaps = with_gap(gaps, JournalGap(origin, after, after + 2, 1.0, what))
            named |= {(origin, what, after + 1), (origin, what, after + 2)}
            assert len(gaps) <= MOST_GAPS
            for origin, what, sequence in named:
                mine = [gap for gap in gaps if (gap.origin, gap.what) == (origin, what)]
                assert any(gap.after < sequence <= (gap.upto or 0) for gap in mine)


def test_a_gap_without_an_end_has_none_with_another_one_either() -> None:
    gaps: tuple[JournalGap, ...] = (JournalGap("b0", 7, None, 3.0),)
    for after in range(10, 20):
        gaps = with_gap(gaps, JournalGap("b0", after, after + 1, 1.0))
    assert gaps[0] == JournalGap("b0", 7, None, 3.0)
    assert len(gaps) == MOST_GAPS


def test_only_of_more_journals_than_gaps_is_one_forgotten() -> None:
    gaps: tuple[JournalGap, ...] = ()
    for number in range(MOST_GAPS + 1):
        gaps = with_gap(gaps, JournalGap(f"b{number}", 1, 2, 1.0))
    assert [gap.origin for gap in gaps] == [f"b{number}" for number in range(1, MOST_GAPS + 1)]


def test_numbers_are_ranges() -> None:
    assert runs_of([]) == []
    assert runs_of([5, 3, 4, 9, 11, 1]) == [(0, 1), (2, 5), (8, 9), (10, 11)]


def test_a_gap_is_said_in_words() -> None:
    said = [str(JournalGap("b0", after, upto, 0.0, "deliveries")) for after, upto in ((2, 3), (2, 1_004))]
    assert said == ["delivery 3 at b0", "deliveries after 2 up to 1,004 at b0"]
    assert str(JournalGap("b0", 2, 3, 0.0, "damaged")) == "b0 after 2 up to 3"
