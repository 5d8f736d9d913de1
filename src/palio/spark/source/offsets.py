"""Offsets: how far a reader is with each journal, and with which lineage of it.

Everything up to a sequence is read. A journal that is not in the map has not been read at all. Sequences of a
journal are dense, so the difference of two positions is a number of events, and can be divided at will.

A position is one of a journal with a lineage (`palio.protocol.durable.lineage`), of which an offset keeps what
has numbered something up to there: so the offset stays the same as long as nothing is read. If the journal came
back older meanwhile, the reader goes on where both fork (`met`): nothing new is taken for read. An offset of a
reader that knew no lineages is believed, unless the journal has never come that far.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import astuple

from palio.protocol.durable.lineage import JournalGap, Lineage, going_on, lineage_at
from palio.spark.errors import DataLoss, JournalForked
from palio.spark.source.journals import JournalStanding, Span

Positions: TypeAlias = dict[str, int]
Lineages: TypeAlias = dict[str, Lineage]

# Under which name an offset has lineages beside its journals, as JSON: no broker can be called that.
LINEAGES = ""

log = logging.getLogger("palio.spark")


class Offset(msgspec.Struct, frozen=True):
    """Positions in journals, and the lineages of these that they are positions of, where that is known."""

    positions: Positions = {}
    lineages: Lineages = {}

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Offset:
        """Raises `msgspec.ValidationError`."""
        lineages = msgspec.convert(document.get(LINEAGES, {}), Lineages)
        positions = {name: at for name, at in document.items() if name != LINEAGES}
        return cls(msgspec.convert(positions, Positions), lineages)

    def to_json(self) -> dict[str, Any]:
        """As Spark keeps it: the same for the same positions, whatever has happened since."""
        found = {
            journal: [list(astuple(one)) for one in known]
            for journal, at in self.positions.items()
            if (known := lineage_at(at, self.lineages.get(journal, ())))
        }
        return {**self.positions, **({LINEAGES: found} if found else {})}

    def lineage(self, journal: str) -> Lineage:
        return self.lineages.get(journal, ())


def lineages_of(standings: Iterable[JournalStanding]) -> Lineages:
    """The lineages of journals that are known."""
    return {one.journal: one.lineage for one in standings if one.lineage}


def start_of(standings: Iterable[JournalStanding]) -> Positions:
    """Before all that there is."""
    return {one.journal: one.trimmed for one in standings}


def end_of(standings: Iterable[JournalStanding]) -> Positions:
    """After all that there is."""
    return {one.journal: one.head for one in standings}


def shared(offset: Offset, standing: JournalStanding) -> int:
    """Up to where what was read is the journal as it is now.

    Raises `JournalForked` if it is another one, and nobody can tell from where on.
    """
    journal, theirs = standing.journal, standing.lineage
    position, mine = offset.positions[journal], offset.lineage(standing.journal)
    if not mine and theirs and position > standing.head:
        raise JournalForked(journal, position, None, standing.head)
    return going_on(position, mine, theirs, standing.head)


def met(
    offset: Offset, standings: Iterable[JournalStanding], *, lossy: bool = False
) -> tuple[Offset, tuple[JournalGap, ...]]:
    """The same offset in the journals as they are now, and what may be missing of them as they were.

    Raises `JournalForked` where nobody can tell where to go on, unless it is `lossy`.
    """
    positions, lineages, gaps = dict(offset.positions), dict(offset.lineages), []
    for one in standings:
        if one.journal in positions and one.lineage:
            position, mine = positions[one.journal], offset.lineage(one.journal)
            fork = going_on(position, mine, one.lineage, one.head) if lossy else shared(offset, one)
            if fork < position:
                gaps.append(JournalGap(one.journal, position, None, time.time()))
            positions[one.journal], lineages[one.journal] = fork, one.lineage
    return Offset(positions, lineages), tuple(gaps)


def require_same(offset: Offset, standings: Iterable[JournalStanding]) -> None:
    """Raises `JournalForked` if a journal is not the one any more of which an offset is a position."""
    for one in standings:
        if one.journal in offset.positions and one.lineage:
            fork, position = shared(offset, one), offset.positions[one.journal]
            if fork < position:
                raise JournalForked(one.journal, position, fork)


def tell(gaps: Iterable[JournalGap], positions: Mapping[str, int]) -> None:
    """Log what may be missing, and where it goes on."""
    for gap in gaps:
        log.warning(
            "The journal %r came back older than it was: what it had after %d may be missing. It is read on "
            "from %d.",
            gap.origin,
            gap.after,
            positions[gap.origin] + 1,
        )


def rows_between(start: Mapping[str, int], end: Mapping[str, int]) -> int:
    """How many rows lie between two offsets."""
    return sum(max(0, upto - start.get(journal, 0)) for journal, upto in end.items())


def limited(start: Mapping[str, int], end: Mapping[str, int], rows: int) -> Positions:
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


def spans_between(
    start: Mapping[str, int], end: Mapping[str, int], rows: int, lineages: Mapping[str, Lineage] | None = None
) -> list[Span]:
    """What lies between two positions, in spans of at most so many sequences."""
    spans = []
    for journal, upto in sorted(end.items()):
        after, lineage = start.get(journal, 0), (lineages or {}).get(journal, ())
        while after < upto:
            reach = min(upto, after + rows)
            spans.append(Span(journal, after, reach, lineage_at(reach, lineage)[-1:]))
            after = reach
    return spans


def require_kept(start: Mapping[str, int], standings: Iterable[JournalStanding]) -> None:
    """Raises `DataLoss` if something after an offset is gone."""
    for one in standings:
        after = start.get(one.journal, 0)
        if after < one.trimmed:
            raise DataLoss(one.journal, after + 1, one.trimmed + 1)


def without_lost(start: Mapping[str, int], standings: Iterable[JournalStanding]) -> Positions:
    """An offset from which everything is there."""
    trimmed = {one.journal: one.trimmed for one in standings}
    return {journal: max(after, trimmed.get(journal, 0)) for journal, after in {**trimmed, **start}.items()}
