"""The states of a client (connecting, live, suspended, …), and what leads from one to the other."""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """Where a client is."""

    CONNECTING = "connecting"  # for the first time
    LIVE = "live"
    SUSPENDED = "suspended"  # the connection is lost; it is being made again
    DRAINING = "draining"  # nothing new is taken; what is under way comes to its end
    CLOSED = "closed"


TRANSITIONS: dict[State, dict[str, State]] = {
    State.CONNECTING: {"welcomed": State.LIVE, "closed": State.CLOSED},
    State.LIVE: {"lost": State.SUSPENDED, "drained": State.DRAINING, "closed": State.CLOSED},
    State.SUSPENDED: {"welcomed": State.LIVE, "drained": State.DRAINING, "closed": State.CLOSED},
    State.DRAINING: {"lost": State.DRAINING, "welcomed": State.DRAINING, "closed": State.CLOSED},
    State.CLOSED: {"closed": State.CLOSED},
}
