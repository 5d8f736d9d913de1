"""`DocumentWorkers`: reads documents in a few threads, so that the event loop goes on meanwhile.

1. No more documents are read at a time than there are workers, whatever waits: so the memory that reading takes
   is bounded (`memory`). What waits is counted where it came in.
2. Who is next is said by `turns`, as everywhere in a broker: whoever brings little is read next, however much
   others have brought. A turn is one document, of a message with however many, or what is read in a moment.
3. Everything but reading happens in the event loop: there is nothing to lock.
4. What comes in one turn of the event loop is handed over together at its end, as far as it is small: to hand
   one document to a thread and back takes longer than to read it. Together they are no more than one that is
   not small; and if somebody else comes meanwhile, what is not begun goes back, as it may be that one's turn.
5. For what is small the event loop waits a moment, at the expense of whose it is: a thread that has to take the
   interpreter from a busy loop, several times for each document, takes many times as long as one beside a loop
   that waits. A loop that has much else to do does not wait, as both get on side by side. Once it was in vain,
   as documents take longer than they should, it does not wait for a while: so because of such documents it
   never stands still for more than a twentieth of the time.
6. A thread that has read much is ended and another one begun, as it keeps the names that it has met.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import partial
from time import perf_counter, thread_time
from typing import Final

from palio.broker.turns import Turns
from palio.documents.parsing import thread_is_worn
from palio.model.notification import Notification

_MOMENT: Final = 0.002  # seconds in which one job goes on to its next document
_TOGETHER: Final = 65_536  # bytes of several jobs that are handed over together, some 2 ms of work
_MOST_TOGETHER: Final = 64
_PATIENCE: Final = 0.005  # seconds for which the event loop waits for what is small
_BUSY: Final = 0.5  # share of the time that the event loop works, from which on it does not wait
_LOOK_EVERY: Final = 0.1  # seconds for which that share is taken
_IMPATIENT: Final = 0.1  # seconds for which it does not, after it has waited in vain


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


class _Batch:
    """Jobs that one thread is given together."""

    def __init__(self, jobs: list[ReadingJob]) -> None:
        self.owners = Counter([job.owner for job in jobs])
        self.is_small = sum([job.size for job in jobs]) <= _TOGETHER
        self._each = _MOMENT / len(jobs)
        self._waiting = deque(jobs)
        self.begun: list[tuple[ReadingJob, float]] = []  # with how long each has taken
        self.is_worn = False  # the thread

    def read(self) -> None:
        """Runs in a thread."""
        began = perf_counter()
        with suppress(IndexError):  # there are no more
            while True:
                job = self._waiting.popleft()
                job.turn(began + self._each)
                ended = perf_counter()
                self.begun.append((job, ended - began))
                began = ended
        self.is_worn = thread_is_worn()

    def take_back(self) -> list[ReadingJob]:
        """Takes back what is not begun; nothing of it will be."""
        waiting = []
        with suppress(IndexError):
            while True:
                waiting.append(self._waiting.popleft())
        return waiting


class DocumentWorkers:
    """So many threads, and what waits for them."""

    def __init__(
        self,
        count: int,
        owe: Callable[[Hashable, float], None],
        together: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`owe` charges an owner with seconds of the event loop. All who hear at the same time that theirs is
        read do so within `together`.
        """
        self._count = count
        self._owe = owe
        self._together = together
        self._turns: Turns[ReadingJob] = Turns()
        self._idle: list[ThreadPoolExecutor] = []
        self._waiting = 0  # jobs
        self._busy: dict[_Batch, None] = {}
        self._due = False  # whether what is ready is handed over at the end of this turn of the loop
        self._impatient_until = 0.0
        self._is_busy = False  # the event loop, since it was looked at last
        self._looked, self._worked = perf_counter(), thread_time()
        self._stopped = False

    @property
    def busy(self) -> int:
        """How many threads are reading."""
        return len(self._busy)

    def add(self, job: ReadingJob) -> None:
        """Read what a job has, when it is its owner's turn."""
        self._ready(job)
        for batch in self._busy:
            if job.owner not in batch.owners:
                self._take_back(batch)
        self._begin_soon()

    def stop(self) -> None:
        """Nothing more is read, and nobody told."""
        self._stopped = True
        for executor in self._idle:
            executor.shutdown(wait=False)

    def _ready(self, job: ReadingJob) -> None:
        self._turns.ready(job, job.owner)
        self._waiting += 1

    def _take_back(self, batch: _Batch) -> None:
        for job in batch.take_back():
            self._ready(job)
            self._turns.charge(job, job.owner, 0.0)

    def _begin_soon(self) -> None:
        if not self._due and len(self._busy) < self._count and len(self._turns):
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._due = False
        while len(self._busy) < self._count and not self._stopped:
            batch = self._next()
            if batch is None:
                return
            self._busy[batch] = None
            executor = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "palio-documents")
            reading = executor.submit(batch.read)
            if self._waited(reading, batch):
                self._ended(batch, executor, reading)
                return  # others are read when what these have said is written
            ended = partial(self._ended, batch, executor)
            reading.add_done_callback(partial(_soon, asyncio.get_running_loop(), ended))

    def _waited(self, reading: Future[None], batch: _Batch) -> bool:
        """Waits a moment for what is small (5). Returns whether it has been read."""
        began = perf_counter()
        if began >= self._looked + _LOOK_EVERY:
            worked = thread_time()
            self._is_busy = worked - self._worked > _BUSY * (began - self._looked)
            self._looked, self._worked = began, worked
        if self._is_busy or began < self._impatient_until or not batch.is_small:
            return False
        with suppress(TimeoutError):
            reading.result(_PATIENCE)
        ended = perf_counter()
        for owner, count in batch.owners.items():
            self._owe(owner, (ended - began) * count / batch.owners.total())
        if reading.done():
            return True
        self._impatient_until = ended + _IMPATIENT
        self._take_back(batch)
        return False

    def _next(self) -> _Batch | None:
        """Those whose turn it is, as many as one thread is given together; None if there is nothing to do.

        All threads that are idle get some of what takes long.
        """
        jobs: list[ReadingJob] = []
        left, most = _TOGETHER, _MOST_TOGETHER
        if perf_counter() < self._impatient_until:
            most = min(most, -(-self._waiting // (self._count - len(self._busy))))
        while left > 0 and len(jobs) < most:
            found = self._turns.next()
            if found is None:
                break
            jobs.append(found[0])
            left -= found[0].size
        self._waiting -= len(jobs)
        return _Batch(jobs) if jobs else None

    def _ended(self, batch: _Batch, executor: ThreadPoolExecutor, reading: Future[None]) -> None:
        del self._busy[batch]
        reading.result()
        if batch.is_worn or self._stopped:
            executor.shutdown(wait=False)
        else:
            self._idle.append(executor)
        if self._stopped:
            return
        with self._together():
            for job, took in batch.begun:
                if not job.is_over:
                    self._ready(job)
                self._turns.charge(job, job.owner, took)
                if job.is_over:
                    self._turns.leave(job, job.owner)
                    job.tell()
        self._begin_soon()


def _soon(
    loop: asyncio.AbstractEventLoop,
    work: Callable[[Future[None]], None],
    reading: Future[None],
) -> None:
    """Called in a thread: let the event loop go on with what came of it."""
    with suppress(RuntimeError):  # the loop is over
        loop.call_soon_threadsafe(work, reading)
