"""Offsets: how far a reader is with each journal, as a map from journals to sequences.

Everything up to there is read. A journal that is not in the map has not been read at all. Sequences of a
journal are dense, so the difference of two offsets is a number of events, and can be divided at will.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from palio.spark.errors import DataLoss
from palio.spark.source.journals import JournalStanding, Span


def start_of(standings: Iterable[JournalStanding]) -> dict[str, int]:
    """Before all that there is."""
    return {one.journal: one.trimmed for one in standings}


def end_of(standings: Iterable[JournalStanding]) -> dict[str, int]:
    """After all that there is."""
    return {one.journal: one.head for one in standings}


def rows_between(start: Mapping[str, int], end: Mapping[str, int]) -> int:
    """How many rows lie between two offsets."""
    return sum(max(0, upto - start.get(journal, 0)) for journal, upto in end.items())


def limited(start: Mapping[str, int], end: Mapping[str, int], rows: int) -> dict[str, int]:
    """An end that is at most so many rows after the start: each journal moves by its share of what there is."""
    ahead = {journal: max(0, upto - start.get(journal, 0)) for journal, upto in end.items()}
    total = sum(ahead.values())
    if total <= rows:
        return dict(end)
    taken = {journal: count * rows // total for journal, count in ahead.items()}
    left = rows - sum(taken.values())
    for journal in sorted(ahead, key=lambda name: (taken[name] - ahead[name], name)):
        more = min(left, ahead[journal] - taken[journal])
        taken[journal] += more
        left -= more
    return {journal: start.get(journal, 0) + count for journal, count in taken.items()}


def spans_between(start: Mapping[str, int], end: Mapping[str, int], rows: int) -> list[Span]:
    """What lies between two offsets, in spans of at most so many sequences."""
    spans = []
    for journal, upto in sorted(end.items()):
        after = start.get(journal, 0)
        while after < upto:
            reach = min(upto, after + rows)
            spans.append(Span(journal, after, reach))
            after = reach
    return spans


def require_kept(start: Mapping[str, int], standings: Iterable[JournalStanding]) -> None:
    """Raises `DataLoss` if something after an offset is gone."""
    for one in standings:
        after = start.get(one.journal, 0)
        if after < one.trimmed:
            raise DataLoss(one.journal, after + 1, one.trimmed + 1)


def without_lost(start: Mapping[str, int], standings: Iterable[JournalStanding]) -> dict[str, int]:
    """An offset from which everything is there."""
    trimmed = {one.journal: one.trimmed for one in standings}
    return {journal: max(after, trimmed.get(journal, 0)) for journal, after in {**trimmed, **start}.items()}
