"""The newest events by their positions, so that a match can be shown with what its events say.

A detector remembers of an event only what its pattern asks about. Whoever shows matches to people keeps the
events beside it, up to a limit: of a match whose beginning is further back, that content is not shown.
"""

from __future__ import annotations

from palio.model.notification import Notification

# A guess: what passes in the window of a pattern at a desk, and some megabytes.
MAX_RECENT = 10_000


class Recent:
    """What was kept last."""

    def __init__(self, limit: int = MAX_RECENT) -> None:
        self._limit = limit
        self._kept: dict[int, Notification] = {}

    def keep(self, position: int, notification: Notification) -> None:
        """Positions come in their order."""
        self._kept[position] = notification
        if len(self._kept) > self._limit:
            del self._kept[next(iter(self._kept))]

    def get(self, position: int) -> Notification | None:
        """The event at a position, if it is not too long ago."""
        return self._kept.get(position)
