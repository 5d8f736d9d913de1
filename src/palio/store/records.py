"""How notifications and texts become columns, and come back.

The bytes of a notification's body are the truth; whatever else a row has is there to find it. A letter in a
spool keeps the whole envelope, with where it came from. Texts are escaped where they hold what PostgreSQL
cannot: the character 0.
"""

from __future__ import annotations

import msgspec

from palio.model.notification import Notification
from palio.routing.messages import Envelope
from palio.routing.wire import _Body, _from_plain, _to_plain

_encode = msgspec.msgpack.Encoder().encode


class _Letter(msgspec.Struct, frozen=True, array_like=True):
    """An envelope as a spool keeps it."""

    origin: str
    sequence: int
    time: float
    hops: int
    entry: str
    epoch: int
    body: _Body


_letters = msgspec.msgpack.Decoder(_Letter)
_bodies = msgspec.msgpack.Decoder(_Body)


def encode_body(notification: Notification) -> bytes:
    """The bytes of a notification."""
    return _encode(_to_plain(notification))


def decode_body(data: bytes) -> Notification:
    """The notification of some bytes. Raises `msgspec.DecodeError` or `PalioError` if they are damaged."""
    return _notification(_bodies.decode(data))


def encode_letter(envelope: Envelope) -> bytes:
    """The bytes of an envelope with its notification."""
    return _encode(
        _Letter(
            envelope.origin,
            envelope.sequence,
            envelope.time,
            envelope.hops,
            envelope.entry,
            envelope.epoch,
            _to_plain(envelope.notification),
        )
    )


def decode_letter(data: bytes) -> Envelope:
    """The envelope of some bytes. Raises as `decode_body` does."""
    letter = _letters.decode(data)
    return Envelope(
        letter.origin,
        letter.sequence,
        letter.time,
        letter.hops,
        letter.entry,
        _notification(letter.body),
        letter.epoch,
    )


def _notification(body: _Body) -> Notification:
    notification: Notification = _from_plain(Notification, msgspec.to_builtins(body))
    return notification


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


def size_of(notification: Notification) -> int:
    """About how many bytes a notification takes, without encoding it."""
    payload = notification.payload
    return 256 if payload is None else 256 + len(payload)
