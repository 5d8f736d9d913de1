"""Where the events of `palio pub` come from: made from a template, or read from standard input; and when."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from palio.cli.input.events import Complaints, read_events
from palio.cli.input.lines import LineFile
from palio.cli.input.templates import fill, fill_text, has_places
from palio.model.formats import from_document
from palio.model.notification import Notification

# Events that are published together, and how many such batches may wait for their confirmation.
BATCH = 500
WINDOW = 8
# How often events are published that a rate makes due.
_TICK = 0.01


class EventSource(ABC):
    """Events, some at a time."""

    @abstractmethod
    async def take(self, most: int) -> list[Notification]:
        """What there is, at least one unless it is the end, and at most so many."""


class Made(EventSource):
    """Events that are there as soon as they are wanted."""

    def __init__(self, events: Iterator[Notification]) -> None:
        self._events = events

    async def take(self, most: int) -> list[Notification]:
        await asyncio.sleep(0)  # confirmations want their turn
        return [one for _, one in zip(range(most), self._events, strict=False)]


class Lines(EventSource):
    """Read in a thread of its own: lines may take long to come, and the connection has to be kept."""

    def __init__(self, events: Iterator[Notification]) -> None:
        self._events = events
        self._ready: deque[Notification] = deque()
        self._room = threading.Semaphore(BATCH * WINDOW)
        self._over = False
        self._problem: BaseException | None = None
        self._more: asyncio.Event | None = None

    async def take(self, most: int) -> list[Notification]:
        if self._more is None:
            self._more = asyncio.Event()
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(loop, self._more), daemon=True).start()
        while not self._ready and not self._over:
            self._more.clear()
            if not self._ready and not self._over:
                await self._more.wait()
        taken = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        if taken:
            self._room.release(len(taken))
        if not taken and self._problem is not None:
            raise self._problem
        return taken

    def _read(self, loop: asyncio.AbstractEventLoop, more: asyncio.Event) -> None:
        try:
            for event in self._events:
                self._room.acquire()
                self._ready.append(event)
                if len(self._ready) == 1:
                    loop.call_soon_threadsafe(more.set)
        except BaseException as problem:  # noqa: BLE001 (it is raised where the events are wanted)
            self._problem = problem
        self._over = True
        with suppress(RuntimeError):  # the program is over
            loop.call_soon_threadsafe(more.set)


def repeated(document: dict[str, Any], count: int, id: str | None, *, template: bool) -> EventSource:
    """The same event so many times, its places filled in anew."""
    fixed = None if template and has_places(document) else from_document(document)

    def events() -> Iterator[Notification]:
        for number in range(1, count + 1):
            one = fixed or from_document(fill(document, number))
            yield one if id is None else _identified(one, fill_text(id, number) if template else id)

    return Made(events())


def filled(file: LineFile, complaints: Complaints, id: str | None, *, template: bool) -> Iterator[Notification]:
    """The events of a file."""
    for number, event in enumerate(read_events(file, complaints.add), 1):
        one = event.notification
        if template:
            one = from_document(fill(dict(one.attributes), number))
        yield one if id is None else _identified(one, fill_text(id, number))


def _identified(event: Notification, id: str) -> Notification:
    return Notification.of_body(msgspec.structs.replace(event.body, id=id))


async def paced(source: EventSource, rate: float | None) -> AsyncIterator[list[Notification]]:
    """Batches of events; with a rate, each when its time has come."""
    if rate is None:
        while batch := await source.take(BATCH):
            yield batch
        return
    began, given = time.perf_counter(), 0
    while True:
        due = int((time.perf_counter() - began) * rate) + 1 - given
        if due > 0:
            batch = await source.take(min(due, BATCH))
            if not batch:
                return
            given += len(batch)
            yield batch
        else:
            await asyncio.sleep(max(_TICK, given / rate - (time.perf_counter() - began)))
