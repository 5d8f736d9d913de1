"""CloudEvents 1.0 in structured JSON: what is checked, and what becomes an attribute.

Context attributes, extensions included, become attributes of their own names; `time` is a time. JSON data
becomes `data` or `data.…`; binary data becomes the payload.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from palio.model.errors import InvalidNotification
from palio.model.values import parse_time

_REQUIRED = ("id", "source", "type")
_OPTIONAL_STRINGS = ("datacontenttype", "dataschema", "subject")
_NAME = re.compile(r"[a-z0-9]+")
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+\s*(;.*)?", re.DOTALL)


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
    attributes: dict[str, Any] = {}
    for name, value in document.items():
        if name in ("data", "data_base64") or value is None:
            continue
        attributes[name] = _context_value(name, value, f"{path}.{name}")
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
        raise InvalidNotification(path, f"{value!r} is not a media type.")
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
