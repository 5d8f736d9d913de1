"""A test bed: two conversations, and a link between them whose delay, loss and time are plain fields.

Nothing happens by itself. `Bed.run(seconds)` lets time pass, in steps; what was put on the link arrives when
its delay is over, cut into pieces of any size. A link that is `cut` loses all that is on it, and whatever
is put there later: as a connection does of which nobody is told that it is gone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from palio.protocol.conversation import Conversation
from palio.protocol.encoding import decode
from palio.protocol.frames import frame
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.heartbeat import Heartbeat
from palio.protocol.pairing import Pairing
from palio.protocol.vocabulary import FROM_CLIENTS, TO_CLIENTS


@dataclass
class Link:
    """Bytes on their way to one end."""

    delay: float = 0.01
    cut: bool = False
    piece: int = 0  # into pieces of how many bytes it is cut; 0: as it was put
    on_the_way: deque[tuple[float, bytes]] = field(default_factory=deque)
    carried: bytearray = field(default_factory=bytearray)

    def put(self, data: bytes, now: float) -> None:
        if self.cut:
            return
        self.carried += data
        for at in range(0, len(data), self.piece or len(data)):
            self.on_the_way.append((now + self.delay, data[at : at + (self.piece or len(data))]))

    def arrived(self, now: float) -> list[bytes]:
        if self.cut:
            self.on_the_way.clear()
        found = []
        while self.on_the_way and self.on_the_way[0][0] <= now:
            found.append(self.on_the_way.popleft()[1])
        return found


@dataclass
class Side:
    """One end: its conversation, the link to it, what it has heard, and whether it reads."""

    link: Link
    conversation: Conversation[Any] = field(init=False)
    heard: list[Any] = field(default_factory=list)
    reads: bool = True
    gone: bool = False  # takes the other end for gone

    def said(self, kind: type) -> list[Any]:
        return [message for message in self.heard if type(message) is kind]


class Bed:
    """`near` has connected to `far`. `now` is the time, for both."""

    def __init__(
        self,
        *,
        delay: float = 0.01,
        piece: int = 0,
        heartbeats: tuple[float, float] = (1.0, 1.0),
        pairing: Pairing[Any] | None = None,
        protocol: str = PROTOCOL,
        welcomes: str = PROTOCOL,
    ) -> None:
        self.now = 0.0
        self.near, self.far = Side(Link(delay, piece=piece)), Side(Link(delay, piece=piece))
        self._welcomes = welcomes
        self.far.conversation = Conversation(
            Heartbeat(heartbeats[1], self.now), decode, lambda data: self._put(self.near, data)
        )
        self.near.conversation = Conversation(
            Heartbeat(heartbeats[0], self.now),
            decode,
            lambda data: self._put(self.far, data),
            greet=Greet(protocol, Role.CLIENT, "ann", heartbeat=heartbeats[0]),
            hears=TO_CLIENTS,
            pairing=pairing,
        )

    def _put(self, to: Side, payload: bytes) -> None:
        to.link.put(frame(payload), self.now)
        if self.now:  # the first word is said while the conversation is being made
            (self.near if to is self.far else self.far).conversation.heartbeat.said = self.now

    def run(self, seconds: float, step: float = 0.01) -> None:
        """Let time pass."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + step)
            for side in (self.near, self.far):
                if side.reads:
                    self._arrive(side)
                if side.conversation.beat(self.now, listening=side.reads):
                    side.gone = True

    def _arrive(self, side: Side) -> None:
        for data in side.link.arrived(self.now):
            for payload in side.conversation.feed(data, self.now):
                message = side.conversation.hear(payload)
                if message is not None:
                    side.heard.append(message)
                if type(message) is Greet:
                    welcome = Welcome(self._welcomes, "siena")
                    side.conversation.welcome(message, welcome, hears=FROM_CLIENTS, frame_limit=1 << 20)

    def cut(self) -> None:
        """The connection is lost, and nobody is told."""
        self.near.link.cut = self.far.link.cut = True
