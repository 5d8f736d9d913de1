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


class ConnectionState(Enum):
    CONNECTING = "connecting"
    LIVE = "live"
    SUSPENDED = "suspended"
    DRAINING = "draining"
    MOVED = "moved"
    CLOSED = "closed"


_ENDS = {
    "ending": ConnectionState.DRAINING,
    "taken over": ConnectionState.MOVED,
    "lost": ConnectionState.CLOSED,
}
TRANSITIONS: dict[ConnectionState, dict[str, ConnectionState]] = {
    ConnectionState.CONNECTING: {
        "greeted": ConnectionState.LIVE,
        "refused": ConnectionState.DRAINING,
        "lost": ConnectionState.CLOSED,
    },
    ConnectionState.LIVE: {"paused": ConnectionState.SUSPENDED, **_ENDS},
    ConnectionState.SUSPENDED: {"resumed": ConnectionState.LIVE, **_ENDS},
    ConnectionState.DRAINING: {"lost": ConnectionState.CLOSED},
    ConnectionState.MOVED: {"lost": ConnectionState.CLOSED},
    ConnectionState.CLOSED: {},
}
