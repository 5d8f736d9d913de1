"""What the overlay wants done, and what it tells of itself."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from palio.protocol.peers import LinkKind


class Dial(msgspec.Struct, frozen=True, gc=False):
    """Connect to this address once, and ask for a link: `LinkUp` with the address says that it is heard.

    Otherwise `NotReached` does.
    """

    address: str
    kind: LinkKind = LinkKind.PEER


# What can happen, and how an operator is told.
SENTENCES: Final = {
    "made": "A link is in use.",
    "joined": "This broker has a new parent.",
    "taken": "A broker has become a neighbour.",
    "refused": "A broker has refused a link.",
    "not reached": "A broker cannot be reached.",
    "lost": "The link to a neighbour is lost.",
    "damped": "A link that comes and goes is left alone for a while.",
    "given up": "A link is given up.",
}


class OverlayEvent(msgspec.Struct, frozen=True, gc=False):
    """Something has happened, as operators are told: what (of `SENTENCES`), with whom, why, in what time."""

    what: str
    broker: str = ""
    reason: str = ""
    seconds: float | None = None


OverlayEffect: TypeAlias = Dial | OverlayEvent
