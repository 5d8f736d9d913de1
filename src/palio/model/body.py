"""`Body`: a notification as bytes, the form in which it travels and is kept.

It is written once, where a notification is published, and from then on only handed on: by brokers, journals,
spools and the pipeline. The attributes are one MessagePack map (`encoding`); the properties lie beside it, so
that a broker can go by priority and lifetime without reading the attributes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from palio.model.values import MAX_PAYLOAD_BYTES

DEFAULT_PRIORITY = 4
MAX_PRIORITY = 9
MAX_ID_CHARACTERS = 255
MAX_UNINDEXED = 1_024

_PROPERTIES = 64  # bytes, about

_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARACTERS)]


class Body(
    msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """Attributes as `Notification.encode` gives them, and the properties.

    Whoever reads it from bytes knows that the properties are within their limits, and nothing of the
    attributes.
    """

    attributes: bytes
    id: _Id | None = None
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    lifetime: timedelta | None = None
    priority: Annotated[int, msgspec.Meta(ge=0, le=MAX_PRIORITY)] = DEFAULT_PRIORITY
    payload: Annotated[bytes, msgspec.Meta(max_length=MAX_PAYLOAD_BYTES)] | None = None
    unindexed: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_UNINDEXED)] = ()

    @property
    def size(self) -> int:
        """About how many bytes it takes; a long id and many unindexed names take some thousand more."""
        size = len(self.attributes) + _PROPERTIES
        if (payload := self.payload) is not None:
            size += len(payload)
        if unindexed := self.unindexed:
            size += sum([4 * len(name) for name in unindexed])
        return size
