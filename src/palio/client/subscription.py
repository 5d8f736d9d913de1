"""`Subscription`: events that wait for whoever iterates over them, never more than a limit.

A transient subscription gets what it selects while it lives, at most once. If its reader is slow, events wait
here up to `limit`; then the newest or the oldest are dropped and counted, or the subscription ends with
`SlowConsumer`. After a connection was lost it is there again without further ado; what was published meanwhile
is not. `durable` has those that lose nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias

import msgspec

from palio.client.decoding import Decoding
from palio.client.errors import (
    ClientClosed,
    EventsLost,
    NoEvent,
    SlowConsumer,
    SubscriptionEnded,
    UndecodableEvent,
)
from palio.client.event import Content_co, Event, Rejection
from palio.client.session_handles import SessionHandle
from palio.client.waiting import release
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.requests import Subscribe

if TYPE_CHECKING:
    from palio.client.session import ClientSession

WhenFull: TypeAlias = Literal["drop-newest", "drop-oldest", "error"]

# Events that may wait for a reader: some seconds of a fast stream, some ten megabytes of ordinary events.
DEFAULT_LIMIT = 65_536


class SubscriptionStatistics(msgspec.Struct, frozen=True):
    """What became of the events of a subscription. `dropped` counts by reason.

    `lost_by_broker` are events that the broker dropped because this client was slow, of any subscription.
    """

    received: int
    handed_out: int
    waiting: int
    limit: int
    dropped: dict[str, int]
    lost_by_broker: int


class Subscription(SessionHandle, Generic[Content_co]):
    """Events that a filter selects: `async for event in subscription`.

    With a type to decode them into, each has an object of it as its `value`. One that cannot be decoded is an
    `UndecodableEvent`, raised where it would have come; whoever goes on gets the next.
    """

    def __init__(
        self,
        session: ClientSession,
        name: str,
        filter: Filter,
        limit: int,
        when_full: WhenFull,
        *,
        into: Decoding[Any] | None = None,
    ) -> None:
        super().__init__(session, name)
        self._into = into
        self.filter = filter
        self._limit = limit
        self._when_full = when_full
        self._queue: deque[Event[Content_co]] = deque()
        self._readers: list[asyncio.Future[None]] = []
        self._drained: list[asyncio.Future[None]] = []
        self._error: PalioError | None = None  # raised when the queue is empty
        self._received = self._handed_out = 0
        self._dropped: Counter[str] = Counter()
        self._lost = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {str(self.filter)!r}>"

    def statistics(self) -> SubscriptionStatistics:
        """What became of its events."""
        return SubscriptionStatistics(
            self._received, self._handed_out, len(self._queue), self._limit, dict(self._dropped), self._lost
        )

    # For its user

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[Content_co]:
        while True:
            while not self._queue:
                if not await self._wait():
                    raise StopAsyncIteration
            event = self._hand_out()
            if event is not None:
                return event

    async def next(self, timeout: float | None = None) -> Event[Content_co]:
        """The next event. Raises `NoEvent`, `SubscriptionEnded`, or what `async for` would."""
        try:
            async with asyncio.timeout(timeout):
                return await self.__anext__()
        except StopAsyncIteration:
            raise SubscriptionEnded(self.name, "It was unsubscribed, or its client closed.") from None
        except TimeoutError as problem:
            if isinstance(problem, PalioError) or timeout is None:
                raise
            raise NoEvent(str(self.filter), timeout) from None

    async def take_all(self, most: int, timeout: float | None) -> list[Event[Content_co]]:
        """The next events, at least one and not more than so many. Raises as `next` does."""
        events = [await self.next(timeout)]
        while self._queue and len(events) < most:
            if self._into is not None and self._problem_of(self._queue[0]) is not None:
                break  # what has been taken is not to be lost by what is raised
            event = self._hand_out()
            if event is not None:
                events.append(event)
        return events

    async def put_back(self, events: Iterable[Event[Content_co]]) -> None:
        """Put back events that were taken and nobody has looked at."""
        before = len(self._queue)
        self._queue.extendleft(reversed([*events]))
        self._handed_out -= len(self._queue) - before

    def _hand_out(self) -> Event[Content_co] | None:
        """The next event. None if it cannot be decoded, and that is seen to."""
        event = self._queue.popleft()
        event._subscription = self
        self._handed_out += 1
        if self._drained and not self._queue:
            release(self._drained)
        if self._into is not None and (problem := self._problem_of(event)) is not None:
            self._handed_out -= 1
            self._dropped["undecodable"] += 1
            self._undecodable(event, problem)
            return None
        return event

    def _problem_of(self, event: Event[Content_co]) -> UndecodableEvent | None:
        """Decode an event. Returns why that is not possible."""
        if self._into is not None and event._value is None:
            try:
                event._value = self._into.decode(event)
            except UndecodableEvent as problem:
                return problem
        return None

    def _undecodable(self, event: Event[Content_co], problem: UndecodableEvent) -> None:
        """Handles an event that nobody can deal with."""
        event._fail(problem)
        raise problem

    async def _wait(self) -> bool:
        """Wait for an event. False if there will be none; raises why, if that is not in order."""
        if self._error is not None:
            raise self._error
        if self._over:
            return False
        self._readers.append(reader := self._session.loop.create_future())
        await reader
        return True

    async def unsubscribe(self) -> None:
        """End it. Iterating over it ends when what has come is read."""
        await self.release()

    # For its session

    def request(self) -> Any:
        return Subscribe(self.name, self.filter, not self._ready.done())

    def take(self, events: list[Event[Any]]) -> None:
        """Handles events that have come; the policy decides on what is beyond the limit."""
        queue = self._queue
        queue.extend(events)
        self._received += len(events)
        if len(queue) > self._limit:
            self._make_room()
        if self._readers:
            release(self._readers)

    def _make_room(self) -> None:
        excess = len(self._queue) - self._limit
        drop = self._queue.popleft if self._when_full == "drop-oldest" else self._queue.pop
        for _ in range(excess):
            event = drop()
            if event._question is not None:
                event._question.reply(None)
        self._dropped[self._when_full] += excess
        if self._when_full == "error":
            self._give_up(SlowConsumer(str(self.filter), self._limit))

    def _give_up(self, problem: PalioError) -> None:
        self._let_go()
        self.fail(problem)

    def lost(self, count: int, reason: str) -> None:
        """Handles news that the broker has dropped events for this client, of whichever subscription."""
        self._lost += count
        if self._when_full == "error":
            self._give_up(EventsLost(count, reason))

    async def drain(self) -> None:
        if self._end():
            self._let_go()
        if self._queue:
            self._drained.append(drained := self._session.loop.create_future())
            await drained

    def fail(self, problem: PalioError) -> None:
        self._error = problem  # which is told when what has come is read
        super().fail(problem)

    def closed(self, problem: ClientClosed) -> None:
        if self._session.ended_in_order:
            self._end()
        else:
            self.fail(problem)

    def _end(self) -> bool:
        ended = super()._end()
        release(self._readers)
        return ended

    # For its events

    def _acknowledge(self, event: Event[Any], *, confirmed: bool = False) -> asyncio.Future[None] | None:
        """There is nothing to acknowledge. Otherwise, if that is to be `confirmed`: when it will be on disk."""
        return None

    def _reject(self, event: Event[Any], rejection: Rejection = Rejection()) -> None:  # noqa: B008 (immutable)
        """There is nothing to reject."""
