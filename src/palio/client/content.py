"""What users publish, and its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict, Unpack

import msgspec

from palio.model.body import Body
from palio.model.notification import Notification
from palio.model.plain import encode_plain
from palio.protocol.frames import require_deliverable

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
