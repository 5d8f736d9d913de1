"""What users publish, and its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict, Unpack

import msgspec

from palio.model.body import Body
from palio.model.errors import InvalidNotification
from palio.model.notification import Notification
from palio.model.plain import encode_plain
from palio.protocol.frames import require_deliverable

# The declaration of a text that was in some encoding once, other than the one that it travels in.
_DECLARED = re.compile(
    r"\ufeff?<\?xml\s[^>]*?\bencoding\s*=\s*[\"'](?!utf-?8[\"'])([^\"']{0,40})", re.IGNORECASE
)

Content: TypeAlias = Mapping[str, Any] | Notification


class Properties(TypedDict, total=False):
    """What a notification has beside its attributes. A payload is opaque; priorities are 0 to 9, 9 first."""

    id: str | None
    lifetime: timedelta | float | None
    priority: int | None
    payload: bytes | None


def is_single(content: object) -> bool:
    """Whether this is meant as one notification, be it right or wrong; anything else is several."""
    return isinstance(content, Mapping | Notification | str | bytes) or not isinstance(content, Iterable)


def make_document(document: str | bytes, attributes: Content, **properties: Unpack[Properties]) -> Body:
    """The bytes of a notification that brings a document, which its broker reads; with attributes beside it.

    Raises `InvalidNotification` or `EventTooLarge`.
    """
    if isinstance(document, str):
        if declared := _DECLARED.match(document):
            reason = f"A text has no encoding, and this one says {declared[1]!r}; hand over its bytes."
            raise InvalidNotification("document", reason)
        document = document.encode("utf-8", "surrogatepass")
    if not isinstance(document, bytes):
        raise InvalidNotification("document", "A document is bytes, or a text.")
    return make_body(attributes, **(properties | {"payload": document}))


def make_body(content: Content, **properties: Unpack[Properties]) -> Body:
    """The bytes of a notification, which can be delivered. Raises `InvalidNotification` or `EventTooLarge`."""
    body = _made(content, **properties)
    require_deliverable(body)
    return body


def _made(content: Content, **properties: Unpack[Properties]) -> Body:
    given: dict[str, Any] = {name: value for name, value in properties.items() if value is not None}
    if not given and type(content) is dict and (attributes := encode_plain(content)) is not None:
        return Body(attributes)
    if not isinstance(content, Notification):
        return Notification(content, **given).body
    body = content.body
    if not given:
        return body
    kept = {name: getattr(body, name) for name in ("id", "time", "lifetime", "priority", "payload")}
    made = Notification(content.attributes, **(kept | given)).body
    return made if "payload" in given else msgspec.structs.replace(made, unindexed=body.unindexed)
