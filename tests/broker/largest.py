"""The largest event that may be published, and events beyond that, as an older broker could have let in."""

from __future__ import annotations

from palio import Notification
from palio.protocol.frames import MAX_EVENT

_PART = 60_000


def event_of(size: int, **more: object) -> Notification:
    """An event whose body has exactly so many bytes, as `Body.size` counts them."""
    parts = {f"part{number:04}": "x" * _PART for number in range((size - 20_000) // (_PART + 12) - 1)}
    filled = {**more, **parts, "filler": "x" * 1_000, "last": "x" * 1_000}
    missing = size - Notification(filled).body.size
    half = missing // 2
    filled |= {"filler": "x" * (1_000 + half), "last": "x" * (1_000 + missing - half)}
    event = Notification(filled)
    assert event.body.size == size
    return event


def largest(**more: object) -> Notification:
    """As large as it may be."""
    return event_of(MAX_EVENT, **more)
