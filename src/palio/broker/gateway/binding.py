"""CloudEvents over HTTP: what a request brings, and what a webhook is sent (binary, structured, batch).

In binary mode context attributes are headers (`ce-…`), percent-encoded where a header could not carry them, and
the body is the data. JSON becomes data that filters see, text becomes a text, anything else the payload.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from palio.broker.gateway.problems import WrongParameter
from palio.model import jsontext
from palio.model.errors import InvalidNotification, PalioError
from palio.model.notification import Notification

EVENT = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
JSON = "application/json"
LINES = ("application/x-ndjson", "application/jsonl", "application/json-lines")
_PREFIX = "ce-"
# What need not be encoded in a header: printable ASCII but for space, double quote and percent.
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
MAX_EVENTS = 50_000  # in one request
_EXPECTED = f"{JSON}, application/x-ndjson, {EVENT} or {BATCH}, or have ce-… headers"


class WrongMediaType(PalioError):
    """A body of a kind that is not known here."""

    media_type: str

    def __init__(self, media_type: str, expected: str = _EXPECTED) -> None:
        this = repr(media_type[:80]) if media_type else "of no named type"
        super().__init__(
            f"This is {this}, and should be {expected}. With curl: --json, or -H 'Content-Type: {JSON}'.",
            media_type=media_type[:80],
        )


def read_events(
    headers: Iterable[tuple[str, str]], body: bytes, properties: dict[str, Any]
) -> tuple[Notification, ...]:
    """What a request publishes. `properties` are for plain JSON. Raises `InvalidNotification` and others."""
    names = [(name.lower(), value) for name, value in headers]
    content_type = next((value for name, value in names if name == "content-type"), "")
    media_type = _media_type(content_type)
    if media_type in (EVENT, BATCH):
        _require_utf8(content_type)
        if media_type == EVENT:
            return (Notification.from_cloudevent(body, by_source=True),)
        batch = jsontext.read(body)
        _require_few(len(batch) if isinstance(batch, list) else 1)
        return tuple(Notification.from_cloudevents(batch, by_source=True))
    context = [(name.removeprefix(_PREFIX), value) for name, value in names if name.startswith(_PREFIX)]
    if context:
        document = _from_headers(context, content_type, body)
        return (Notification.from_cloudevent(document, by_source=True),)
    if media_type in LINES:
        _require_utf8(content_type)
        return _plain(_lines(body), properties)
    if media_type == JSON or re.fullmatch(r"application/[\w.-]+\+json", media_type):
        _require_utf8(content_type)
        document = jsontext.read(body)
        if isinstance(document, list):
            _require_few(len(document))
            return _plain(((f"$[{at}]", one) for at, one in enumerate(document)), properties)
        return (_notification("$", document, properties),)
    raise WrongMediaType(media_type)


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _require_utf8(content_type: str) -> None:
    found = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", content_type, re.IGNORECASE)
    if found and found[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise WrongParameter("Content-Type", "JSON is UTF-8; another charset is not known here.")


# Binary mode


def _from_headers(context: list[tuple[str, str]], content_type: str, body: bytes) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, value in context:
        if name in document:
            raise WrongParameter(f"{_PREFIX}{name}", "This header is there twice.")
        if name in ("data", "data_base64", "datacontenttype"):
            raise WrongParameter(f"{_PREFIX}{name}", "Data is the body, and its type is Content-Type.")
        document[name] = _decoded(name, value)
    if content_type:
        document["datacontenttype"] = content_type
    if not body:
        return document
    media_type = _media_type(content_type)
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
        raise WrongParameter(f"{_PREFIX}{name}", "This header is not UTF-8 once it is decoded.") from None


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def is_json(media_type: str) -> bool:
    """Whether data of this type is JSON."""
    return media_type.endswith(("/json", "+json"))


def to_binary(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """Headers and body of an event in binary mode."""
    headers = {
        f"{_PREFIX}{name}": quote(_canonical(value), safe=_SAFE)
        for name, value in event.items()
        if name not in ("data", "data_base64", "datacontenttype")
    }
    content_type = event.get("datacontenttype")
    if "data_base64" in event:
        body = base64.b64decode(event["data_base64"])
        headers["Content-Type"] = _header(content_type or "application/octet-stream")
    elif "data" not in event:
        body = b""
        if content_type:
            headers["Content-Type"] = _header(content_type)
    elif content_type and not is_json(_media_type(content_type)) and isinstance(event["data"], str):
        body = event["data"].encode()
        headers["Content-Type"] = _header(content_type)
    else:
        body = to_json(event["data"])
        headers["Content-Type"] = _header(content_type or JSON)
    return headers, body


def to_structured(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """Headers and body of an event in structured mode."""
    return {"Content-Type": f"{EVENT}; charset=utf-8"}, to_json(event)


def to_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _canonical(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _header(value: str) -> str:
    """A media type that cannot end the header that it is in."""
    return value if value.isascii() and value.isprintable() else "application/octet-stream"


# Plain JSON


def _plain(parts: Iterable[tuple[str, Any]], properties: dict[str, Any]) -> tuple[Notification, ...]:
    """Several events; the id of the request tells each from the others by its place."""
    found: list[Notification] = []
    for at, (path, document) in enumerate(parts):
        own = properties if properties.get("id") is None else properties | {"id": f"{properties['id']} {at}"}
        found.append(_notification(path, document, own))
    return tuple(found)


def _require_few(count: int) -> None:
    """Before events are made of something, so many that they would not fit are refused."""
    if count > MAX_EVENTS:
        raise InvalidNotification("$", f"One request may have {MAX_EVENTS:,} events.")


def _notification(path: str, document: Any, properties: dict[str, Any]) -> Notification:
    if not isinstance(document, dict):
        raise InvalidNotification(path, "An event is a JSON object.")
    try:
        return Notification(document, **properties)
    except InvalidNotification as problem:
        if path == "$":
            raise
        raise InvalidNotification(path + problem.path.removeprefix("$"), problem.reason) from None


def _lines(body: bytes) -> Iterable[tuple[str, Any]]:
    count = 0
    for number, line in enumerate(io.BytesIO(body), 1):
        if line.strip():
            count += 1
            _require_few(count)
            try:
                yield f"line {number}: $", jsontext.read(line)
            except InvalidNotification as problem:
                raise InvalidNotification(f"line {number}: {problem.path}", problem.reason) from None
