"""The publish queue: notifications leave in batches, in their order, and are kept until they are confirmed.

A notification becomes bytes where it is published. The bytes are collected and go out together, at the end of
the turn of the event loop or as soon as they are enough for a batch; while the connection is full, or there is
none, they wait, up to a limit. A batch is either of such that nobody waits for or of such that somebody does.
The latter are kept until the broker has confirmed them, and go out again, the same batch with the same ids, on
the next connection: a broker that has journaled them recognises them. The former are lost with the connection
if they had left already. Documents, which the broker reads first, have batches of their own, and their order
among all others.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from palio.client.connection import ClientConnection
from palio.client.errors import TooMuchUnsent, error_of
from palio.client.waiting import release
from palio.model.body import Body
from palio.model.errors import PalioError
from palio.model.plain import encode_plain
from palio.protocol.frames import BATCH_BYTES, FrameTooLarge, require_deliverable
from palio.protocol.requests import Published, Refused

# What a notification without an id takes beside its attributes and payload, at the most; and so does a batch.
OVERHEAD = 64
# The tags of the requests.
_PUBLISH, _DOCUMENTS = "publish", "publishdocuments"


class Confirmation(msgspec.Struct, frozen=True):
    """A broker has taken a notification; (origin, sequence) names it in the whole network.

    Where the broker keeps a journal, it is on disk.
    """

    origin: str
    sequence: int


class PublishStatistics(msgspec.Struct, frozen=True):
    """What became of what was published."""

    published: int
    confirmed: int
    unsent_bytes: int
    unconfirmed: int
    dropped: dict[str, int]


class _PublishBodies(msgspec.Struct, frozen=True, tag=_PUBLISH):
    """`Publish` of the protocol, with bodies."""

    notifications: list[Body]
    number: int = 0
    publisher: str = ""


class _PublishDocumentBodies(_PublishBodies, frozen=True, tag=_DOCUMENTS):
    """`PublishDocuments` of the protocol, with bodies."""


class Waiter:
    """Somebody who waits for confirmations; `missing` is how many are not there yet."""

    __slots__ = ("_single", "confirmations", "future", "missing")

    def __init__(self, count: int, future: asyncio.Future[Any], *, single: bool) -> None:
        self.future = future
        self.missing = count
        self._single = single
        self.confirmations: list[Confirmation] = []

    def confirm(self, origin: str, sequences: Sequence[int]) -> None:
        self.confirmations += [Confirmation(origin, sequence) for sequence in sequences]
        self.missing -= len(sequences)
        if not self.missing and not self.future.done():
            self.future.set_result(self.confirmations[0] if self._single else self.confirmations)

    def fail(self, problem: PalioError) -> None:
        if not self.future.done():
            self.future.set_exception(problem)


class PublishBatch(msgspec.Struct, eq=False):
    """Bodies that go out in one message, and who waits for how many of them, in their order."""

    bodies: list[Body] = []
    waiters: list[tuple[Waiter, int]] = []
    size: int = 0
    documents: bool = False  # whether the payloads are documents, which the broker reads

    def encoded(self, number: int, publisher: str) -> bytes:
        kind = _PublishDocumentBodies if self.documents else _PublishBodies
        return _encode(kind(self.bodies, number, publisher))

    def apart(self) -> list[PublishBatch]:
        """A batch for each that waits."""
        parts, at = [], 0
        for waiter, count in self.waiters:
            part = PublishBatch(documents=self.documents)
            part.bodies, part.waiters = self.bodies[at : at + count], [(waiter, count)]
            part.size = sum([len(_encode(body)) + OVERHEAD for body in part.bodies])
            parts.append(part)
            at += count
        return parts


_encode = msgspec.msgpack.Encoder().encode


class PublishQueue:
    """All publishes of a client that have not left, or are not confirmed."""

    def __init__(self, limit: int, publisher: str, number: Callable[[], int]) -> None:
        self._limit = limit
        self._publisher = publisher
        self._loop = asyncio.get_running_loop()
        self._connection: ClientConnection | None = None
        self._max_frame = 0
        self._too_old: PalioError | None = None  # why this broker cannot be given documents
        self._batch = PublishBatch()  # being collected
        self._scheduled = False
        self._waiting: deque[PublishBatch] = deque()  # complete, and not sent
        self._waiting_size = 0
        self._too_much = False
        self._unconfirmed: dict[int, PublishBatch] = {}
        self._number = number  # for the next request
        self._room: list[asyncio.Future[None]] = []
        self._done: list[asyncio.Future[None]] = []
        self._published = self._confirmed = 0
        self.dropped: Counter[str] = Counter()

    def statistics(self) -> PublishStatistics:
        return PublishStatistics(
            self._published + len(self._batch.bodies),
            self._confirmed,
            self._batch.size + self._waiting_size,
            sum(len(batch.bodies) for batch in self._unconfirmed.values()),
            dict(self.dropped),
        )

    # What is published

    def plain(self, content: dict[str, Any]) -> bool:
        """Publish by the short way; False for what is not plain and short. Raises `TooMuchUnsent`."""
        if self._too_much:
            raise TooMuchUnsent(self._limit)
        attributes = encode_plain(content)
        if attributes is None or len(attributes) >= BATCH_BYTES:
            return False
        batch = self._batch
        if batch.waiters or batch.documents:
            batch = self._cut()
        batch.bodies.append(Body(attributes))
        size = batch.size = batch.size + len(attributes) + OVERHEAD
        if not self._scheduled:
            self._schedule()
        if size >= BATCH_BYTES:
            self._cut()
        return True

    def nowait(self, body: Body) -> None:
        """Publish without waiting for anything. Raises `TooMuchUnsent`, `EventTooLarge` or `FrameTooLarge`."""
        size = self._measured(body)
        other = self._batch.waiters or self._batch.documents
        batch = self._cut() if other or size >= BATCH_BYTES else self._batch
        batch.bodies.append(body)
        batch.size += size
        self._schedule()
        if batch.size >= BATCH_BYTES:
            self._cut()

    def confirmed(
        self, bodies: Sequence[Body], *, single: bool, documents: bool = False
    ) -> asyncio.Future[Any]:
        """Publish what is to be confirmed, with a list of confirmations or (`single`) the only one.

        Raises `TooMuchUnsent`, `EventTooLarge` or `FrameTooLarge`.
        """
        sizes = [self._measured(body) for body in bodies]
        waiter = Waiter(len(bodies), self._loop.create_future(), single=single)
        if not bodies:
            waiter.future.set_result([])
        batch, count = self._batch, 0
        if batch.bodies and (not batch.waiters or batch.documents != documents):
            batch = self._cut()
        batch.documents = documents
        for body, size in zip(bodies, sizes, strict=True):
            if size >= BATCH_BYTES and batch.bodies:  # it goes by itself, so that no frame is too large
                if count:
                    batch.waiters.append((waiter, count))
                batch, count = self._next_of(documents), 0
            batch.bodies.append(body)
            batch.size += size
            count += 1
            if batch.size >= BATCH_BYTES:
                batch.waiters.append((waiter, count))
                batch, count = self._next_of(documents), 0
        if count:
            batch.waiters.append((waiter, count))
        self._schedule()
        return waiter.future

    def _next_of(self, documents: bool) -> PublishBatch:
        batch = self._cut()
        batch.documents = documents
        return batch

    def _measured(self, body: Body) -> int:
        size = len(body.attributes) + len(body.payload or b"") + OVERHEAD
        if size >= BATCH_BYTES or body.id is not None or body.unindexed:
            require_deliverable(body)
            size = len(_encode(body)) + OVERHEAD
        if self._max_frame and size + OVERHEAD > self._max_frame:
            raise FrameTooLarge(limit=self._max_frame, got=size)
        if self._too_much:
            raise TooMuchUnsent(self._limit)
        return size

    # Going out

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn_ended)

    def _turn_ended(self) -> None:
        self._scheduled = False
        self._cut()

    def _cut(self) -> PublishBatch:
        """Complete the batch that is being collected. Returns the next one."""
        if self._batch.bodies:
            self._waiting.append(self._batch)
            self._waiting_size += self._batch.size
            self._published += len(self._batch.bodies)
            self._batch = PublishBatch()
            self.send()
        return self._batch

    def send(self) -> None:
        """Send batches as far as the connection takes them (backpressure)."""
        connection = self._connection
        while self._waiting and connection is not None and not connection.paused:
            batch = self._waiting.popleft()
            self._waiting_size -= batch.size
            if batch.documents and self._too_old is not None:
                for waiter, _ in batch.waiters:
                    waiter.fail(self._too_old)
                continue
            number = 0
            if batch.waiters:
                number = self._number()
                self._unconfirmed[number] = batch
            connection.put(batch.encoded(number, self._publisher))
            connection.write()  # now, so that it is known whether there is room for more
        self._too_much = self._waiting_size > self._limit
        if not self._waiting:
            release(self._room)

    # Answers

    def published(self, answer: Published) -> None:
        """Handles the confirmation of a batch."""
        batch = self._unconfirmed.pop(answer.number, None)
        if batch is None:
            return
        self._confirmed += len(batch.bodies)
        first = answer.sequence
        sequences = answer.sequences or range(first, first + len(batch.bodies))
        at = 0
        for waiter, count in batch.waiters:
            waiter.confirm(answer.origin, sequences[at : at + count])
            at += count
        if not self._unconfirmed:
            release(self._done)

    def refused(self, answer: Refused) -> bool:
        """Handles a refusal; returns whether it is of a batch. Who share one are then tried one by one."""
        if answer.kind not in (_PUBLISH, _DOCUMENTS):
            return False
        batch = self._unconfirmed.pop(answer.number, None)
        if batch is None:
            self.dropped[answer.error] += 1
        elif len(batch.waiters) == 1:
            self.dropped[answer.error] += len(batch.bodies)
            batch.waiters[0][0].fail(error_of(answer))
        else:
            parts = batch.apart()
            self._waiting.extendleft(reversed(parts))
            self._waiting_size += sum(part.size for part in parts)
            self.send()
        if not self._unconfirmed:
            release(self._done)
        return True

    # Connections

    def connected(
        self, connection: ClientConnection, max_frame: int, too_old: PalioError | None = None
    ) -> None:
        """Handles a new connection: what was not confirmed is published again, before all else.

        `too_old` says why documents cannot be, if so.
        """
        self._too_old = too_old
        again, self._unconfirmed = list(self._unconfirmed.values()), {}
        self._waiting.extendleft(reversed(again))
        self._waiting_size += sum(batch.size for batch in again)
        self._connection = connection
        self._max_frame = max_frame
        self.send()

    def disconnected(self) -> None:
        """Handles a lost connection. What has left and nobody waits for may be lost."""
        self._connection = None

    def close(self, problem: PalioError) -> None:
        """Close the queue: whoever waits is told, the rest is dropped and counted."""
        self._cut()
        for batch in [*self._unconfirmed.values(), *self._waiting]:
            for waiter, _ in batch.waiters:
                waiter.fail(problem)
            if not batch.waiters:
                self.dropped["closed"] += len(batch.bodies)
        self._unconfirmed.clear()
        self._waiting.clear()
        self._waiting_size = 0
        release(self._room)
        release(self._done)

    # Waiting

    def flush(self) -> None:
        """Let out what can go out at once."""
        self._cut()

    async def sent(self) -> None:
        """Wait until all that was published has left."""
        self._cut()
        if self._waiting:
            self._room.append(room := self._loop.create_future())
            await room

    async def all_confirmed(self) -> None:
        """Wait until nobody waits for a confirmation."""
        await self.sent()
        if self._unconfirmed:
            self._done.append(done := self._loop.create_future())
            await done
