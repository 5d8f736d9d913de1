"""Reading a journal: the rows between two sequences that a filter selects.

Rows are matched by their bytes, many at a time; only what is selected becomes a notification. A read for the
core looks at a bounded number of sequences, so that nothing else waits for long behind it; what was found then
reaches only so far, and who asked asks again. Whole spans that are older than what is wanted are passed over.

A row that is damaged is selected by no filter, and named: whoever reads leaves it out and goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import Connection, bindparam, text

from palio.matching import MatchIndex
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Read
from palio.routing.occurrences import Found
from palio.store import schema
from palio.store.checksums import WRONG_CHECKSUM, is_intact
from palio.store.errors import sentence
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
_ROWS = text(_SELECTED.format("sequence, time, publisher, body, checksum"))
_STORED = text(_SELECTED.format("sequence, time, publisher, id, body, checksum"))
_EVENTS = text(
    "SELECT sequence, time, body, checksum FROM palio_journal WHERE broker = :broker AND sequence IN :sequences"
).bindparams(bindparam("sequences", expanding=True))
Row: TypeAlias = tuple[int, float, str, bytes, int | None]
# As it lies there: sequence, time, publisher, id, body, checksum; `records.from_column` gives back the texts.
StoredRow: TypeAlias = tuple[int, float, str, str | None, bytes, int | None]

_FIRST_SPAN = text(
    "SELECT min(span) FROM palio_spans WHERE broker = :broker AND span >= :span AND newest >= :since"
)


class DamagedRow(msgspec.Struct, frozen=True):
    """A row of the journal that is not what was written, or no notification."""

    sequence: int
    reason: str


class Entry(msgspec.Struct, frozen=True):
    """Something that was published."""

    sequence: int
    time: float  # seconds, by the clock of the broker
    publisher: str
    notification: Notification


class JournalPage(msgspec.Struct, frozen=True):
    """Up to which sequence was read, what was selected, and what is damaged."""

    upto: int
    entries: list[Entry]
    damaged: list[DamagedRow]


class JournalSelection:
    """What a filter selects from a journal, from some time on and before another."""

    def __init__(self, broker: int, filter: Filter, since: float, until: float = math.inf) -> None:
        self._broker = broker
        self._since = since
        self._wanted = {"broker": broker, "since": since, "until": until}
        self._index = MatchIndex()
        self._index.add(0, filter)

    def read(self, connection: Connection, after: int, upto: int) -> Iterator[JournalPage]:
        """What there is after one sequence up to another, batch by batch."""
        limit = min(FIRST_BATCH, BATCH)
        while after < upto:
            wanted = {"after": after, "upto": upto, "limit": limit, **self._wanted}
            rows: list[Row] = [(*row,) for row in connection.execute(_ROWS, wanted)]
            after = rows[-1][0] if len(rows) == limit else upto
            yield self._select(after, rows)
            size = sum([len(row[3]) for row in rows if isinstance(row[3], bytes)])
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

    def _select(self, after: int, rows: list[Row]) -> JournalPage:
        damaged: list[DamagedRow] = []
        if not all(is_intact(row[0], row[3], row[4]) for row in rows):
            damaged = _damaged(rows)
        try:
            entries = self._selected(rows, damaged)
        except (msgspec.DecodeError, PalioError, TypeError):  # rows without a checksum
            damaged = _damaged(rows)
            entries = self._selected(rows, damaged)
        return JournalPage(after, entries, damaged)

    def _selected(self, rows: list[Row], damaged: list[DamagedRow]) -> list[Entry]:
        if damaged:
            gone = {one.sequence for one in damaged}
            rows = [row for row in rows if row[0] not in gone]
        bodies = [decode_body(row[3]) for row in rows]
        matched = self._index.match_encoded([body.attributes for body in bodies])
        return [
            Entry(sequence, time, from_column(publisher), Notification.of_body(body))
            for (sequence, time, publisher, _, _), body, found in zip(rows, bodies, matched, strict=True)
            if found
        ]


def events_in(
    connection: Connection, broker: int, name: str, sequences: Iterable[int]
) -> Iterator[tuple[int, Envelope | str]]:
    """Events of a journal that are there, as they were published; or why they cannot be read."""
    wanted = sorted(sequences)
    for at in range(0, len(wanted), FIRST_BATCH):
        some = wanted[at : at + FIRST_BATCH]
        for sequence, time, body, sum in connection.execute(_EVENTS, {"broker": broker, "sequences": some}):
            reason = problem_of(sequence, body, sum)
            if reason is not None:
                yield sequence, reason
            else:
                notification = Notification.of_body(decode_body(body))
                yield sequence, Envelope(name, sequence, time, 0, name, notification)


def read(
    connection: Connection, broker: int, name: str, effect: Read, *, head: int, trimmed: int
) -> tuple[Found, list[DamagedRow]]:
    """What the filter selects, as far as one read goes, and what was left out on the way."""
    selection = JournalSelection(broker, effect.filter, effect.since)
    upto = min(effect.upto, head)
    after = selection.pass_over(connection, max(effect.after, trimmed), upto)
    reach = min(upto, after + MAX_SCANNED)
    found: list[Envelope] = []
    damaged: list[DamagedRow] = []
    size = 0
    for page in selection.read(connection, after, reach):
        damaged += page.damaged
        for one in page.entries:
            found.append(Envelope(name, one.sequence, one.time, 0, name, one.notification))
            size += one.notification.body.size
            if len(found) == effect.limit or size >= MAX_FOUND_BYTES:
                return _found(effect.token, one.sequence, found, damaged), damaged
    return _found(effect.token, reach if reach < upto else effect.upto, found, damaged), damaged


def _found(token: int, upto: int, envelopes: list[Envelope], damaged: list[DamagedRow]) -> Found:
    """What was found up to a sequence, and what was left out up to there."""
    left_out = [one.sequence for one in damaged if one.sequence <= upto]
    return Found(token, upto, tuple(envelopes), tuple(left_out))


def _damaged(rows: list[Row]) -> list[DamagedRow]:
    problems = ((row[0], problem_of(row[0], row[3], row[4])) for row in rows)
    return [DamagedRow(sequence, reason) for sequence, reason in problems if reason is not None]


def problem_of(sequence: int, body: Any, written: int | None) -> str | None:
    """Why an event is not what it was when it was written with that checksum, or is none at all; if so."""
    if not is_intact(sequence, body, written):
        return WRONG_CHECKSUM
    try:
        _ = Notification.of_body(decode_body(body)).attributes
    except (msgspec.DecodeError, PalioError, TypeError) as problem:
        return sentence(problem)
    return None
