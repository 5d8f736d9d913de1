"""`Unwritten`: bytes that wait for the disk, by who has caused them; who causes more than its share waits.

What follows from what somebody published (it is delivered to durable subscriptions, for instance) counts as its
own. Nobody else waits long for the disk then: before its write are those of the others, a share of each.

How much is worth writing at once depends on the disk: one that takes ten milliseconds for a byte takes hardly
longer for a hundred thousand. So the share grows with the time of the quickest writes, which are those that
waited for nobody; how long the others take, which attackers can prolong, says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from math import inf
from time import monotonic

from palio.broker.scheduling import Scheduler
from palio.routing.durable.effects import Append, Spool, StoreEffect

# Bytes that wait for the disk before who has caused them has to wait. One who is alone keeps the disk busy with
# them (`palio bench broker --scenario durable`).
ALONE = 4 << 20
# Several share what is written in about the time that the quickest write takes, in bytes a second, within
# bounds (`palio bench neighbours --attack taker`).
PACE = 32 << 20
TOGETHER = 64 << 10
TOGETHER_AT_MOST = 1 << 20
LEAST = 16 << 10
# Bytes of an effect that is not worth counting.
SMALL_WRITE = 80
# Seconds for which somebody who has written counts as one who writes, and quick writes are remembered.
RECENTLY = 1.0


class Unwritten:
    """Who has how many bytes waiting."""

    def __init__(self, scheduler: Scheduler, now: Callable[[], float] = monotonic) -> None:
        self._scheduler = scheduler
        self._now = now
        self._last: dict[Hashable, float] = {}  # when each has written last, the latest at the end
        self._under_way: dict[int, tuple[Hashable, int, float]] = {}  # by token
        self._bytes: Counter[Hashable] = Counter()
        self._held: set[Hashable] = set()
        self._quickest = self._formerly_quickest = inf  # seconds: at present, and before that
        self._since = -inf

    def owners(self) -> Collection[Hashable]:
        """Those for whom something is being written."""
        return self._bytes.keys()

    @property
    def share(self) -> int:
        """Bytes that each of those who write at present may have waiting."""
        several = len(self._last)
        if several <= 1:
            return ALONE
        quickest = min(self._quickest, self._formerly_quickest)
        together = TOGETHER if quickest == inf else int(PACE * quickest)
        return max(LEAST, min(max(together, TOGETHER), TOGETHER_AT_MOST) // several)

    def add(self, owner: Hashable, effects: Sequence[StoreEffect], size: int) -> None:
        """Somebody has caused these effects, of so many bytes."""
        if size < SMALL_WRITE * len(effects):  # as acknowledgements are
            return
        last = next((one for one in reversed(effects) if type(one) is Append or type(one) is Spool), None)
        if last is None:
            return
        now = self._now()
        self._writes(owner, now)
        self._under_way[last.token] = owner, size, now
        self._bytes[owner] += size
        if self._bytes[owner] > self.share and owner not in self._held:
            self._held.add(owner)
            self._scheduler.hold(owner)
            if len(self._last) > 1:
                self._scheduler.crowd()

    def _writes(self, owner: Hashable, now: float) -> None:
        self._last.pop(owner, None)
        self._last[owner] = now
        while (first := next(iter(self._last.items())))[1] < now - RECENTLY:
            del self._last[first[0]]

    def owner_of(self, token: int) -> Hashable:
        """Who has caused a write; None if nobody has."""
        return self._under_way[token][0] if token in self._under_way else None

    def written(self, token: int) -> None:
        """Handles that a write is on disk, and all that follows from it has been asked for; or has failed."""
        if (found := self._under_way.pop(token, None)) is None:
            return
        owner, size, began = found
        self._took(self._now(), began)
        self._bytes[owner] -= size
        if self._bytes[owner] <= self.share // 2 and owner in self._held:
            self._held.discard(owner)
            self._scheduler.release(owner)
        if not self._bytes[owner]:
            del self._bytes[owner]

    def _took(self, now: float, began: float) -> None:
        if now - self._since > RECENTLY:
            self._formerly_quickest, self._quickest, self._since = self._quickest, inf, now
        self._quickest = min(self._quickest, now - began)
