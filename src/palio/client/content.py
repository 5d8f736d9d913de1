"""What users publish, and its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict, Unpack

import msgspec

from palio.model.body import Body
from palio.model.notification import Notification
from palio.model.plain import encode_plain

Content: TypeAlias = Mapping[str, Any] | Notification


class Properties(TypedDict, total=False):
    """What a notification has beside its attributes. A payload is opaque; 9 is the highest of ten
    priorities.
    """

    id: str | None
    lifetime: timedelta | float | None
    priority: int | None
    payload: bytes | None


def make_body(content: Content, **properties: Unpack[Properties]) -> Body:
    """The bytes of a notification. Raises `InvalidNotification`."""
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
