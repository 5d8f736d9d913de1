"""`palio/1`: what two programs say to each other over one connection, without any I/O.

A connection carries frames: a length of four bytes, most significant first, and as many bytes of
MessagePack, one message (`wire`). Clients and brokers speak the same protocol. Who connects says `Greet`
first, with its role, and then waits for the answer: `Welcome`, or `Refused` and the end. After that

- a client sends requests (`messages`, `durable.messages`, `inquiries`) and gets their answers, `Events` for its
  transient subscriptions and `Handed` for the durable ones;
- neighbouring brokers exchange the messages between brokers.

Whoever has said nothing for the agreed time says `Ping`; who hears nothing for three times as long takes the
other for gone. `Bye` ends a connection in order: what was said before it has been meant.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from palio.model.body import Body
from palio.model.errors import EventTooLarge, PalioError
from palio.routing.messages import Envelope, LinkKind, _Message

PROTOCOL = "palio/1"
DEFAULT_PORT = 7070
# The status of HTTP with which this port answers who speaks that.
MISDIRECTED = 421

# What one frame may have: room for the largest notification with its payload, and for a page of ordinary ones.
MAX_FRAME = 16 * 1024 * 1024
# What is kept free in a frame for whatever goes with an event on its way: the names of brokers, sessions and
# durable subscriptions (each some hundred characters), numbers, and the handles of the subscriptions that want
# it. A room of this size lets even the handles of 200,000 subscriptions, the most that one client may have,
# leave in a few frames (`broker.fitting`).
ENVELOPE_ROOM = 1024 * 1024
# What an event may have, by `Body.size`. Whatever is within it can be delivered by every way.
MAX_EVENT = MAX_FRAME - ENVELOPE_ROOM
# What a frame may have before the greeting is answered: strangers are not given more memory than that.
GREETING_FRAME = 64 * 1024
# Batches are cut near this size, so that nobody waits long for the one before.
BATCH_BYTES = 128 * 1024
# Seconds of silence after which a `Ping` is due; three times that, and the other is gone.
HEARTBEAT = 5.0
SILENCES = 3

_length = struct.Struct(">I")


class Role(Enum):
    """Who connects."""

    CLIENT = "client"
    PEER = "peer"


class FrameTooLarge(PalioError):
    """A frame that announces more bytes than are allowed. `head` is how it begins."""

    limit: int
    got: int
    head: bytes = b""

    def __init__(self, *, limit: int, got: int, head: bytes = b"") -> None:
        super().__init__(f"This frame has {got:,} bytes; the limit is {limit:,}.", limit=limit, got=got)
        if head:
            self.head = head


class NotPalio(PalioError):
    """Somebody who speaks HTTP, or TLS, where this protocol is spoken."""

    spoken: str

    def __init__(self, spoken: str, advice: str = "") -> None:
        super().__init__(f"{PROTOCOL} is spoken here, and this is {spoken}.{advice}", spoken=spoken)


# How requests and answers of HTTP begin, and records of TLS. Taken for the length of a frame, all of them are
# more than anybody may send first.
_HTTP = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE ", b"CONNECT ")
_TLS = (b"\x14\x03", b"\x15\x03", b"\x16\x03", b"\x17\x03")


def spoken_instead(head: bytes) -> str | None:
    """What somebody speaks who begins like that, if it is known: HTTP or TLS."""
    if head.startswith((*_HTTP, b"HTTP/", b"PRI * H")):
        return "HTTP"
    return "TLS" if head.startswith(_TLS) else None


class Greet(_Message, frozen=True):
    """The first message of whoever connects.

    `name` is a client's own identity, the same whenever it comes back: a session of that name that is still
    there gives way, and notifications published again with the same id are recognised. A peer's is its
    broker's name; `kind` and `cost` are what the broker that connects wants the other to be to it.
    """

    protocol: str
    role: Role
    name: str
    token: str | None = None
    kind: LinkKind = LinkKind.PEER
    cost: float = 1.0
    heartbeat: float = HEARTBEAT

    def __repr__(self) -> str:  # the token is a secret
        return f"Greet({self.protocol!r}, {self.role}, {self.name!r})"


class Welcome(_Message, frozen=True):
    """The connection may be used. `journal` says whether a confirmation means that it is on disk."""

    protocol: str
    broker: str
    heartbeat: float = HEARTBEAT
    max_frame: int = MAX_FRAME
    journal: bool = False


class Ping(_Message, frozen=True):
    """Are you there?"""


class Pong(_Message, frozen=True):
    """Here I am."""


class Bye(_Message, frozen=True):
    """The sender ends the connection, and why; `final` if the other shall not come back by itself."""

    reason: str
    final: bool = False


class Lost(_Message, frozen=True):
    """The client was too slow: so many events were not sent to it, for this reason."""

    count: int
    reason: str


class Inspect(_Message, frozen=True):
    """A question about the broker itself; what can be asked, the broker knows."""

    number: int
    what: str
    argument: dict[str, Any] = msgspec.field(default_factory=dict)


class Inspected(_Message, frozen=True):
    """The answer, as plain data. A long one comes in parts; `last` is the end."""

    number: int
    result: Any
    last: bool = True


ConnectionMessage: TypeAlias = Greet | Welcome | Ping | Pong | Bye | Lost | Inspect | Inspected


class Events(_Message, frozen=True):
    """Notifications for a client; each satisfies all the subscriptions that the handles name."""

    handles: tuple[str, ...]
    envelopes: tuple[Envelope, ...]


class Handed(_Message, frozen=True):
    """Deliveries of a durable subscription: (number, attempt, what)."""

    name: str
    deliveries: tuple[tuple[int, int, Envelope], ...]


def require_deliverable(body: Body) -> None:
    """Raises `EventTooLarge` for an event that would not fit into a frame with all that goes with it."""
    if (size := body.size) > MAX_EVENT:
        raise EventTooLarge(limit=MAX_EVENT, got=size)


def frame(payload: bytes) -> bytes:
    """A frame around the bytes of a message."""
    return _length.pack(len(payload)) + payload


class Frames:
    """Cuts a stream of bytes into frames. Holds at most one that is not complete, up to the limit."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self.limit = limit
        self._rest = bytearray()
        self._needed = 4  # so many bytes must be there before it is worth while to look again

    def __len__(self) -> int:
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that are complete now. Raises `FrameTooLarge` when one announces too much."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        found: list[bytes] = []
        at, end = 0, len(data)
        self._needed = 4
        while end - at >= 4:
            size = int.from_bytes(data[at : at + 4])
            if size > self.limit:
                raise FrameTooLarge(limit=self.limit, got=size, head=data[at : at + 8])
            if end - at - 4 < size:
                self._needed = 4 + size
                break
            at += 4 + size
            found.append(data[at - size : at])
        if at < end:
            self._rest += data[at:]
        return found
