"""Whether the other end of a connection is there.

Whoever has said nothing for the agreed time says `Ping`; who hears nothing for three times as long takes the
other for gone. `Bye` ends a connection in order: what was said before it has been meant.
"""

from __future__ import annotations

from palio.protocol.base import WireMessage

# Seconds of silence after which a `Ping` is due; three times that, and the other is gone.
HEARTBEAT = 5.0
SILENCES = 3


class Ping(WireMessage, frozen=True):
    """Are you there?"""


class Pong(WireMessage, frozen=True):
    """Here I am."""


class Bye(WireMessage, frozen=True):
    """The sender ends the connection, and why; `final` if the other shall not come back by itself."""

    reason: str
    final: bool = False
