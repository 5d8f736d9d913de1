"""`StoreBridge`: between the event loop of a broker and its store, which has threads of its own.

Effects go over as they come; completions come back into the loop, in their order, and are handled when it is
their turn. While much waits for the disk, clients are not read from (backpressure): so a fast publisher cannot
fill the memory. A store that cannot go on, or says what the broker cannot handle, is the end of the broker:
what is on disk and what is in memory may differ then, and only a new start makes that good.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from palio.broker.scheduling import EVERYBODY, Scheduler
from palio.broker.unwritten import HandledWrites, Unwritten
from palio.model.errors import PalioError
from palio.routing.clients import NoJournal
from palio.routing.durable.effects import Append, KeyedRecord, LoggedOperation, StoreEffect
from palio.routing.occurrences import Failed, Found, StoreMessage

if TYPE_CHECKING:
    from palio.broker.documents.completing import DocumentCompletions
    from palio.store import Store


_UNREAD = "Documents in it could not be read; this is the broker's mistake."
Rows: TypeAlias = tuple[LoggedOperation, ...]

# How many times as much as clients the completions of the store may have done: everybody waits for them.
STORE_WEIGHT = 16.0


class NotKept(PalioError):
    """Keyed records that could not be written."""

    reason: str
    sentence = "Records could not be written: {reason}"


class StoreBridge:
    """`read` is told whether clients may be read from (backpressure): not while `limit` bytes wait.

    `failed` is done when the broker cannot go on, with the reason.
    """

    owner = EVERYBODY
    weight = STORE_WEIGHT

    def __init__(
        self,
        limit: int,
        read: Callable[[bool], None],
        scheduler: Scheduler,
        log: logging.Logger,
        completions: DocumentCompletions | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._completions: deque[StoreMessage] = deque()
        self._completing: HandledWrites | None = None  # whose completions are being handled
        self._unwritten = Unwritten(scheduler)
        self._gathered: list[tuple[Sequence[StoreEffect], Hashable]] | None = None
        scheduler.elsewhere = self._unwritten.owners
        self.store: Store | None = None
        self.failed: asyncio.Future[str] | None = None
        self._limit = limit
        self._read = read
        self._reading = True
        self.log = log
        self._loop: asyncio.AbstractEventLoop
        self._complete: Callable[[Iterable[StoreMessage]], None]
        self._keeping: dict[int, asyncio.Future[StoreMessage]] = {}  # by token
        self._logged: dict[int, Callable[[StoreMessage], None]] = {}  # by token
        self._last_token = 0  # negative: those of the router are positive
        self._closing = False
        self.completions = completions
        self._completing_documents: set[asyncio.Task[None]] = set()

    def begin(self, complete: Callable[[Iterable[StoreMessage]], None]) -> None:
        """Begin to hand completions of the store to `complete`, in this event loop, some at a time."""
        self._loop = asyncio.get_running_loop()
        self._complete = complete
        self.failed = self._loop.create_future()

    async def close(self) -> None:
        """Let the store carry out all that it was given, and close it.

        What it says from now on is not handled: what follows from it could not be written any more. The next
        start finds what is on disk, as after a crash.
        """
        self._closing = True
        if self.store is not None:
            await asyncio.to_thread(self.store.close)

    # There

    def submit(self, effects: Sequence[StoreEffect], owner: Hashable = None) -> None:
        """Let the store carry out effects of what somebody asked for; or of what a completion led to."""
        assert self.store is not None, "Without a store, the router has no effects on it."
        if self._gathered is not None and self._completing is None:
            self._gathered.append((effects, owner))
            return
        size = self.store.submit(effects)
        if self._completing is not None:
            self._unwritten.add(self._completing.causes(effects, size), effects, size)
        elif owner is not None:
            self._unwritten.add({owner: size}, effects, size)
        self._throttle()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What is submitted within is handed over at its end: so the writer, which has to share the interpreter
        with who submits, begins when all of it is there.
        """
        gathered = self._gathered = []
        try:
            yield
        finally:
            self._gathered = None
            for effects, owner in gathered:
                self.submit(effects, owner)

    async def keep(self, *records: KeyedRecord) -> None:
        """Write keyed records, all or nothing; they are on disk when this returns.

        Raises `NoJournal` at a broker that keeps nothing, `NotKept` if there is no room or the store is broken.
        """
        if self.store is None:
            raise NoJournal
        self._last_token -= 1
        token = self._last_token
        future = self._keeping[token] = self._loop.create_future()
        self.submit((Append(token, (), "", records),))
        answer = await future
        if isinstance(answer, Failed):
            raise NotKept(answer.reason)

    def logging(self, rows: Rows, written: Callable[[Rows, StoreMessage], None]) -> Append:
        """An effect that writes rows of the operation log; to be submitted. `written` is told of its end."""
        self._last_token -= 1
        self._logged[self._last_token] = partial(written, rows)
        return Append(self._last_token, (), "", (), rows)

    # And back

    def completed(self, messages: Sequence[StoreMessage]) -> None:
        """Handles completions of the store. May be called in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is interested any more
            self._loop.call_soon_threadsafe(self.take, messages)

    def broken(self, problem: PalioError) -> None:
        """Handles that the store cannot go on. May be called in any thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._fail, str(problem))

    def take(self, messages: Sequence[StoreMessage]) -> None:
        """Handles completions of the store, in the thread of the event loop."""
        if self._keeping or self._logged:
            messages = [message for message in messages if not self._is_kept(message)]
        if self.completions is not None and self.completions.is_under_way:
            messages = [message for message in messages if not self._is_completed_later(message)]
        if not self._closing and messages:
            self._completions.extend(messages)
            self._scheduler.ready(self)

    def take_turn(self, until: float) -> bool:
        """Handles completions until about that moment."""
        completions, unwritten = self._completions, self._unwritten
        began = perf_counter()
        try:
            while completions and not self._closing:
                handled = self._completing = unwritten.handled()
                self._complete(self._run(handled, until))
                self._completing = None
                owners = handled.owners
                for token in handled.tokens:
                    unwritten.written(token)
                ended = perf_counter()
                each = (ended - began) / max(1, owners.total())
                for owner, count in owners.items():
                    self._scheduler.owe(owner, each * count)
                if ended >= until:
                    break
                began = ended
        except Exception:
            self.log.exception("The broker could not handle what its store says.")
            self._fail("The broker could not handle what its store says; this is its mistake.")
        self._throttle()
        return bool(completions) and not self._closing

    def _run(self, handled: HandledWrites, until: float) -> Iterator[StoreMessage]:
        """Completions, until about that moment; each is noted when it is its turn."""
        completions = self._completions
        while completions:
            message = completions.popleft()
            handled.add(message.token)
            yield message
            if perf_counter() >= until:
                return

    def _is_completed_later(self, message: Any) -> bool:
        """Whether documents in what was found have to be completed before it is handled."""
        assert self.completions is not None
        if not self.completions.is_meant(message):
            return False
        task = self._loop.create_task(self._complete_documents(message))
        self._completing_documents.add(task)
        task.add_done_callback(self._completing_documents.discard)
        return True

    async def _complete_documents(self, message: Found) -> None:
        assert self.completions is not None
        completed: StoreMessage
        try:
            completed = await self.completions.found(message)
        except Exception:
            self.log.exception("Documents of the journal could not be completed.")
            completed = Failed(message.token, _UNREAD)
        if not self._closing:
            self._completions.append(completed)
            self._scheduler.ready(self)

    def _is_kept(self, message: Any) -> bool:
        if (logged := self._logged.pop(message.token, None)) is not None:
            logged(message)
            return True
        future = self._keeping.pop(message.token, None)
        if future is not None and not future.done():
            future.set_result(message)
        return future is not None

    def _fail(self, reason: str) -> None:
        self.log.critical("The store cannot go on.", extra={"reason": reason})
        if self.failed is not None and not self.failed.done():
            self.failed.set_result(reason)
        for future in self._keeping.values():
            if not future.done():
                future.set_exception(NotKept(reason))

    def _throttle(self) -> None:
        """Backpressure: clients are not read from while too much waits for the disk."""
        assert self.store is not None
        queued = self.store.queued_bytes
        reading = queued < self._limit if self._reading else queued < self._limit // 2
        if reading != self._reading:
            self._reading = reading
            self._read(reading)
