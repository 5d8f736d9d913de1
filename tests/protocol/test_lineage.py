"""The fork point of two lineages is where their journals, compared event by event, begin to differ."""

from __future__ import annotations

import random
from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from palio.protocol.durable.lineage import LONGEST_LINEAGE, Incarnation, Lineage, begun, fork_point
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
