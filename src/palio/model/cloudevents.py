"""CloudEvents 1.0 in structured JSON: what is checked, and what becomes an attribute; and back.

Context attributes, extensions included, become attributes of their own names; `time` is a time. JSON data
becomes `data` or `data.…`; binary data becomes the payload. What was no CloudEvent becomes one of the type
`palio.event`, with all of its content as data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from palio.model.body import MAX_ID_CHARACTERS
from palio.model.errors import InvalidNotification
from palio.model.flatten import nest
from palio.model.moments import format_time, parse_time
from palio.model.naming import event_name
from palio.model.values import member_path

if TYPE_CHECKING:
    from palio.model.notification import Notification

_REQUIRED = ("id", "source", "type")
_OPTIONAL_STRINGS = ("datacontenttype", "dataschema", "subject")
_NAME = re.compile(r"[a-z0-9]+")
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+\s*(;.*)?", re.DOTALL)

# The type of an event that was published as something else.
PLAIN_TYPE = "palio.event"


class EventContent(msgspec.Struct):
    """What a notification is made of."""

    attributes: dict[str, Any]
    id: str
    payload: bytes | None


def read_event(document: Any, path: str = "$") -> EventContent:
    """Check an event. Raises `InvalidNotification`."""
    if not isinstance(document, Mapping):
        raise InvalidNotification(path, "A CloudEvent is a JSON object.")
    if document.get("specversion") != "1.0":
        raise InvalidNotification(f"{path}.specversion", 'A CloudEvent has the specversion "1.0".')
    for name in _REQUIRED:
        if not isinstance(document.get(name), str) or not document[name]:
            raise InvalidNotification(
                f"{path}.{name}", "A CloudEvent needs this attribute, a string with content."
            )
    attributes = {
        name: _context_value(name, value, member_path(path, name))
        for name, value in document.items()
        if name not in ("data", "data_base64") and value is not None
    }
    payload = _data(document, attributes, path)
    return EventContent(attributes, document["id"], payload)


def _context_value(name: str, value: Any, path: str) -> Any:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidNotification(path, "A context attribute's name has lower-case letters and digits only.")
    if name == "time":
        try:
            return parse_time(value if isinstance(value, str) else "")
        except ValueError as problem:
            raise InvalidNotification(path, str(problem)) from None
    if name in _OPTIONAL_STRINGS and (not isinstance(value, str) or not value):
        raise InvalidNotification(path, "This attribute is a string with content where it is given.")
    if name == "datacontenttype" and not _MEDIA_TYPE.fullmatch(value):
        raise InvalidNotification(path, f"{value[:80]!r} is not a media type.")
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) and -(2**31) <= value < 2**31:
        return value
    raise InvalidNotification(path, "A context attribute is a string, a bool or an int of 32 bits.")


def _data(document: Mapping[str, Any], attributes: dict[str, Any], path: str) -> bytes | None:
    """Put JSON data among the attributes; binary data is returned."""
    encoded = document.get("data_base64")
    if encoded is None:
        if document.get("data") is not None:
            attributes["data"] = document["data"]
        return None
    if document.get("data") is not None:
        raise InvalidNotification(f"{path}.data_base64", "An event has data or data_base64, not both.")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise InvalidNotification(f"{path}.data_base64", "This is not base64.") from None


def identity(source: str, id: str) -> str:
    """What tells an event from all others: source and id together, in as many characters as an id may have."""
    whole = f"{source} {id}"
    return whole if len(whole) <= MAX_ID_CHARACTERS else hashlib.sha256(whole.encode()).hexdigest()


def content_of(notification: Notification) -> dict[str, Any]:
    """The content as it was published, nested, as plain data for JSON."""
    return nest(flat_content_of(notification))


def flat_content_of(notification: Notification) -> dict[str, Any]:
    """The same by dotted names."""
    flat = {name: jsonable(value) for name, value in notification.attributes.items()}
    if notification.unindexed and notification.payload is not None:
        flat |= json.loads(notification.payload)
    return flat


def jsonable(value: Any) -> Any:
    """A value for JSON; times and bytes are marked, so that they can be told from texts."""
    match value:
        case datetime():
            return {"$time": format_time(value)}
        case bytes():
            return {"$bytes": base64.b64encode(value).decode()}
        case tuple():
            return [jsonable(one) for one in value]
        case _:
            return value


def as_event(notification: Notification) -> dict[str, Any] | None:
    """The CloudEvent that a notification is, in structured JSON; None if it is none."""
    attributes = notification.attributes
    if attributes.get("specversion") != "1.0":
        return None
    if not all(isinstance(attributes.get(name), str) and attributes[name] for name in _REQUIRED):
        return None
    event: dict[str, Any] = {}
    for name, value in attributes.items():
        if name != "data" and not name.startswith("data."):
            plain = format_time(value) if isinstance(value, datetime) else value
            try:
                _context_value(name, plain, name)
            except InvalidNotification:
                return None
            event[name] = plain
    content = content_of(notification) if len(event) < len(attributes) or notification.unindexed else {}
    if "data" in content:
        event["data"] = content["data"]
    elif len(event) < len(attributes):  # what no JSON under this name would be read as again
        return None
    elif notification.payload is not None:
        event["data_base64"] = base64.b64encode(notification.payload).decode()
    return event


def wrapped(notification: Notification, *, origin: str, sequence: int, time: datetime) -> dict[str, Any]:
    """A notification as a CloudEvent in any case; (origin, sequence) names it in the whole network."""
    if (event := as_event(notification)) is not None:
        return event
    event = {
        "specversion": "1.0",
        "id": notification.id or event_name(origin, sequence),
        "source": f"/palio/{quote(origin, safe='')}",
        "type": PLAIN_TYPE,
        "time": format_time(notification.time or time),
        "datacontenttype": "application/json",
        "data": content_of(notification),
    }
    if notification.payload is not None and not notification.unindexed:
        event["paliopayload"] = base64.b64encode(notification.payload).decode()
    return event
