"""How notifications and texts become columns, and come back.

The bytes of a notification's body are the truth; whatever else a row has is there to find it. A letter in a
spool keeps the whole envelope, with where it came from. Neither is looked into when it is read back.
Texts are escaped where they hold what PostgreSQL cannot: the character 0.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec

from palio.model.body import Body
from palio.model.notification import Notification
from palio.routing.messages import Envelope

# A notification in an envelope is its body.
_encode = msgspec.msgpack.Encoder(enc_hook=attrgetter("body")).encode


class _Letter(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An envelope, field by field, as msgspec reads it in one go."""

    origin: str
    sequence: int
    time: float
    hops: int
    entry: str
    body: Body
    epoch: int = 0


_read_letter = msgspec.msgpack.Decoder(_Letter).decode
decode_body = msgspec.msgpack.Decoder(Body).decode


def encode_body(body: Body) -> bytes:
    """The bytes of a notification."""
    return _encode(body)


def encode_letter(envelope: Envelope) -> bytes:
    """The bytes of an envelope with its notification."""
    return _encode(envelope)


def decode_letter(data: bytes) -> Envelope:
    """The envelope of some bytes. Raises `msgspec.DecodeError`."""
    one = _read_letter(data)
    notification = Notification.of_body(one.body)
    return Envelope(one.origin, one.sequence, one.time, one.hops, one.entry, notification, one.epoch)


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
