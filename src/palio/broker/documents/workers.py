"""`DocumentWorkers`: reads documents in a few threads, so that the event loop goes on meanwhile.

1. No more documents are read at a time than there are workers, whatever waits: so the memory that reading takes
   is bounded (`memory`). What waits is counted where it came in.
2. Who is next is said by `turns`, as everywhere in a broker: whoever brings little is read next, however much
   others have brought. A turn is one document, of a message with however many.
3. Everything but reading happens in the event loop: there is nothing to lock.
4. A thread that has read much is ended and another one begun, as it keeps the names that it has met.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter

from palio.broker.turns import Turns
from palio.documents.parsing import thread_is_worn
from palio.model.notification import Notification


class ReadingJob:
    """Documents of one message, which are read one after the other, for one owner.

    `done` is called in the event loop, with what was read, or with what is wrong with the first that cannot be.
    """

    def __init__(
        self,
        owner: Hashable,
        steps: Sequence[Callable[[], Notification]],
        done: Callable[[list[Notification], Exception | None], None],
    ) -> None:
        self.owner = owner
        self.done = done
        self._steps = steps
        self._read: list[Notification] = []
        self._problem: Exception | None = None

    def step(self) -> None:
        """Read one more. Nothing is raised: what is wrong is told at the end."""
        try:
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
            found = self._turns.next()
            if found is None:
                return
            job, _ = found
            self._busy += 1
            executor = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "palio-documents")
            ended = partial(self._ended, job, executor, perf_counter())
            executor.submit(_read, job).add_done_callback(partial(_soon, asyncio.get_running_loop(), ended))

    def _ended(self, job: ReadingJob, executor: ThreadPoolExecutor, began: float, worn: Future[bool]) -> None:
        self._busy -= 1
        if worn.result() or self._stopped:
            executor.shutdown(wait=False)
        else:
            self._idle.append(executor)
        if self._stopped:
            return
        if not job.is_over:
            self._turns.ready(job, job.owner)
        self._turns.charge(job, job.owner, perf_counter() - began)
        if job.is_over:
            self._turns.leave(job, job.owner)
            job.tell()
        self._begin()


def _read(job: ReadingJob) -> bool:
    """Runs in a thread. Returns whether that one is to be ended."""
    job.step()
    return thread_is_worn()


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[[Future[bool]], None], future: Future[bool]) -> None:
    """Called in a thread: let the event loop go on with what came of it."""
    with suppress(RuntimeError):  # the loop is over
        loop.call_soon_threadsafe(work, future)
