"""Reading a journal: the rows between two sequences that a filter selects.

Rows are matched by their bytes, many at a time; only what is selected becomes a notification. A read for the
core looks at a bounded number of sequences, so that nothing else waits for long behind it; what was found then
reaches only so far, and who asked asks again. With a time from which on events are wanted, whole spans that are
older are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from sqlalchemy import Connection, text

from palio.matching import MatchIndex
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.routing.durable.effects import Read
from palio.routing.durable.messages import Found
from palio.routing.messages import Envelope
from palio.store import schema
from palio.store.records import decode_body

# Sequences that one read of the core looks at: some milliseconds.
MAX_SCANNED = 8_192
# Rows that are matched at a time. A page of the core is smaller, so most reads end with the first.
BATCH = 512

_ROWS = text(
    "SELECT sequence, time, body FROM palio_journal "
    "WHERE broker = :broker AND sequence > :after AND sequence <= :upto AND time >= :since "
    "ORDER BY sequence LIMIT :limit"
)
_FIRST_SPAN = text(
    "SELECT min(span) FROM palio_spans WHERE broker = :broker AND span >= :span AND newest >= :since"
)


class DamagedRow(PalioError):
    """A row of the journal that is no notification."""

    sequence: int

    def __init__(self, sequence: int, reason: str) -> None:
        super().__init__(f"Sequence {sequence} of the journal cannot be read: {reason}", sequence=sequence)


class Selection:
    """What a filter selects from a journal, from some time on."""

    def __init__(self, broker: int, name: str, filter: Filter, since: float) -> None:
        self._broker = broker
        self._name = name
        self._since = since
        self._index = MatchIndex()
        self._index.add(0, filter)

    def read(self, connection: Connection, after: int, upto: int) -> Iterator[tuple[int, list[Envelope]]]:
        """Batch by batch: up to which sequence was read, and what was selected. Raises `DamagedRow`."""
        while after < upto:
            wanted = {
                "broker": self._broker,
                "after": after,
                "upto": upto,
                "since": self._since,
                "limit": BATCH,
            }
            rows = connection.execute(_ROWS, wanted).all()
            after = rows[-1].sequence if len(rows) == BATCH else upto
            yield after, self._select([(sequence, time, body) for sequence, time, body in rows])

    def pass_over(self, connection: Connection, after: int, upto: int) -> int:
        """The sequence up to which everything is older."""
        if self._since <= 0 or after >= upto:
            return after
        wanted = {"broker": self._broker, "span": (after + 1) // schema.SPAN, "since": self._since}
        span = connection.execute(_FIRST_SPAN, wanted).scalar()
        return upto if span is None else min(upto, max(after, span * schema.SPAN - 1))

    def _select(self, rows: list[tuple[int, float, bytes]]) -> list[Envelope]:
        try:
            bodies = [decode_body(body) for _, _, body in rows]
            matched = self._index.match_encoded([body.attributes for body in bodies])
        except (msgspec.DecodeError, PalioError):
            _find_damage(rows)
            raise
        name, lazy = self._name, Notification.of_body
        return [
            Envelope(name, sequence, time, 0, name, lazy(body))
            for (sequence, time, _), body, found in zip(rows, bodies, matched, strict=True)
            if found
        ]


def read(connection: Connection, broker: int, name: str, effect: Read, *, head: int, trimmed: int) -> Found:
    """What the filter selects, as far as one read goes."""
    selection = Selection(broker, name, effect.filter, effect.since)
    upto = min(effect.upto, head)
    after = selection.pass_over(connection, max(effect.after, trimmed), upto)
    reach = min(upto, after + MAX_SCANNED)
    found: list[Envelope] = []
    for _, some in selection.read(connection, after, reach):
        found += some
        if len(found) >= effect.limit:
            found = found[: effect.limit]
            return Found(effect.token, found[-1].sequence, tuple(found))
    return Found(effect.token, reach if reach < upto else effect.upto, tuple(found))


def _find_damage(rows: list[tuple[int, float, bytes]]) -> None:
    for sequence, _, body in rows:
        try:
            _ = Notification.of_body(decode_body(body)).attributes
        except (msgspec.DecodeError, PalioError) as problem:
            raise DamagedRow(sequence, str(problem)) from None
