"""`Pace`: so many at once, and then one every so often, however fast somebody wants more."""

from __future__ import annotations


class Pace:
    """Allows `at_once` right away, and one more in each `every` seconds; whoever waits gains that again."""

    def __init__(self, at_once: int, every: float) -> None:
        self._every = every
        self._ahead = (at_once - 1) * every
        self._paid_until = float("-inf")

    @property
    def next(self) -> float:
        """When the next one is allowed."""
        return self._paid_until - self._ahead

    def takes(self, now: float) -> bool:
        """Whether one is allowed now, which then counts."""
        if now < self.next:
            return False
        self._paid_until = max(self._paid_until, now) + self._every
        return True
