"""The greeting: who connects says `Greet`, and waits for `Welcome`, or for `Refused` and the end."""

from __future__ import annotations

from enum import Enum

from palio.protocol.base import WireMessage
from palio.protocol.frames import MAX_FRAME
from palio.protocol.heartbeat import HEARTBEAT
from palio.protocol.peers import LinkKind
from palio.protocol.violations import ProtocolViolation

# Messages before palio/2 had no numbers. `Greet` and `Refused` are written so that all versions read them.
PROTOCOL = "palio/2"
# What a `Refused` is about that has no number: the connection itself.
CONNECTION = "connection"


class Role(Enum):
    """Who connects."""

    CLIENT = "client"
    PEER = "peer"


class Greet(WireMessage, frozen=True):
    """The first message of whoever connects.

    `name` is a client's own identity, the same whenever it comes back: a session of that name that is still
    there gives way, and notifications published again with the same id are recognised. A peer's is its
    broker's name; `kind` and `cost` are what the broker that connects wants the other to be to it. `knows` are
    the kinds of messages that not everyone who speaks this version knows (`OPTIONAL`), and who connects does:
    nobody is told others, as what is not known ends a connection. A broker that `asks` for a link may be
    refused it: the other one says hello only after it.
    """

    protocol: str
    role: Role
    name: str
    token: str | None = None
    kind: LinkKind = LinkKind.PEER
    cost: float = 1.0
    heartbeat: float = HEARTBEAT
    knows: tuple[str, ...] = ()
    asks: bool = False

    def __repr__(self) -> str:  # the token is a secret
        return f"Greet({self.protocol!r}, {self.role}, {self.name!r})"


class Welcome(WireMessage, frozen=True):
    """The connection may be used. `journal` says whether a confirmation means that it is on disk.

    `knows` are the kinds of requests that not every broker of this version knows (`LATER_REQUESTS`), and this
    one does: a client asks nothing else of them, as what is not known ends a connection.
    """

    protocol: str
    broker: str
    heartbeat: float = HEARTBEAT
    max_frame: int = MAX_FRAME
    journal: bool = False
    knows: tuple[str, ...] = ()


def require_version(spoken: str) -> None:
    """Raises `ProtocolViolation` if the other end speaks another version."""
    if spoken != PROTOCOL:
        raise ProtocolViolation(
            f"{PROTOCOL} is spoken at this end, and {spoken[:32]!r} at the other; both need the same version: "
            "bring the older one up to date."
        )
