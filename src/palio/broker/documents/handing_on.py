"""`HandedOnDocuments`: documents that were confirmed before their stages, and wait for them on disk.

    publish ──> stages that wait ──> record ──on disk──> confirmed
                                       └──> line of its principal ──> the other stages ──> published

1. A publish is confirmed when its record is on disk; the record goes when what was made of it is on disk, or
   what refused it is told. So a broker that ends in between does it again; what was published already is
   known by the ids that the record has.
2. Who publishes has one line: its documents are published in the order in which they were confirmed. Nothing
   passes one that has to be tried again, as an older version would become the current one.
3. Who publishes has the rights that it has when a document is published. A refusal then leaves a row in the
   operation log, and is published as a notice with the document: `palio.notice = "refused"`.
4. What waits is bounded in bytes (`documents.queue`), and what is in memory of it in lines (`AT_ONCE`).
5. Stages may end their broker, or never come to an end themselves. What may have been under way when a broker
   ended is tried again alone (`_turn`), and a record counts its attempts before they begin; after as many as
   `MOST_ATTEMPTS` it is refused by a notice, as in 3. What comes to an end at once is counted nowhere.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from palio.broker.gateway.problems import error_name, status_of
from palio.documents.errors import DocumentTooLarge
from palio.model.errors import PalioError
from palio.model.notification import Notification
from palio.model.values import Value
from palio.protocol import encoding
from palio.protocol.frames import MAX_EVENT
from palio.protocol.requests import PublishDocuments
from palio.routing.durable.effects import KeyedRecord

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.connection import BrokerConnection
    from palio.broker.gateway.visitor import Visitor

HANDED_ON: Final = "document.handed_on"  # the kind of the records
ATTEMPTS: Final = "document.attempts"  # how many were begun with one of these, where that is counted
BINDING: Final = "stages"  # how the operation log says where a document came from
# Lines that go on at a time: what is read for them is read by `workers` in any case (a guess).
AT_ONCE: Final = 4
MOST_ATTEMPTS: Final = 5  # that may come to no end (a guess)
_ENTRY: Final = 256  # bytes of what waits, beside the document itself
_PAGE: Final = 16
_WITHIN: Final = 3_600.0  # seconds for stages to come to an end; then they are asked again
_ALONE: Final = 10.0  # seconds for what may have ended a broker, before anything else of that kind goes on
_SOON, _LATER = 0.05, 5.0  # seconds until what could not be done is tried again
# By the status that HTTP has for an error: what is not the fault of the document.
_PASSING: Final = frozenset((429, 503, 504))


class StageQueueFull(PalioError):
    """As many bytes of documents wait for stages as may."""

    limit: int
    sentence = (
        "Documents of {limit:,} bytes wait for stages here, as many as may (`documents.queue`); publish "
        "it again in a moment."
    )


class StagesWithoutEnd(PalioError):
    """Stages that ended their broker, or came to no end, each time."""

    attempts: int
    sentence = (
        "Stages came to no end with it in {attempts} attempts, or the broker ended; look at the stages, then "
        "publish it again."
    )


class HandedOn(msgspec.Struct, frozen=True, array_like=True):
    """A record: whose documents these are, and what was published."""

    principal: str
    id: str
    message: bytes


_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(HandedOn).decode


def _with_id(notification: Notification, id: str) -> Notification:
    """The same with an id, if it has none."""
    body = notification.body
    return notification if body.id else Notification.of_body(msgspec.structs.replace(body, id=id))


class _WaitingMessage:
    """One message that waits. `written` is done when its record is on disk; with False if it never will be.

    `attempts` were begun with it and came to no end.
    """

    __slots__ = ("attempts", "key", "size", "written")

    def __init__(self, key: str, size: int, written: asyncio.Future[bool]) -> None:
        self.key = key
        self.size = size
        self.written = written
        self.attempts = 0


class _WaitingLine:
    """What waits of one principal, and who waits for that."""

    __slots__ = ("entries", "task", "waiting")

    def __init__(self) -> None:
        self.entries: deque[_WaitingMessage] = deque()
        self.waiting: deque[tuple[str, Callable[[], None]]] = deque()  # with the last entry before it
        self.task: asyncio.Task[None] | None = None


class HandedOnDocuments:
    """What waits of all principals. `start` goes on with what is on disk, `stop` leaves it there."""

    def __init__(self, broker: BrokerServer, limit: int) -> None:
        self._broker = broker
        self._limit = limit
        self._lines: dict[str, _WaitingLine] = {}
        self._connections: set[BrokerConnection] = set()
        self._last = 0
        self._done: list[KeyedRecord] = []  # what takes away records that are to go
        self._started = asyncio.Event()
        self._going = asyncio.Semaphore(AT_ONCE)
        self._alone = asyncio.Lock()  # for what may have ended a broker
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting = 0  # bytes

    async def read(self) -> None:
        """Reads what a broker before this one has left."""
        store = self._broker.store
        assert store is not None, "Settings want a journal for this."
        counted = await asyncio.to_thread(store.records, ATTEMPTS)
        attempts = {one.key: msgspec.msgpack.decode(one.value or b"\0", type=int) for one in counted}
        after: str | None = None
        there = asyncio.get_running_loop().create_future()
        there.set_result(True)
        while page := await asyncio.to_thread(store.records, HANDED_ON, after=after, limit=_PAGE):
            for one in page:
                assert one.value is not None
                principal = _read(one.value).principal
                entry = _WaitingMessage(one.key, len(one.value) + _ENTRY, there)
                # The first of a line may have been under way.
                entry.attempts = attempts.get(one.key, 0 if principal in self._lines else 1)
                self._add(principal, entry)
            after = page[-1].key
            self._last = int(after)

    async def start(self) -> None:
        """From now on, documents go on to their stages."""
        self._started.set()

    def stop(self) -> None:
        """Nothing more is handed on."""
        for task in [*self._tasks, *[line.task for line in self._lines.values() if line.task is not None]]:
            task.cancel()

    def owns(self, connection: BrokerConnection) -> bool:
        """Whether what comes on a connection has waited here."""
        return connection in self._connections

    def put(
        self, principal: str, message: PublishDocuments, confirm: Callable[[PalioError | None], None]
    ) -> None:
        """Let documents wait. `confirm` is called when they are on disk, or cannot be written.

        Raises `StageQueueFull`, and `DocumentTooLarge` for what could not be handed on.
        """
        id = uuid4().hex
        known = [_with_id(one, f"{id}/{place}") for place, one in enumerate(message.notifications, 1)]
        content = encoding.encode(msgspec.structs.replace(message, notifications=tuple(known)))
        if len(content) > MAX_EVENT:
            raise DocumentTooLarge("bytes that stages make of one message", MAX_EVENT)
        record = _encode(HandedOn(principal, id, content))
        size = len(record) + _ENTRY
        if self.waiting + size > self._limit:
            raise StageQueueFull(self._limit)
        self._last += 1
        entry = _WaitingMessage(f"{self._last:020}", size, asyncio.get_running_loop().create_future())
        self._add(principal, entry)
        self._begin(self._write(KeyedRecord(HANDED_ON, entry.key, record), entry, confirm))

    def after(self, principal: str, then: Callable[[], None]) -> None:
        """Calls this when all that waits of a principal now has been published or refused."""
        line = self._lines.get(principal)
        if line is None:
            then()
        else:
            line.waiting.append((line.entries[-1].key, then))

    # A line

    def _add(self, principal: str, entry: _WaitingMessage) -> None:
        self.waiting += entry.size
        line = self._lines.get(principal)
        if line is None:
            line = self._lines[principal] = _WaitingLine()
            line.task = asyncio.get_running_loop().create_task(self._serve(principal, line))
        line.entries.append(entry)

    async def _serve(self, principal: str, line: _WaitingLine) -> None:
        await self._started.wait()
        visit = _Visit(self._broker, principal, self._connections)
        try:
            while line.entries:
                entry = line.entries[0]
                if await entry.written:
                    await self._pass(entry, visit)
                    self._done.append(KeyedRecord(HANDED_ON, entry.key, None))
                    if entry.attempts:
                        self._done.append(KeyedRecord(ATTEMPTS, entry.key, None))
                        await self._clear()  # so what follows is the first of its line if it ends the broker
                    else:
                        self._begin(self._clear())
                line.entries.popleft()
                self.waiting -= entry.size
                while line.waiting and line.waiting[0][0] <= entry.key:
                    line.waiting.popleft()[1]()
            del self._lines[principal]
        finally:
            visit.end()

    async def _pass(self, entry: _WaitingMessage, visit: _Visit) -> None:
        """Publishes one message, however often that has to be tried; or tells that it was refused."""
        pause = _SOON
        while True:
            try:
                async with self._turn(entry):
                    await self._publish(entry, visit)
            except PalioError as problem:
                if error_name(problem) == "NoAnswer" and visit.is_asking:
                    entry.attempts += 1
                extra = {"principal": visit.principal, "reason": str(problem)}
                self._broker.log.warning("Documents wait for their stages for now.", extra=extra)
            except Exception:
                self._broker.log.exception("Documents could not be handed on to their stages.")
            else:
                return
            visit.end()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LATER)

    @asynccontextmanager
    async def _turn(self, entry: _WaitingMessage) -> AsyncIterator[None]:
        """Alone, if it may have ended a broker (5): for a while, as it may never come to an end either."""
        async with AsyncExitStack() as held:
            if entry.attempts:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ALONE):
                        await held.enter_async_context(self._alone)
            await held.enter_async_context(self._going)
            yield

    async def _publish(self, entry: _WaitingMessage, visit: _Visit) -> None:
        """Raises what is not the fault of the documents."""
        store = self._broker.store
        assert store is not None
        value = await asyncio.to_thread(store.record, HANDED_ON, entry.key)
        if value is None:
            return
        handed = _read(value)
        message = encoding.decode(handed.message)
        assert isinstance(message, PublishDocuments)
        if entry.attempts >= MOST_ATTEMPTS:
            endless = StagesWithoutEnd(entry.attempts)
            self._broker.operations.note_of(
                BINDING,
                handed.principal,
                message.publisher,
                "publishdocuments",
                size=len(handed.message),
                problem=endless,
            )
            self._refused(handed, message, endless)
            return
        if entry.attempts:
            count = KeyedRecord(ATTEMPTS, entry.key, msgspec.msgpack.encode(entry.attempts + 1))
            await self._broker.storing.keep(count)
        try:
            await visit.ask(message)
        except PalioError as problem:
            if status_of(problem) in _PASSING:
                raise
            self._refused(handed, message, problem)

    def _refused(self, handed: HandedOn, message: PublishDocuments, problem: PalioError) -> None:
        """Tells of documents that were confirmed, and are refused after all (3)."""
        extra = {"principal": handed.principal, "error": error_name(problem), "reason": str(problem)}
        self._broker.log.warning("A document was refused after it was confirmed.", extra=extra)
        told: dict[str, Value] = {
            "palio.principal": handed.principal,
            "palio.error": error_name(problem),
            "palio.why": str(problem),
            "palio.noticed": datetime.fromtimestamp(self._broker.now(), UTC),
        }
        for place, one in enumerate(message.notifications, 1):
            self._broker.notice("refused", told, f"{handed.id}/{place}", one.payload)

    # Records

    async def _write(
        self, record: KeyedRecord, entry: _WaitingMessage, confirm: Callable[[PalioError | None], None]
    ) -> None:
        try:
            await self._broker.storing.keep(record)
        except PalioError as problem:
            entry.written.set_result(False)
            confirm(problem)
        else:
            entry.written.set_result(True)
            confirm(None)

    async def _clear(self) -> None:
        """Takes away the records of what is done. Those that stay are done again, which is noticed (1)."""
        done, self._done = self._done, []
        if not done:
            return
        try:
            await self._broker.storing.keep(*done)
        except PalioError:  # there is no room: with the next one
            self._done += done

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Visit:
    """The session in which documents of one principal are published, as long as it lasts."""

    def __init__(self, broker: BrokerServer, principal: str, connections: set[BrokerConnection]) -> None:
        """`connections` has the one that there is meanwhile."""
        self.principal = principal
        self._broker = broker
        self._connections = connections
        self._visitor: Visitor | None = None

    @property
    def is_asking(self) -> bool:
        """Whether documents have got as far as their stages."""
        return self._visitor is not None

    async def ask(self, message: PublishDocuments) -> None:
        """Raises what speaks against the documents, or against the session."""
        from palio.broker.gateway.visitor import Visitor  # noqa: PLC0415 (only where stages do not wait)

        if self._visitor is None:
            self._visitor = await Visitor.enter(self._broker, BINDING, acting_for=self.principal)
            self._visitor.connection.binding = BINDING
            self._connections.add(self._visitor.connection)
        await self._visitor.ask(message, _WITHIN)

    def end(self) -> None:
        if self._visitor is not None:
            self._connections.discard(self._visitor.connection)
            self._visitor.leave("Nothing more is handed on.")
            self._visitor = None
