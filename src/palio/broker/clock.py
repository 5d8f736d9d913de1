"""The clock of a broker: the time of day, which never goes back and never stands still.

Lifetimes, redeliveries and the times of events go by it. When somebody sets the machine's clock forward, it
follows. When somebody sets it back, it goes at half its speed until the machine's clock has caught up: a clock
that waited would keep what is due from being done.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Seconds since 1970."""

    def __init__(
        self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._then = monotonic()
        self.last = wall()

    def now(self) -> float:
        moment = self._monotonic()
        elapsed, self._then = moment - self._then, moment
        self.last = max(self._wall(), self.last + elapsed / 2)
        return self.last
