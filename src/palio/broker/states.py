"""The life of a connection, as data: named states, and what leads from one to the next.

- *connecting*: accepted or dialled, and not yet greeted;
- *live*: both may speak;
- *suspended*: the other end does not read; what is for it waits, up to a limit;
- *draining*: no more is taken from it; what is for it still goes out;
- *moved*: another connection of the same name has taken its place;
- *closed*: gone.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    CONNECTING = "connecting"
    LIVE = "live"
    SUSPENDED = "suspended"
    DRAINING = "draining"
    MOVED = "moved"
    CLOSED = "closed"


TRANSITIONS: dict[State, dict[str, State]] = {
    State.CONNECTING: {"greeted": State.LIVE, "refused": State.DRAINING, "lost": State.CLOSED},
    State.LIVE: {
        "paused": State.SUSPENDED,
        "ending": State.DRAINING,
        "taken over": State.MOVED,
        "lost": State.CLOSED,
    },
    State.SUSPENDED: {
        "resumed": State.LIVE,
        "ending": State.DRAINING,
        "taken over": State.MOVED,
        "lost": State.CLOSED,
    },
    State.DRAINING: {"lost": State.CLOSED},
    State.MOVED: {"lost": State.CLOSED},
    State.CLOSED: {},
}
