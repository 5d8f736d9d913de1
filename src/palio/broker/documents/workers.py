"""`DocumentWorkers`: reads documents in a few threads, so that the event loop goes on meanwhile.

1. No more documents are read at a time than there are workers, whatever waits: so the memory that reading takes
   is bounded (`memory`). What waits is counted where it came in.
2. Who is next is said by `turns`, as everywhere in a broker: whoever brings little is read next, however much
   others have brought. A turn is one document, of a message with however many, or what is read in a moment.
3. Everything but reading happens in the event loop: there is nothing to lock.
4. What is small is handed over together: to hand one document to a thread and back takes longer than to read
   it. Together they are no more than one that is not small, so nobody waits longer.
5. A thread that has read much is ended and another one begun, as it keeps the names that it has met.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Final

from palio.broker.turns import Turns
from palio.documents.parsing import thread_is_worn
from palio.model.notification import Notification

_MOMENT: Final = 0.002  # seconds in which one job goes on to its next document
_TOGETHER: Final = 65_536  # bytes of several jobs that are handed over together, some 2 ms of work
_MOST_TOGETHER: Final = 16


class ReadingJob:
    """Documents of one message of that `size`, which are read one after the other, for one owner.

    `done` is called in the event loop, with what was read of each, or with what is wrong with the first one.
    """

    def __init__(
        self,
        owner: Hashable,
        steps: Sequence[Callable[[], list[Notification]]],
        done: Callable[[list[list[Notification]], Exception | None], None],
        size: int = _TOGETHER,
    ) -> None:
        self.owner = owner
        self.size = size
        self.done = done
        self._steps = steps
        self._read: list[list[Notification]] = []
        self._problem: Exception | None = None

    def turn(self, until: float) -> None:
        """Read one more, or several until then. Nothing is raised: what is wrong is told at the end."""
        try:
            self._read.append(self._steps[len(self._read)]())
            while not self.is_over and perf_counter() < until:
                self._read.append(self._steps[len(self._read)]())
        except Exception as problem:  # noqa: BLE001 (it is raised where it is waited for)
            self._problem = problem

    @property
    def is_over(self) -> bool:
        return self._problem is not None or len(self._read) == len(self._steps)

    def tell(self) -> None:
        """It is over: whoever waits is told."""
        self.done(self._read, self._problem)


class DocumentWorkers:
    """So many threads, and what waits for them."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._turns: Turns[ReadingJob] = Turns()
        self._idle: list[ThreadPoolExecutor] = []
        self._busy = 0
        self._stopped = False

    @property
    def busy(self) -> int:
        """Documents that are being read."""
        return self._busy

    def add(self, job: ReadingJob) -> None:
        """Read what a job has, when it is its owner's turn."""
        self._turns.ready(job, job.owner)
        self._begin()

    def stop(self) -> None:
        """Nothing more is read, and nobody told."""
        self._stopped = True
        for executor in self._idle:
            executor.shutdown(wait=False)

    def _begin(self) -> None:
        while self._busy < self._count and not self._stopped:
            jobs = self._next()
            if not jobs:
                return
            self._busy += 1
            executor = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "palio-documents")
            ended = partial(self._ended, jobs, executor)
            executor.submit(_read, jobs).add_done_callback(partial(_soon, asyncio.get_running_loop(), ended))

    def _next(self) -> list[ReadingJob]:
        """Those whose turn it is, as many as one thread is given together."""
        jobs: list[ReadingJob] = []
        left = _TOGETHER
        while left > 0 and len(jobs) < _MOST_TOGETHER:
            found = self._turns.next()
            if found is None:
                break
            jobs.append(found[0])
            left -= found[0].size
        return jobs

    def _ended(
        self, jobs: list[ReadingJob], executor: ThreadPoolExecutor, done: Future[tuple[list[float], bool]]
    ) -> None:
        self._busy -= 1
        seconds, worn = done.result()
        if worn or self._stopped:
            executor.shutdown(wait=False)
        else:
            self._idle.append(executor)
        if self._stopped:
            return
        for job, took in zip(jobs, seconds, strict=True):
            if not job.is_over:
                self._turns.ready(job, job.owner)
            self._turns.charge(job, job.owner, took)
            if job.is_over:
                self._turns.leave(job, job.owner)
                job.tell()
        self._begin()


def _read(jobs: list[ReadingJob]) -> tuple[list[float], bool]:
    """Runs in a thread. Returns how long each has taken, and whether that thread is to be ended."""
    began = perf_counter()
    until = began + _MOMENT / len(jobs)
    seconds = []
    for job in jobs:
        job.turn(until)
        ended = perf_counter()
        seconds.append(ended - began)
        began, until = ended, ended + _MOMENT / len(jobs)
    return seconds, thread_is_worn()


def _soon(
    loop: asyncio.AbstractEventLoop,
    work: Callable[[Future[tuple[list[float], bool]]], None],
    future: Future[tuple[list[float], bool]],
) -> None:
    """Called in a thread: let the event loop go on with what came of it."""
    with suppress(RuntimeError):  # the loop is over
        loop.call_soon_threadsafe(work, future)
