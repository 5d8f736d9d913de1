"""`MemoryHost`: what is around a broker of a test: a store in memory, and a time that may be the test's."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from palio.broker.clock import MonotonicClock as BrokerClock
from palio.broker.gateway.definitions import MemoryKeeper
from palio.broker.host import all_addresses, life_at
from palio.broker.settings import Settings
from palio.broker.storing import StoreBridge
from palio.broker.timers import Cancellable
from palio.routing.occurrences import StoreMessage
from palio.testing.clock import Clock

if TYPE_CHECKING:
    from palio.store.memory import MemoryPlace, MemoryStore

# What brokers settle among themselves does not wait for a test to let time pass: a durable subscription becomes
# ready, and what is published comes, while a clock stands still.
_AMONG_BROKERS = frozenset(("durable sync", "durable tick"))


class MemoryHost:
    """The host of a broker that may be started again: what it keeps outlives it."""

    def __init__(self, clock: Clock | None, changed: Callable[[], None]) -> None:
        self._clock = clock
        self.changed = changed
        self.resolver: Callable[[str], Awaitable[list[str]]] = all_addresses
        self._keeper = MemoryKeeper()
        self.place: MemoryPlace | None = None
        self._store: MemoryStore | None = None
        self.begin()

    def begin(self) -> None:
        """Another broker begins."""
        self._store = None
        self.now = BrokerClock() if self._clock is None else BrokerClock(self._clock.now, self._clock.now)

    def call_at(self, name: str, at: float, callback: Callable[[], None]) -> Cancellable:
        loop = asyncio.get_running_loop()
        if self._clock is None:
            return loop.call_later(max(0.0, at - self.now.last), callback)
        timer = self._clock.call_at(at, callback)
        if name in _AMONG_BROKERS:
            timer.also = loop.call_later(at - self._clock.now(), timer.run)
        return timer

    async def open_store(self, settings: Settings, bridge: StoreBridge) -> MemoryStore:
        from palio.store.memory import MemoryPlace, MemoryStore  # noqa: PLC0415 (only with a journal)

        self.place = self.place or MemoryPlace()
        loop, thread = asyncio.get_running_loop(), threading.get_ident()

        def completed(messages: list[StoreMessage]) -> None:
            """It is handled in the same turn; only what is completed by closing comes in another thread."""
            (bridge.take if threading.get_ident() == thread else bridge.completed)(messages)

        self._store = MemoryStore.open(
            self.place,
            broker=settings.name,
            completed=completed,
            soon=loop.call_soon,
            retention=settings.durable.retention,
            remembered=settings.durable.remembered,
            at_least=life_at(self.now()),
            log_bounds=settings.operations.bounds,
        )
        return self._store

    async def addresses(self, name: str) -> list[str]:
        return await self.resolver(name)

    def keeper(self, settings: Settings) -> MemoryKeeper:
        return self._keeper

    def spool_folder(self, settings: Settings) -> Path:
        return Path(tempfile.gettempdir())

    @property
    def is_busy(self) -> bool:
        """Whether something is to be written."""
        return self._store is not None and self._store.queued_bytes > 0

    def crash(self) -> None:
        """What the broker was about to write is lost."""
        if self._store is not None:
            self._store.crash()
