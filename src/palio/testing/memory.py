"""A broker whose store is in memory, and whose time may be a test's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from palio.broker.broker import Broker
from palio.broker.clock import Clock as BrokerClock
from palio.broker.extension import Installer
from palio.broker.gateway.definitions import MemoryKeeper
from palio.broker.settings import Settings
from palio.routing.durable.effects import Recovered, StoreEffect
from palio.routing.effects import SetTimer
from palio.sim.faults.disk import Disk
from palio.testing.clock import Clock

# What brokers settle among themselves does not wait for a test to let time pass: a durable subscription becomes
# ready, and what is published comes, while a clock stands still.
_AMONG_BROKERS = frozenset(("durable sync", "durable tick"))


class MemoryStatistics(msgspec.Struct, frozen=True):
    """How a store in memory is doing: as that of a store, as far as there is something to tell."""

    commits: int
    queued: int
    queued_bytes: int
    head: int
    trimmed: int
    waiting: str | None = None


class MemoryStore:
    """Does what a store does, with a `Disk` of the simulator. What is submitted is done in the next turn."""

    def __init__(self, disk: Disk, incarnation: int, completed: Callable[[Sequence[Any]], None]) -> None:
        self._disk = disk
        self._incarnation = incarnation
        self._completed = completed
        self._loop = asyncio.get_running_loop()
        self._commits = 0
        self._closed = False

    def lake_statistics(self) -> None:
        """There is none."""

    @property
    def queued_bytes(self) -> int:
        return 0

    @property
    def is_busy(self) -> bool:
        return bool(self._disk.queue) and not self._disk.is_blocked and not self._closed

    def recovered(self) -> tuple[Recovered, int]:
        """What was there when the broker began."""
        return self._disk.recovered(), self._incarnation

    def submit(self, effects: Sequence[StoreEffect]) -> None:
        """Let effects be carried out, in order."""
        if not self._disk.queue:
            self._loop.call_soon(self.complete)
        self._disk.queue.extend(effects)

    def complete(self) -> None:
        """Do what can be done."""
        done = []
        while self.is_busy:
            message = self._disk.complete()
            if message is not None:
                done.append(message)
        if done:
            self._commits += 1
            self._completed(done)

    def statistics(self) -> MemoryStatistics:
        return MemoryStatistics(self._commits, len(self._disk.queue), 0, self._disk.head, self._disk.trimmed)

    def close(self) -> None:
        """Nothing happens any more; what is not done is lost."""
        self._closed = True
        self._disk.queue.clear()


class MemoryBroker(Broker):
    """A broker around a disk that outlives it. `changed` is called whenever something has happened to it."""

    def __init__(
        self,
        settings: Settings,
        disk: Disk,
        incarnation: int,
        clock: Clock | None,
        *,
        changed: Callable[[], None],
        keeper: MemoryKeeper,
        extensions: Sequence[Installer] = (),
    ) -> None:
        self._keeper = keeper
        self._clock = clock
        self._changed = changed
        self._disk = disk
        self._incarnation = incarnation
        super().__init__(settings, extensions=extensions)
        if clock is not None:
            self.now = BrokerClock(clock.now, clock.now)

    def keeper(self) -> MemoryKeeper:
        return self._keeper

    async def open_store(self) -> MemoryStore:
        return MemoryStore(self._disk, self._incarnation, self._completed)

    def carry_out(self, effects: Sequence[Any]) -> None:
        super().carry_out(effects)
        self._changed()

    def _set_timer(self, effect: SetTimer) -> None:
        if self._clock is None:
            super()._set_timer(effect)
            return
        name = effect.name
        self._cancel_timer(name)
        timer = self._clock.call_at(effect.at, lambda: self._on_timer(name))
        if name in _AMONG_BROKERS:
            timer.also = self._loop.call_later(effect.at - self._clock.now(), timer.run)
        self._timers[name] = timer  # type: ignore[assignment]
