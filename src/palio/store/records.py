"""How notifications and texts become columns, and come back.

The bytes of a notification's body are the truth; whatever else a row has is there to find it. A letter in a
spool keeps the whole envelope, with where it came from, and why attempts to deliver it have failed, if any was
noted. Neither is looked into when it is read back.
Texts are escaped where they hold what PostgreSQL cannot: the character 0.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec
from sqlalchemy import Connection

from palio.model.body import Body
from palio.model.notification import Notification
from palio.protocol.durable.attempts import Failures
from palio.protocol.durable.lineage import Incarnation, JournalGap, Lineage
from palio.protocol.durable.retry import Retry
from palio.protocol.envelope import Envelope
from palio.routing.durable.facts import Fact
from palio.store import schema

# A notification in an envelope is its body.
_encode = encode_body = encode_envelope = msgspec.msgpack.Encoder(enc_hook=attrgetter("body")).encode


class _Letter(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An envelope, field by field, as msgspec reads it in one go."""

    origin: str
    sequence: int
    time: float
    hops: int
    entry: str
    body: Body
    epoch: int = 0
    failures: Failures = ()


_read_letter = msgspec.msgpack.Decoder(_Letter).decode
_read_retry = msgspec.msgpack.Decoder(Retry).decode
_read_lineage = msgspec.msgpack.Decoder(Lineage).decode
_read_gaps = msgspec.msgpack.Decoder(tuple[JournalGap, ...]).decode
decode_body = msgspec.msgpack.Decoder(Body).decode


def encode_letter(envelope: Envelope, failures: Failures = ()) -> bytes:
    """The bytes of an envelope with its notification, and of why attempts have failed."""
    if not failures:
        return _encode(envelope)
    one = envelope
    body = one.notification.body
    return _encode(_Letter(one.origin, one.sequence, one.time, one.hops, one.entry, body, one.epoch, failures))


def decode_letter(data: bytes) -> tuple[Envelope, Failures]:
    """The envelope of some bytes, and why attempts have failed. Raises `msgspec.DecodeError`."""
    one = _read_letter(data)
    notification = Notification.of_body(one.body)
    envelope = Envelope(one.origin, one.sequence, one.time, one.hops, one.entry, notification, one.epoch)
    return envelope, one.failures


def encode_event(broker: str, sequence: int, time: float, body: bytes) -> bytes:
    """The bytes of the envelope of an event, from its row in the journal of that broker."""
    return _encode((broker, sequence, time, 0, broker, msgspec.Raw(body), 0))


def encode_retry(retry: Retry | None) -> bytes | None:
    """A retry policy, as a column keeps it."""
    return None if retry is None else _encode(retry)


def decode_retry(data: bytes | None) -> Retry | None:
    """The retry policy that a column keeps. Raises `msgspec.DecodeError`."""
    return None if data is None else _read_retry(data)


def encode_some(parts: Lineage | tuple[JournalGap, ...]) -> bytes | None:
    """A lineage or gaps, as a column keeps them; where there are none, nothing."""
    return _encode(parts) if parts else None


def decode_lineage(data: bytes | None) -> Lineage:
    """The lineage that a column keeps. Raises `msgspec.DecodeError`."""
    return () if data is None else _read_lineage(data)


def decode_gaps(data: bytes | None) -> tuple[JournalGap, ...]:
    """The gaps that a column keeps. Raises `msgspec.DecodeError`."""
    return () if data is None else _read_gaps(data)


def lineage_in(connection: Connection, broker: int) -> Lineage:
    """The lineage of a journal as it is on disk."""
    table = schema.lineage
    rows = connection.execute(table.select().where(table.c.broker == broker).order_by(table.c.number))
    return tuple([Incarnation(row.number, row.id, row.begins) for row in rows])


def fact_columns(fact: Fact) -> dict[str, str]:
    """The columns that a fact is found by."""
    return {"kind": fact.kind.value, "subject": to_column(fact.subject), "home": to_column(fact.home)}


def to_column(text: str) -> str:
    """A text as a column keeps it."""
    if "\0" in text or "\\" in text:
        return text.replace("\\", "\\\\").replace("\0", "\\0")
    return text


def from_column(text: str) -> str:
    """The text that a column keeps."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))
