"""JSON documents, and the notifications that they are."""

from __future__ import annotations

import json
from typing import Any

from palio.model.cloudevents import as_event, content_of
from palio.model.errors import InvalidNotification
from palio.model.formats.form import Reading
from palio.model.notification import Notification


def from_document(document: object, *, strict: bool = False) -> Notification:
    """A JSON object of which nobody says what it is: one with a `specversion` is a CloudEvent."""
    if isinstance(document, dict) and "specversion" in document:
        return Notification.from_cloudevent(document, strict=strict)
    return plain_document("$", document, Reading(strict=strict))


def plain_document(path: str, document: object, reading: Reading) -> Notification:
    """A JSON object as it is. `path` is where it stands in what was sent."""
    if not isinstance(document, dict):
        raise InvalidNotification(path, "An event is a JSON object.")
    try:
        return Notification(document, strict=reading.strict, **reading.properties)
    except InvalidNotification as problem:
        if path == "$":
            raise
        raise InvalidNotification(path + problem.path.removeprefix("$"), problem.reason) from None


def to_document(notification: Notification) -> dict[str, Any]:
    """As it was published: a CloudEvent, or the content, nested."""
    return as_event(notification) or content_of(notification)


def to_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
