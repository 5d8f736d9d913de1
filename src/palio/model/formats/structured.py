"""CloudEvents whose context and data are one JSON document: structured mode, and batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from palio.model import jsontext
from palio.model.cloudevents import wrapped
from palio.model.formats.documents import to_json
from palio.model.formats.form import Message, Occurrence, Reading
from palio.model.notification import Notification


class StructuredEvent(msgspec.Struct, frozen=True):
    """One event."""

    media_types: tuple[str, ...] = ("application/cloudevents+json",)

    def read(self, message: Message, reading: Reading) -> Iterator[Notification]:
        message.require_utf8()
        yield Notification.from_cloudevent(message.body, strict=reading.strict, by_source=reading.by_source)

    def write(self, occurrences: Sequence[Occurrence]) -> list[Message]:
        return [_message(self.media_types[0], event_of(one)) for one in occurrences]


class EventBatch(msgspec.Struct, frozen=True):
    """Several events in an array; one bad event refuses all."""

    media_types: tuple[str, ...] = ("application/cloudevents-batch+json",)

    def read(self, message: Message, reading: Reading) -> Iterator[Notification]:
        message.require_utf8()
        batch = jsontext.read(message.body)
        reading.require_few(len(batch) if isinstance(batch, list) else 1)
        yield from Notification.from_cloudevents(batch, strict=reading.strict, by_source=reading.by_source)

    def write(self, occurrences: Sequence[Occurrence]) -> list[Message]:
        return [_message(self.media_types[0], [event_of(one) for one in occurrences])]


def event_of(one: Occurrence) -> dict[str, Any]:
    """A notification as a CloudEvent in any case."""
    time = datetime.fromtimestamp(one.time, UTC)
    return wrapped(one.notification, origin=one.origin, sequence=one.sequence, time=time)


def _message(media_type: str, document: Any) -> Message:
    return Message((("Content-Type", f"{media_type}; charset=utf-8"),), to_json(document))


STRUCTURED = StructuredEvent()
BATCH = EventBatch()
