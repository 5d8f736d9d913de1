"""The time of a broker: that of its machine, except that it never goes back and never stands still.

Clocks of machines are set, forwards and backwards. What is ahead is followed at once. If the machine's clock
falls behind what was said before, the broker's goes on at half the speed until the other has caught up:
redeliveries and deadlines come later than they should, but they come.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SLOWED = 0.5


class MonotonicClock:
    """A monotonic clock: `clock()` is the time in seconds; `last` is what it said last."""

    def __init__(
        self, machine: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._machine = machine
        self._steady = steady
        self._at = steady()
        self.last = machine()

    def __call__(self) -> float:
        before, self._at = self._at, self._steady()
        self.last = max(self._machine(), self.last + SLOWED * (self._at - before))
        return self.last
