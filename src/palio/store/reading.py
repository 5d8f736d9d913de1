"""Reading a journal: the rows between two sequences that a filter selects.

Rows are matched by their bytes, many at a time; only what is selected becomes a notification. A read for the
core looks at a bounded number of sequences, so that nothing else waits for long behind it; what was found then
reaches only so far, and who asked asks again. Whole spans that are older than what is wanted are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import Connection, text

from palio.matching import MatchIndex
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Read
from palio.routing.occurrences import Found
from palio.store import schema
from palio.store.records import decode_body, from_column

# Sequences that one read of the core looks at: some milliseconds.
MAX_SCANNED = 8_192
# Rows that are read and matched at a time. The first few tell how large they are; then there are as many as a
# page of the core has, or fewer, so that they take about so many bytes.
FIRST_BATCH = 64
BATCH = 1_024
BATCH_BYTES = 1 << 20
# What one read of the core finds, about: with its envelopes it has to fit into a frame.
MAX_FOUND_BYTES = 4 << 20

_SELECTED = (
    "SELECT {} FROM palio_journal "
    "WHERE broker = :broker AND sequence > :after AND sequence <= :upto AND time >= :since AND time < :until "
    "ORDER BY sequence LIMIT :limit"
)
_ROWS = text(_SELECTED.format("sequence, time, publisher, body"))
_STORED = text(_SELECTED.format("sequence, time, publisher, id, body"))
Row: TypeAlias = tuple[int, float, str, bytes]
# As it lies there: sequence, time, publisher, id, body; `records.from_column` gives back the two texts.
StoredRow: TypeAlias = tuple[int, float, str, str | None, bytes]

_FIRST_SPAN = text(
    "SELECT min(span) FROM palio_spans WHERE broker = :broker AND span >= :span AND newest >= :since"
)


class DamagedRow(PalioError):
    """A row of the journal that is no notification."""

    sequence: int
    reason: InitVar[str]
    sentence = "Sequence {sequence} of the journal cannot be read: {reason}"


class Entry(msgspec.Struct, frozen=True):
    """Something that was published."""

    sequence: int
    time: float  # seconds, by the clock of the broker
    publisher: str
    notification: Notification


class JournalSelection:
    """What a filter selects from a journal, from some time on and before another."""

    def __init__(self, broker: int, filter: Filter, since: float, until: float = math.inf) -> None:
        self._broker = broker
        self._since = since
        self._wanted = {"broker": broker, "since": since, "until": until}
        self._index = MatchIndex()
        self._index.add(0, filter)

    def read(self, connection: Connection, after: int, upto: int) -> Iterator[tuple[int, list[Entry]]]:
        """Batch by batch: up to which sequence was read, and what was selected. Raises `DamagedRow`."""
        limit = min(FIRST_BATCH, BATCH)
        while after < upto:
            wanted = {"after": after, "upto": upto, "limit": limit, **self._wanted}
            rows: list[Row] = [(*row,) for row in connection.execute(_ROWS, wanted)]
            after = rows[-1][0] if len(rows) == limit else upto
            yield after, self._select(rows)
            size = sum([len(body) for *_, body in rows])
            limit = max(1, min(BATCH, len(rows) * BATCH_BYTES // max(size, 1)))

    def stored(self, connection: Connection, after: int, upto: int, limit: int) -> tuple[int, list[StoredRow]]:
        """Up to which sequence was read, and the rows up to there as they are stored; filters are not asked."""
        wanted = {"after": after, "upto": upto, "limit": limit, **self._wanted}
        cursor: Any = connection.execute(_STORED, wanted).cursor
        rows: list[StoredRow] = cursor.fetchall()  # the driver's own tuples: nothing is to be converted
        cursor.close()
        return (rows[-1][0] if len(rows) == limit else upto), rows

    def pass_over(self, connection: Connection, after: int, upto: int) -> int:
        """The sequence up to which everything is older."""
        if self._since <= 0 or after >= upto:
            return after
        wanted = {"broker": self._broker, "span": (after + 1) // schema.SPAN, "since": self._since}
        span = connection.execute(_FIRST_SPAN, wanted).scalar()
        return upto if span is None else min(upto, max(after, span * schema.SPAN - 1))

    def _select(self, rows: list[Row]) -> list[Entry]:
        try:
            bodies = [decode_body(body) for *_, body in rows]
            matched = self._index.match_encoded([body.attributes for body in bodies])
        except (msgspec.DecodeError, PalioError):
            _find_damage(rows)
            raise
        return [
            Entry(sequence, time, from_column(publisher), Notification.of_body(body))
            for (sequence, time, publisher, _), body, found in zip(rows, bodies, matched, strict=True)
            if found
        ]


def read(connection: Connection, broker: int, name: str, effect: Read, *, head: int, trimmed: int) -> Found:
    """What the filter selects, as far as one read goes."""
    selection = JournalSelection(broker, effect.filter, effect.since)
    upto = min(effect.upto, head)
    after = selection.pass_over(connection, max(effect.after, trimmed), upto)
    reach = min(upto, after + MAX_SCANNED)
    found: list[Envelope] = []
    size = 0
    for _, some in selection.read(connection, after, reach):
        for one in some:
            found.append(Envelope(name, one.sequence, one.time, 0, name, one.notification))
            size += one.notification.body.size
            if len(found) == effect.limit or size >= MAX_FOUND_BYTES:
                return Found(effect.token, one.sequence, tuple(found))
    return Found(effect.token, reach if reach < upto else effect.upto, tuple(found))


def _find_damage(rows: list[Row]) -> None:
    for sequence, _, _, body in rows:
        try:
            _ = Notification.of_body(decode_body(body)).attributes
        except (msgspec.DecodeError, PalioError) as problem:
            raise DamagedRow(sequence, str(problem)) from None
