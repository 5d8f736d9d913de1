"""CloudEvents in binary mode: context attributes are headers (`ce-…`), and the body is the data.

Headers are percent-encoded where they could not carry a value. JSON becomes data that filters see, text becomes
a text, anything else the payload.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import msgspec

from palio.model import jsontext
from palio.model.errors import WrongParameter
from palio.model.formats.documents import to_json
from palio.model.formats.form import Message, Occurrence, Reading, is_json, media_type_of
from palio.model.formats.plain import JSON
from palio.model.formats.structured import event_of
from palio.model.notification import Notification

_PREFIX = "ce-"
# What need not be encoded in a header: printable ASCII but for space, double quote and percent.
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_DATA = ("data", "data_base64", "datacontenttype")


class BinaryEvent(msgspec.Struct, frozen=True):
    """One event. Its headers tell it, and not the media type, which is that of the data."""

    media_types: tuple[str, ...] = ()

    def describes(self, message: Message) -> bool:
        """Whether the headers of a message are those of an event."""
        return any(name.startswith(_PREFIX) for name, _ in message.headers)

    def read(self, message: Message, reading: Reading) -> Iterator[Notification]:
        document = _from_headers(message)
        yield Notification.from_cloudevent(document, strict=reading.strict, by_source=reading.by_source)

    def write(self, occurrences: Sequence[Occurrence]) -> list[Message]:
        return [to_binary(event_of(one)) for one in occurrences]


def _from_headers(message: Message) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, value in message.headers:
        if not name.startswith(_PREFIX):
            continue
        attribute = name.removeprefix(_PREFIX)
        if attribute in document:
            raise WrongParameter(name, "This header is there twice.")
        if attribute in _DATA:
            raise WrongParameter(name, "Data is the body, and its type is Content-Type.")
        document[attribute] = _decoded(name, value)
    content_type, body = message.content_type, message.body
    if content_type:
        document["datacontenttype"] = content_type
    if not body:
        return document
    media_type = media_type_of(content_type)
    if is_json(media_type):
        document["data"] = jsontext.read(body)
    elif media_type.startswith("text/") and (text := _text(body)) is not None:
        document["data"] = text
    else:
        document["data_base64"] = base64.b64encode(body).decode()
    return document


def _decoded(name: str, value: str) -> str:
    try:
        # Servers give the bytes of a header as Latin-1; whoever sends UTF-8 unencoded is understood, too.
        raw = unquote_to_bytes(value.encode("latin-1"))
        return raw.decode()
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise WrongParameter(name, "This header is not UTF-8 once it is decoded.") from None


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def to_binary(event: dict[str, Any]) -> Message:
    """A CloudEvent, as the document that it is in structured mode, as a message in binary mode."""
    headers = [
        (f"{_PREFIX}{name}", quote(_canonical(value), safe=_SAFE))
        for name, value in event.items()
        if name not in _DATA
    ]
    content_type = event.get("datacontenttype")
    if "data_base64" in event:
        body = base64.b64decode(event["data_base64"])
        content_type = content_type or "application/octet-stream"
    elif "data" not in event:
        body = b""
    elif content_type and not is_json(media_type_of(content_type)) and isinstance(event["data"], str):
        body = event["data"].encode()
    else:
        body = to_json(event["data"])
        content_type = content_type or JSON
    if content_type:
        headers.append(("Content-Type", _header(content_type)))
    return Message(tuple(headers), body)


def _canonical(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _header(value: str) -> str:
    """A media type that cannot end the header that it is in."""
    return value if value.isascii() and value.isprintable() else "application/octet-stream"


BINARY = BinaryEvent()
