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


class Resolve(msgspec.Struct, frozen=True, gc=False):
    """Look up all addresses of a name to join, as it is written in the settings: `Resolved` says them."""

    name: str


# What can happen, and how an operator is told.
MADE, REMOVED_IN_ORDER, FOUND_DEAD, REPLACED = "link made", "link removed", "link dead", "link replaced"
REFUSED, NOT_REACHED, DAMPED, GIVEN_UP = "link refused", "not reached", "link damped", "link given up"
PARTED, JOINED, REPAIR_BEGUN, REPAIR_DONE = "part parted", "parts joined", "repair begun", "repair done"
SENTENCES: Final = {
    MADE: "A link is in use.",
    REMOVED_IN_ORDER: "A link has ended in order.",
    FOUND_DEAD: "A link was found dead.",
    REPLACED: "A link takes the place of one that was lost.",
    REFUSED: "A broker has refused a link.",
    NOT_REACHED: "A broker cannot be reached.",
    DAMPED: "A link that comes and goes is left alone for a while.",
    GIVEN_UP: "A link is given up, as it has closed a loop.",
    PARTED: "The network is in two parts by that, as far as is known here.",
    JOINED: "Two parts of the network are one.",
    REPAIR_BEGUN: "This broker looks for another link.",
    REPAIR_DONE: "This broker needs no other link any more.",
}


class OverlayEvent(msgspec.Struct, frozen=True, gc=False):
    """Something has happened to a link of this broker, or to the part of the network that it is in.

    `what` (of `SENTENCES`), with which `broker`; `why`, in a word, and the `reason` as a sentence. A link that
    takes the place of another one says of whose (`former`); one that has ended, whether this end `looks` for
    another one now. `part` is the name that the part has by it.
    """

    what: str
    broker: str = ""
    why: str = ""
    reason: str = ""
    seconds: float | None = None
    former: str = ""
    part: str = ""
    looks: bool | None = None


OverlayEffect: TypeAlias = Dial | Resolve | OverlayEvent
