"""The parties of a run, each a process of its own, and what they have in common whatever system they speak.

A party connects, says that it is ready, does its part, and reports. Processes are forked from one that has
loaded everything: they begin at once, and their CPU time is counted only from when they were ready.

*The window.* A publisher that is faster than its subscribers makes queues grow until somebody drops, and then
what is measured is the dropping. So publishers of all systems keep to the same window: no more than so many
events are under way between all publishers and the slowest subscriber. Each party notes its count in shared
memory now and then, which costs next to nothing and takes no part in any system's protocol.
"""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import time
import traceback
from array import array
from collections.abc import Callable, Coroutine, Iterator
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawArray
from typing import Any

import msgspec

from benchmarks.live.content import Content
from benchmarks.live.servers import die_with_parent
from palio.model.errors import PalioError

BURST = 256  # published between two looks at the window
NOTE = 64  # received between two notes
WINDOW = 16_384
_TICK = 0.001  # at a fixed rate, what is due is published so often
_WAIT = 0.005  # until the next look at a full window: a small part of what it holds, and next to no work
_fork = multiprocessing.get_context("fork")


class PartyFailed(PalioError):
    """A party that ended with an exception."""

    def __init__(self, who: str, reason: str) -> None:
        super().__init__(f"A {who} failed: {reason.strip()}.", who=who, reason=reason)


class Plan(msgspec.Struct, frozen=True):
    """What one party shall do."""

    port: int
    number: int  # among those of its kind
    events: int  # to publish, or to receive
    contents: list[Content] = []
    rate: float = 0.0  # events a second; 0: as fast as the window lets
    timed: bool = False  # note when each event was published and received
    json: bool = False  # for systems that do not look into events: JSON, not fixed places
    durable: bool = False
    in_flight: int = 0  # confirmed publishes under way; 0: they are not confirmed
    group: int = 1  # published by one call, if confirmed
    seconds: float = 0.0  # publish so long rather than so many
    token: str | None = None  # by which they show who they are
    authority: str | None = None  # with TLS: who signed the broker's certificate
    scheme: str = "palio"


class Report(msgspec.Struct):
    """What one party has done. Times are of the clock that all processes of a machine share."""

    count: int
    began: float
    ended: float
    cpu: float
    latencies: bytes = b""  # seconds, as an array of doubles

    def samples(self) -> array[float]:
        found = array("d")
        found.frombytes(self.latencies)
        return found


class Tally:
    """The count of one subscriber, and when what it got had been published if that is noted."""

    def __init__(self, plan: Plan, counters: Counters) -> None:
        self.count = 0
        self.ended = time.perf_counter()
        self.events = plan.events
        self.latencies: array[float] | None = array("d") if plan.timed else None
        self._plan = plan
        self._counters = counters

    def note(self, count: int) -> bool:
        """It is so far now. Returns whether that is all."""
        self.count = count
        self.ended = time.perf_counter()
        self._counters.received[self._plan.number] = count
        return count == self.events


class Counters:
    """How far everybody is."""

    def __init__(self, publishers: int, subscribers: int, window: int) -> None:
        self.published: Any = RawArray(ctypes.c_int64, publishers)
        self.received: Any = RawArray(ctypes.c_int64, subscribers)
        self.window = window

    def full(self) -> bool:
        return self.window > 0 and sum(self.published) - min(self.received) > self.window


class Line:
    """From a party to whoever started it, and what it has to say."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._began = self._cpu = 0.0

    def ready(self, *, wait: bool) -> None:
        """Say so, and (publishers) wait until all are."""
        self._connection.send("ready")
        if wait:
            self._connection.recv()
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def report(self, count: int) -> None:
        """So many were published, until now."""
        self.tell(Report(count, self._began, time.perf_counter(), self._used()))

    def report_received(self, tally: Tally) -> None:
        samples = b"" if tally.latencies is None else tally.latencies.tobytes()
        self.tell(Report(tally.count, self._began, tally.ended, self._used(), samples))

    def tell(self, report: Any) -> None:
        """Anything that can be pickled."""
        # An event loop that has looked at it has left it non-blocking, and a report may be large.
        os.set_blocking(self._connection.fileno(), True)
        self._connection.send(report)

    def leave_out(self, seconds: float) -> None:
        """So much of the CPU time was for looking, not for the work."""
        self._cpu += seconds

    def _used(self) -> float:
        return time.process_time() - self._cpu

    def stopped(self, seconds: float) -> bool:
        """Whether somebody says that it is over; waits so long for it."""
        return self._connection.poll(seconds)

    async def asked(self) -> bool:
        """Wait for the next word; False if it is that it is over."""
        loop = asyncio.get_running_loop()
        word: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._connection.fileno(), lambda: word.done() or word.set_result(None))
        await word
        loop.remove_reader(self._connection.fileno())
        try:
            return self._connection.recv() == "report"
        except EOFError:
            return False

    async def finished(self, work: Coroutine[Any, Any, object]) -> None:
        """Do the work until it is done, or somebody says that it is over."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        loop.add_reader(self._connection.fileno(), task.cancel)
        await asyncio.wait([task])
        loop.remove_reader(self._connection.fileno())
        if not task.cancelled():
            task.result()


Role = Callable[[Plan, Counters, Line], None]


class Party:
    """A process that plays a role."""

    def __init__(self, who: str, role: Role, plan: Plan, counters: Counters) -> None:
        self.who = who
        self._line, other = _fork.Pipe()
        self._process = _fork.Process(target=_play, args=(role, plan, counters, other), daemon=True)
        self._process.start()
        other.close()

    def hear(self, seconds: float | None) -> Any:
        """What it says next; None if it says nothing in time. Raises `PartyFailed`."""
        try:
            if seconds is not None and not self._line.poll(seconds):
                return None
            said = self._line.recv()
        except EOFError:
            raise PartyFailed(self.who, "it ended without a word") from None
        if isinstance(said, PartyFailed):
            raise said
        return said

    def say(self, word: str) -> None:
        self._line.send(word)

    def end(self) -> None:
        self._process.join(0.5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._line.close()


def _play(role: Role, plan: Plan, counters: Counters, connection: Connection) -> None:
    die_with_parent()
    try:
        role(plan, counters, Line(connection))
    except BaseException:  # noqa: BLE001 (told to whoever started this)
        connection.send(PartyFailed("party", traceback.format_exc()))


def bursts(plan: Plan) -> Iterator[tuple[int, int]]:
    """What is published between two looks around: from, to. All of it, or until the time is over."""
    until = time.perf_counter() + plan.seconds
    start = 0
    while start < plan.events or (plan.seconds and time.perf_counter() < until):
        end = start + BURST if plan.seconds else min(start + BURST, plan.events)
        yield start, end
        start = end


def due(plan: Plan) -> Iterator[tuple[int, int]]:
    """The same at a fixed rate: whoever iterates sleeps between two of them."""
    began = time.perf_counter()
    start = 0
    while start < plan.events:
        end = min(plan.events, int((time.perf_counter() - began) * plan.rate) + 1)
        yield start, end
        start = end


async def pause(plan: Plan, counters: Counters, published: int) -> None:
    """After a burst: note it, let others run, and wait while the window is full or nothing is due."""
    counters.published[plan.number] = published
    await asyncio.sleep(_TICK if plan.rate else 0)
    while counters.full():
        await asyncio.sleep(_WAIT)


def pause_thread(plan: Plan, counters: Counters, published: int) -> None:
    """The same without an event loop."""
    counters.published[plan.number] = published
    if plan.rate:
        time.sleep(_TICK)
    while counters.full():
        time.sleep(_WAIT)


def steps(plan: Plan) -> Iterator[tuple[int, int]]:
    """What to publish, step by step."""
    return due(plan) if plan.rate else bursts(plan)
