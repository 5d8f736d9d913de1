"""Heartbeats: whether the other end of a connection is there, and knows that we are.

Whoever has said nothing for the agreed time says `Ping`; who hears nothing for three times as long, and a
little (`Heartbeat.patience`), takes the other for gone. Both ends wish for a time, and the shorter one is
agreed on. `Bye` ends a connection in order: what was said before it has been meant.
"""

from __future__ import annotations

from enum import Enum

from palio.protocol.base import Numbered, WireMessage

# Seconds of silence after which a `Ping` is due; three times that, and the other is gone.
HEARTBEAT = 5.0
SILENCES = 3
# The shortest that can be agreed on: nobody shall have to say something all the time.
SHORTEST = 0.1
# After so many heartbeats brokers ask again how long an answer takes (a guess: ways do not change more often).
MEASURED_EVERY = 4
# How many mean deviations of the time of an answer one may take longer (RFC 6298).
DEVIATIONS = 4
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
    """The heartbeat of one connection: how long it was silent. Seconds come in; nothing is measured here.

    1. Who has said something is not gone for the next `patience` seconds: three heartbeats, and as long as an
       answer takes at the moment. So a long way, or another end with much to do, is no death.
    2. Nobody is accused for a time in which this end itself stood still, and the patience is doubled for a
       while after it: who got no processor for a moment may lack it again (local health, as in Lifeguard).
    3. Where the ends tell each other `often`, as brokers do, either may stand still for two heartbeats, ten
       seconds by default, at any moment, and neither takes the other for gone.
    """

    __slots__ = (
        "_deviation",
        "_doubt_until",
        "_number",
        "_sent",
        "every",
        "heard",
        "often",
        "round_trip",
        "said",
    )

    def __init__(self, every: float, now: float, *, often: bool = False) -> None:
        self.every = every
        self.heard = self.said = now  # when something was last heard, and said
        self.often = often
        self.round_trip: float | None = None  # smoothed: seconds from a ping to its answer
        self._deviation = 0.0
        self._number = 0  # of the last ping
        self._sent = now
        self._doubt_until = now

    def agree(self, wished: float) -> None:
        """Agree on an interval: the other end wishes for this time."""
        self.every = min(self.every, max(wished, SHORTEST))

    @property
    def pause(self) -> float:
        """How long to wait until silence is measured again."""
        return self.every / LOOKS

    @property
    def patience(self) -> float:
        """Seconds of silence after which the other end is gone."""
        answer = 0.0 if self.round_trip is None else self.round_trip + DEVIATIONS * self._deviation
        return SILENCES * self.every + min(answer, self.every)

    def excuse(self, seconds: float, now: float) -> None:
        """Excuse a time in which this end stood still: what came meanwhile may not have been read yet."""
        self.heard = min(now, self.heard + seconds)
        if seconds > self.every:
            self._doubt_until = now + SILENCES * self.every

    def due(self, now: float, *, listening: bool = True, speaking: bool = True) -> Due:
        """What is due now: if this end reads what comes, and if what it says can go out."""
        doubt = 2 if now < self._doubt_until else 1
        if listening and now - self.heard > doubt * self.patience:
            return Due.GONE
        quiet = self.every / 2 if self.often else self.every
        # Who always answers would never measure how long an answer takes.
        measures = self.often and now - self._sent >= MEASURED_EVERY * self.every
        is_due = speaking and (measures or now - self.said >= quiet)
        return Due.PING if is_due else Due.NOTHING

    # Round trips

    def ping(self, now: float) -> int:
        """A number for a ping that is said now; 0 if its answer is of no interest."""
        if not self.often:
            return 0
        self._number += 1
        self._sent = now
        return self._number

    def answered(self, number: int) -> None:
        """The answer to a ping was in what was heard last. Only the latest one counts, and that once."""
        if number != self._number or not number or self.heard < self._sent:
            return
        self._number += 1  # it is answered
        took = self.heard - self._sent
        if self.round_trip is None:
            self.round_trip, self._deviation = took, took / 2
        else:  # as TCP does it (RFC 6298)
            self._deviation += (abs(took - self.round_trip) - self._deviation) / 4
            self.round_trip += (took - self.round_trip) / 8
