"""Reading a journal: for the core, in order with what it writes; and for anybody else, beside a running broker.

A read for the core looks at a bounded number of sequences, so that nothing else waits for long behind it; what
was found then reaches only so far, and who asked asks again. With a time from which on events are wanted, whole
spans that are older are passed over.
"""

from __future__ import annotations

from typing import NoReturn

import msgspec
from sqlalchemy import Connection, text

from palio.model.errors import PalioError
from palio.model.notification import Notification
from palio.routing.durable.effects import Read
from palio.routing.durable.messages import Found
from palio.routing.messages import Envelope
from palio.store import schema
from palio.store.records import decode_body

# Sequences that one read of the core looks at. Decoding and matching that many takes some milliseconds.
MAX_SCANNED = 2_048

_ROWS = text(
    "SELECT sequence, time, body FROM palio_journal "
    "WHERE broker = :broker AND sequence > :after AND sequence <= :upto AND time >= :since ORDER BY sequence"
)
_FIRST_SPAN = text(
    "SELECT min(span) FROM palio_spans WHERE broker = :broker AND span >= :span AND newest >= :since"
)


class DamagedRow(PalioError):
    """A row of the journal that is no notification."""

    sequence: int

    def __init__(self, sequence: int, reason: str) -> None:
        super().__init__(f"Sequence {sequence} of the journal cannot be read: {reason}", sequence=sequence)


def read(connection: Connection, broker: int, name: str, effect: Read, *, head: int, trimmed: int) -> Found:
    """What the filter selects, as far as one read goes."""
    upto = min(effect.upto, head)
    after = max(effect.after, trimmed)
    if effect.since > 0 and after < upto:
        after = pass_over(connection, broker, after, upto, effect.since)
    reached = min(upto, after + MAX_SCANNED)
    if after >= upto:
        return Found(effect.token, effect.upto, ())
    found: list[Envelope] = []
    rows = connection.execute(_ROWS, {"broker": broker, "after": after, "upto": reached, "since": effect.since})
    for sequence, time, body in rows:
        notification = notification_of(sequence, body)
        if effect.filter.matches(notification):
            found.append(Envelope(name, sequence, time, 0, name, notification))
            if len(found) == effect.limit:
                rows.close()
                return Found(effect.token, sequence, tuple(found))
    return Found(effect.token, reached if reached < upto else effect.upto, tuple(found))


def pass_over(connection: Connection, broker: int, after: int, upto: int, since: float) -> int:
    """The sequence up to which everything is older."""
    first = (after + 1) // schema.SPAN
    span = connection.execute(_FIRST_SPAN, {"broker": broker, "span": first, "since": since}).scalar()
    return upto if span is None else min(upto, max(after, span * schema.SPAN - 1))


def notification_of(sequence: int, body: bytes) -> Notification:
    """The notification of a row. Raises `DamagedRow`."""
    try:
        return decode_body(body)
    except (msgspec.DecodeError, PalioError, ValueError) as problem:
        _damaged(sequence, problem)


def _damaged(sequence: int, problem: Exception) -> NoReturn:
    raise DamagedRow(sequence, str(problem)) from None
