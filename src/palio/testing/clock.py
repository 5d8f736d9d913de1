"""`Clock`: the time as a test wants it to be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import msgspec


class Timer(msgspec.Struct, eq=False):
    """Something that is to happen at a time, unless it is cancelled."""

    at: float
    _callback: Callable[[], None]
    cancelled: bool = False
    also: asyncio.TimerHandle | None = None  # by the time of this machine, if that comes first

    def cancel(self) -> None:
        self.cancelled = True
        if self.also is not None:
            self.also.cancel()

    def run(self) -> None:
        """Once."""
        if not self.cancelled:
            self.cancel()
            self._callback()


class Clock:
    """The time of the brokers that are given it. It stands still until `advance` is called.

    What brokers do at certain times (redeliver, give up, forget) goes by it. What they settle among themselves,
    so that a durable subscription is ready and gets what is published, does not wait for it. Neither do
    connections: heartbeats and the time-outs of clients are about the real network that they use.
    """

    def __init__(self, start: float | None = None) -> None:
        self._now = time.time() if start is None else start
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._busy: list[Callable[[], bool]] = []

    def now(self) -> float:
        """Seconds since 1970."""
        return self._now

    def call_at(self, at: float, callback: Callable[[], None]) -> Timer:
        """Call something when the time has come."""
        timer = Timer(at, callback)
        heappush(self._timers, (at, next(self._numbers), timer))
        return timer

    def wait_while(self, busy: Callable[[], bool]) -> None:
        """Time does not pass while this is so."""
        self._busy.append(busy)

    async def advance(self, seconds: float) -> None:
        """Let time pass. All that comes due happens at its moment, in order."""
        until = self._now + seconds
        await self._settle()
        while self._timers and self._timers[0][0] <= until:
            at, _, timer = heappop(self._timers)
            self._now = max(self._now, at)
            timer.run()
            await self._settle()
        self._now = until

    async def _settle(self) -> None:
        await asyncio.sleep(0)
        while any(busy() for busy in self._busy):
            await asyncio.sleep(0)
