"""Lineage: which journal a sequence is a sequence of, so that no event is taken for another of its number.

A disk may come back older than it was: a backup was put in its place, the end of it was lost, or all of it. The
broker then counts on from where the older journal ends, and gives sequences a second time. What tells the two
events apart is the *incarnation* of the journal in which each was numbered: a new one begins whenever the
journal is opened, with an id that nobody gives twice, and its row is on disk before its first event. All of
them in their order are the journal's *lineage*; it lies on the same disk, and comes back older with it.

1. *Who numbered it.* The event with sequence s was numbered in the last incarnation that begins before s. An
   incarnation reaches up to where the next one begins, and the last one on and on.
2. *Disks come back as they were.* What an older disk has is what there was at some moment, from the beginning
   on. So two lineages of one journal that share an incarnation share all before it, and of that one all that
   both have.
3. *The fork.* Up to the `fork_point` both have the same events; beyond it no event of the one is an event of
   the other, whatever their sequences. If nothing is beyond it, they agree.
4. *What cannot be checked is believed.* A lineage is bounded: what is before the first incarnation that it
   names counts as shared by all. So does everything for who knows no lineage: a neighbour of an earlier
   version, a position that somebody gave. A journal whose first incarnation begins with 0 has no such part.
5. *What brought nothing leaves no trace.* An incarnation without events is left out when the next one begins:
   no event was numbered in it.
6. *A place* in a journal is a sequence with the id of the incarnation that numbered it (empty: not known).
   Lineages that agree on a place have the same events up to there: that is what travels with a sequence.
7. *Nobody has read what was never numbered.* A position of an unknown lineage that is beyond the head, which
   somebody has given, is one of a journal that is gone. Where that has forked from this one nobody can tell:
   what the present incarnation has is new for certain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from palio.protocol.base import Moment, Number

# How many incarnations a lineage names: those that brought events. Who was away for more restarts than that,
# with events in each, can no longer be told all that it should know of them (4 above). A guess: some kilobytes.
LONGEST_LINEAGE = 64


# The gaps of one subscription that are kept. Who has more of them has other things to care about. A guess.
MOST_GAPS = 8

# Why something is missing: a journal came back older than it was; events, or deliveries, are damaged.
GapKind: TypeAlias = Literal["older", "damaged", "deliveries"]


class Incarnation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A life of a journal: the number of its opening, an id that is nobody else's, and after what it begins."""

    number: Number
    id: str
    begins: Number


Lineage: TypeAlias = tuple[Incarnation, ...]  # in the order of their numbers; empty: not known


class JournalGap(msgspec.Struct, frozen=True, array_like=True):
    """What a durable subscription may have missed of a journal: after one sequence up to another.

    Sequences are those of the journal as it was. Nobody may know how far that was: `upto` is None then.

    What is there and is not what was written is *damaged*: events of a journal; or *deliveries* that waited at
    their home, which is the origin then, and these are their numbers. Of which journals they were nobody knows.
    """

    origin: str
    after: Number
    upto: Number | None
    noticed: Moment  # by the clock of the home
    what: GapKind = "older"

    def __str__(self) -> str:
        if self.what == "deliveries" and self.upto is not None:
            if self.upto == self.after + 1:
                return f"delivery {self.upto:,} at {self.origin}"
            return f"deliveries after {self.after:,} up to {self.upto:,} at {self.origin}"
        if self.upto is None:
            return f"{self.origin} after {self.after:,}"
        return f"{self.origin} after {self.after:,} up to {self.upto:,}"


def with_gap(gaps: tuple[JournalGap, ...], gap: JournalGap) -> tuple[JournalGap, ...]:
    """The gaps of a subscription with one more, bounded.

    Where there are too many, two of one journal become one: it says then that what is between them may be
    missing, too. Only of more journals than that the oldest is forgotten.
    """
    found = [*gaps, gap]
    while len(found) > MOST_GAPS:
        first: dict[tuple[str, str], int] = {}
        for place, one in enumerate(found):
            known = first.setdefault((one.origin, one.what), place)
            if known != place:
                found[known] = _both(found[known], found.pop(place))
                break
        else:
            del found[0]
    return tuple(found)


def _both(one: JournalGap, other: JournalGap) -> JournalGap:
    upto = None if one.upto is None or other.upto is None else max(one.upto, other.upto)
    after, noticed = min(one.after, other.after), max(one.noticed, other.noticed)
    return JournalGap(one.origin, after, upto, noticed, one.what)


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as ranges: after one number up to another."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number - 1, number))
    return found


def begun(lineage: Lineage, incarnation: Incarnation) -> Lineage:
    """A lineage with one more incarnation, bounded; one that has brought nothing is left out (5)."""
    before = tuple([one for one in lineage if one.begins < incarnation.begins])
    return (*before, incarnation)[-LONGEST_LINEAGE:]


def incarnation_of(sequence: int, lineage: Lineage) -> str:
    """The id of the incarnation in which an event was numbered; empty if that is not known (1, 4)."""
    for one in reversed(lineage):
        if one.begins < sequence:
            return one.id
    return ""


def agrees(sequence: int, incarnation: str, lineage: Lineage) -> bool:
    """Whether a place may be one of the journal with this lineage (4, 6)."""
    return not incarnation or incarnation_of(sequence, lineage) in (incarnation, "")


def lineage_at(sequence: int, lineage: Lineage) -> Lineage:
    """What of a lineage a position is one of: incarnations that numbered something up to there."""
    return tuple([one for one in lineage if one.begins < sequence])


def with_ancestors(mine: Lineage, theirs: Lineage) -> Lineage:
    """The lineage of somebody who knows only who numbered the last event, as far as it can be told.

    Openings have ascending numbers, and a disk that comes back older is opened later than all that it does not
    know. So what another lineage has from before that incarnation is what it came from.
    """
    if len(mine) != 1:
        return mine
    return (*[one for one in theirs if one.number < mine[0].number], *mine)


def fork_point(sequence: int, mine: Lineage, theirs: Lineage) -> int:
    """The last sequence, up to that of a position, that names the same event in both lineages (3)."""
    if not mine or not theirs:
        return sequence
    shared = {one.id for one in mine} & {one.id for one in theirs}
    return min(sequence, _end_of_shared(shared, mine, sequence), _end_of_shared(shared, theirs, sequence))


def going_on(sequence: int, mine: Lineage, theirs: Lineage, head: int) -> int:
    """After which sequence somebody who has come to a position goes on, in a journal as it is now (3, 7)."""
    if not mine and theirs and sequence > head:
        return min(theirs[-1].begins, head)
    return fork_point(sequence, with_ancestors(mine, theirs), theirs)


def _end_of_shared(shared: set[str], lineage: Lineage, most: int) -> int:
    """Where the shared part of a lineage ends: its last shared incarnation, or what is before the first."""
    end = most
    for one in reversed(lineage):
        if one.id in shared:
            break
        end = one.begins
    return end
