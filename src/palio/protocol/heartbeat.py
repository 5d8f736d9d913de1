"""Heartbeats: whether the other end of a connection is there, and knows that we are.

Whoever has said nothing for the agreed time says `Ping`; who hears nothing for three times as long takes the
other for gone. Both ends wish for a time, and the shorter one is agreed on. `Bye` ends a connection in order:
what was said before it has been meant.
"""

from __future__ import annotations

from enum import Enum

from palio.protocol.base import Numbered, WireMessage

# Seconds of silence after which a `Ping` is due; three times that, and the other is gone.
HEARTBEAT = 5.0
SILENCES = 3
# The shortest that can be agreed on: nobody shall have to say something all the time.
SHORTEST = 0.1
# How many times in a heartbeat the silence is measured: what is due is then late by a quarter at the most.
LOOKS = 4


class Ping(Numbered, frozen=True):
    """A heartbeat: are you there? And, with a number: have you taken all that was said before?"""


class Pong(Numbered, frozen=True):
    """Answers `Ping`."""


class Bye(WireMessage, frozen=True):
    """The sender ends the connection, and why; `final` if the other shall not come back by itself."""

    reason: str
    final: bool = False


class Due(Enum):
    """What silence asks for."""

    NOTHING = "nothing"
    PING = "ping"  # the other end may not know that we are here
    GONE = "gone"  # it was silent for too long


class Heartbeat:
    """The heartbeat of one connection: how long it was silent. Seconds come in; nothing is measured here."""

    __slots__ = ("every", "heard", "said")

    def __init__(self, every: float, now: float) -> None:
        self.every = every
        self.heard = self.said = now  # when something was last heard, and said

    def agree(self, wished: float) -> None:
        """Agree on an interval: the other end wishes for this time."""
        self.every = min(self.every, max(wished, SHORTEST))

    @property
    def pause(self) -> float:
        """How long to wait until silence is measured again."""
        return self.every / LOOKS

    def excuse(self, seconds: float, now: float) -> None:
        """Excuse a time in which this end stood still: what came meanwhile may not have been read yet."""
        self.heard = min(now, self.heard + seconds)

    def due(self, now: float, *, listening: bool = True, speaking: bool = True) -> Due:
        """What is due now: if this end reads what comes, and if what it says can go out."""
        if listening and now - self.heard > SILENCES * self.every:
            return Due.GONE
        return Due.PING if speaking and now - self.said >= self.every else Due.NOTHING
