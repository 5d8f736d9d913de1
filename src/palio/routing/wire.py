"""Messages as bytes: MessagePack of the structs in `messages`, with filters and advertisements as their texts.

A notification travels as its encoded attributes and its properties. Reading trusts nothing: whatever the bytes
are, the answer is a message or `UnreadableMessage`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import DEFAULT_PRIORITY, Notification
from palio.routing import messages


class UnreadableMessage(PalioError):
    """Bytes that are no message."""

    reason: str

    def __init__(self, reason: str) -> None:
        super().__init__(f"This is no message of the protocol: {reason}", reason=reason)


class _Body(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A notification: its attributes as `Notification.encode` gives them, and its properties."""

    attributes: bytes
    id: str | None = None
    time: datetime | None = None
    lifetime: timedelta | None = None
    priority: int = DEFAULT_PRIORITY
    payload: bytes | None = None
    unindexed: tuple[str, ...] = ()


def _to_plain(value: Any) -> Any:
    if isinstance(value, Notification):
        return _Body(
            value.encode(),
            value.id,
            value.time,
            value.lifetime,
            value.priority,
            value.payload,
            value.unindexed,
        )
    return str(value)  # a filter or an advertisement


def _from_plain(kind: type, value: Any) -> Any:
    if kind is Filter or kind is Advertisement:
        return kind.parse(msgspec.convert(value, str))
    body = msgspec.convert(value, _Body)
    notification = Notification(
        {}, id=body.id, time=body.time, lifetime=body.lifetime, priority=body.priority, payload=body.payload
    )
    notification.attributes = Notification.decode(body.attributes).attributes
    notification.unindexed = body.unindexed
    return notification


_encoder = msgspec.msgpack.Encoder(enc_hook=_to_plain)
_decoder: msgspec.msgpack.Decoder[messages.Message | messages.Answer] = msgspec.msgpack.Decoder(
    messages.Message | messages.Answer, dec_hook=_from_plain
)


def encode(message: messages.Message | messages.Answer) -> bytes:
    """The bytes of a message."""
    return _encoder.encode(message)


def decode(data: bytes) -> messages.Message | messages.Answer:
    """The message that the bytes say. Raises `UnreadableMessage`, and nothing else."""
    try:
        return _decoder.decode(data)
    except PalioError as problem:
        raise UnreadableMessage(str(problem)) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise UnreadableMessage(f"{problem}.") from None
