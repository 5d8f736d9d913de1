"""`Unwritten`: bytes that wait for the disk, by who has caused them; who causes more than its share waits.

What follows from what somebody published (it is delivered to durable subscriptions, for instance) counts as its
own, also where that of several is handled, and written, together. Nobody else waits long for the disk then:
before its write are those of the others, a share of each.

How much is worth writing at once depends on the disk: one that takes ten milliseconds for a byte takes hardly
longer for a hundred thousand. So the share grows with the time of the quickest writes, which are those that
waited for nobody; how long the others take, which attackers can prolong, says nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from math import inf
from time import monotonic

import msgspec

from palio.broker.scheduling import Scheduler
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Append, Spool, StoreEffect
from palio.store.queue import EACH_COPY

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


class UnwrittenWrite(msgspec.Struct, eq=False):
    """A write that waits for the disk: who has caused it, and how many bytes of it; and what it publishes."""

    owners: Mapping[Hashable, int]
    began: float
    published: tuple[Envelope, ...]


class HandledWrites:
    """Writes that are on disk and handled together: what follows from them has been caused by their owners."""

    def __init__(self, writes: dict[int, UnwrittenWrite]) -> None:
        self._all = writes
        self.tokens: list[int] = []
        self._writes: list[UnwrittenWrite] = []

    def add(self, token: int) -> None:
        self.tokens.append(token)
        if (write := self._all.get(token)) is not None:
            self._writes.append(write)

    @property
    def owners(self) -> Counter[Hashable]:
        """Who has caused how many of them."""
        return Counter([owner for write in self._writes for owner in write.owners])

    def causes(self, effects: Sequence[StoreEffect], size: int) -> Mapping[Hashable, int]:
        """Who has caused these effects, which follow from them, and how many bytes each."""
        owners = self.owners
        if len(owners) <= 1:
            return dict.fromkeys(owners, size)
        publishers = {
            envelope.sequence: owner
            for write in self._writes
            for owner in write.owners
            for envelope in write.published
        }
        caused: Counter[Hashable] = Counter()
        copies: Counter[int] = Counter()
        bodies: dict[int, int] = {}
        for effect in effects:
            if type(effect) is Spool:
                for _, _, envelope in effect.add:
                    sequence = envelope.sequence
                    if sequence not in bodies:
                        bodies[sequence] = envelope.notification.body.size
                    copies[sequence] += 1
        for sequence, count in copies.items():
            if (owner := publishers.get(sequence)) is not None:
                caused[owner] += bodies[sequence] + count * EACH_COPY
        return caused


class Unwritten:
    """Who has how many bytes waiting."""

    def __init__(self, scheduler: Scheduler, now: Callable[[], float] = monotonic) -> None:
        self._scheduler = scheduler
        self._now = now
        self._last: dict[Hashable, float] = {}  # when each has written last, the latest at the end
        self._under_way: dict[int, UnwrittenWrite] = {}  # by token
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

    def handled(self) -> HandledWrites:
        """Some that are on disk, to which each is added when it is its turn."""
        return HandledWrites(self._under_way)

    def add(self, owners: Mapping[Hashable, int], effects: Sequence[StoreEffect], size: int) -> None:
        """Some have caused these effects, so many bytes each, of so many in all."""
        if not owners or size < SMALL_WRITE * len(effects):  # as acknowledgements are
            return
        last = next((one for one in reversed(effects) if type(one) is Append or type(one) is Spool), None)
        if last is None:
            return
        now = self._now()
        published = last.envelopes if type(last) is Append else ()
        self._under_way[last.token] = UnwrittenWrite(owners, now, published)
        for owner, its in owners.items():
            self._writes(owner, now)
            self._bytes[owner] += its
        for owner, its in owners.items():
            waiting = self._bytes[owner]
            if waiting > LEAST and waiting > self.share and owner not in self._held:
                self._held.add(owner)
                self._scheduler.hold(owner)
                # Who waits for each write before the next, of no more than what several may have waiting, is
                # in nobody's way.
                if len(self._last) > 1 and (waiting > its or its > TOGETHER):
                    self._scheduler.crowd()

    def _writes(self, owner: Hashable, now: float) -> None:
        self._last.pop(owner, None)
        self._last[owner] = now
        while (first := next(iter(self._last.items())))[1] < now - RECENTLY:
            del self._last[first[0]]

    def written(self, token: int) -> None:
        """Handles that a write is on disk, and all that follows from it has been asked for; or has failed."""
        if (found := self._under_way.pop(token, None)) is None:
            return
        self._took(self._now(), found.began)
        for owner, size in found.owners.items():
            self._bytes[owner] -= size
            if owner in self._held and self._bytes[owner] <= self.share // 2:
                self._held.discard(owner)
                self._scheduler.release(owner)
            if not self._bytes[owner]:
                del self._bytes[owner]

    def _took(self, now: float, began: float) -> None:
        if now - self._since > RECENTLY:
            self._formerly_quickest, self._quickest, self._since = self._quickest, inf, now
        self._quickest = min(self._quickest, now - began)
