"""What the overlay wants done, and what it tells of itself."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Dial(msgspec.Struct, frozen=True, gc=False):
    """Connect to this address once, and ask for a link: `LinkUp` with the address says that it is heard.

    Otherwise `NotReached` does. With `plain`, the link is not asked for, but made as those of the settings are.
    """

    address: str
    plain: bool = False


class OverlayEvent(msgspec.Struct, frozen=True, gc=False):
    """Something has changed, as operators are told: what, with whom, why, and how long it has taken."""

    what: str
    broker: str = ""
    reason: str = ""
    seconds: float | None = None


OverlayEffect: TypeAlias = Dial | OverlayEvent
