"""`Subscription`: events that wait for whoever iterates over them, never more than a limit.

A transient subscription gets what it selects while it lives, at most once. If its reader is slow, events wait
here up to `limit`; then the newest or the oldest are dropped and counted, or the subscription ends with
`SlowConsumer`. After a connection was lost it is there again without further ado; what was published meanwhile
is not. `durable` has those that lose nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import msgspec

from palio.client.errors import ClientClosed, EventsLost, RequestTimeout, SlowConsumer, SubscriptionEnded
from palio.client.event import Event
from palio.client.waiting import release
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.routing.messages import Release, Subscribe

if TYPE_CHECKING:
    from palio.client.client import Client

WhenFull: TypeAlias = Literal["drop-newest", "drop-oldest", "error"]
Ready: TypeAlias = Literal["broker", "network"]

# Events that may wait for a reader: some seconds of a fast stream, some ten megabytes of ordinary events.
DEFAULT_LIMIT = 65_536


class SubscriptionStatistics(msgspec.Struct, frozen=True):
    """What became of the events of a subscription. `dropped` counts by reason."""

    received: int
    handed_out: int
    waiting: int
    limit: int
    dropped: dict[str, int]
    lost_by_broker: int


class Subscription:
    """Events that a filter selects: `async for event in subscription`."""

    def __init__(self, client: Client, name: str, filter: Filter, limit: int, when_full: WhenFull) -> None:
        self._client = client
        self.name = name
        self.filter = filter
        self._limit = limit
        self._when_full = when_full
        self._queue: deque[Event] = deque()
        self._readers: list[asyncio.Future[None]] = []
        self._drained: list[asyncio.Future[None]] = []
        self._error: PalioError | None = None  # raised when the queue is empty
        self._over = False
        self._received = self._handed_out = 0
        self._dropped: Counter[str] = Counter()
        self._lost = 0
        self._ready = client.loop.create_future()

    def statistics(self) -> SubscriptionStatistics:
        return SubscriptionStatistics(
            self._received, self._handed_out, len(self._queue), self._limit, dict(self._dropped), self._lost
        )

    # For its user

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        queue = self._queue
        while not queue:
            await self._wait()
            if self._over and not queue:
                raise StopAsyncIteration
        return self._hand_out()

    async def next(self, timeout: float | None = None) -> Event:
        """The next event. Raises `RequestTimeout`, `SubscriptionEnded`, or what `async for` would."""
        if not self._queue:
            try:
                async with asyncio.timeout(timeout):
                    while not self._queue:
                        await self._wait()
                        if self._over and not self._queue:
                            raise SubscriptionEnded(self.name, "It was unsubscribed.")
            except TimeoutError as problem:
                if isinstance(problem, PalioError) or timeout is None:
                    raise
                raise RequestTimeout("next", timeout) from None
        return self._hand_out()

    def _hand_out(self) -> Event:
        event = self._queue.popleft()
        event._subscription = self
        self._handed_out += 1
        if self._drained and not self._queue:
            release(self._drained)
        return event

    async def _wait(self) -> None:
        """Until there is an event, or there will be none."""
        if self._error is not None:
            raise self._error
        if not self._over:
            self._readers.append(reader := self._client.loop.create_future())
            await reader

    async def ready(self, timeout: float | None = None) -> None:
        """Wait until the whole network knows of it."""
        await self._client.wait_for(f"ready {self.name}", asyncio.shield(self._ready), timeout)

    async def unsubscribe(self) -> None:
        """End it. Iterating over it ends when what has come is read."""
        if self._end():
            await self._client.ask(Release(self.name), f"release {self.name}", on_loss="done")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._client.is_over:
            await self.unsubscribe()

    # For its client

    def request(self) -> Any:
        """What asks a broker for it, on each connection anew."""
        return Subscribe(self.name, self.filter, not self._ready.done())

    @property
    def subject(self) -> str:
        return f"subscribe {self.name}"

    def take(self, events: list[Event]) -> None:
        """Events have come."""
        if self._over:
            return
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
            self._gone(drop())
        self._dropped[self._when_full] += excess
        if self._when_full == "error":
            self._give_up(SlowConsumer(str(self.filter), self._limit))

    def _give_up(self, problem: PalioError) -> None:
        self._client.say(Release(self.name))
        self.fail(problem)

    def _gone(self, event: Event) -> None:
        """An event that nobody will see."""
        if event._request is not None:
            self._respond(event._request, None)

    def lost(self, count: int, reason: str) -> None:
        """The broker has dropped events for this client, of whichever subscription."""
        self._lost += count
        if self._when_full == "error":
            self._give_up(EventsLost(count, reason))

    def disconnected(self) -> None:
        """The connection is lost; `request` is said on the next one."""

    def flush(self) -> None:
        """Say what is still to be said: the client is about to close."""

    async def drain(self) -> None:
        """Take nothing more, and wait until what has come is dealt with."""
        if self._end():
            self._client.say(Release(self.name))
        while self._queue:
            self._drained.append(drained := self._client.loop.create_future())
            await drained

    def closed(self, problem: ClientClosed) -> None:
        """The client is closed: what has come can still be read, and nothing more."""
        if self._client.is_closed_in_order:
            self._end()
        else:
            self.fail(problem)

    def became_ready(self) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    def fail(self, problem: PalioError) -> None:
        """It cannot go on: that is told when what has come is read."""
        self._error = problem
        if not self._ready.done():
            self._ready.set_exception(problem)
            self._ready.exception()
        self._end()

    def _end(self) -> bool:
        """Returns whether it had not ended before."""
        before, self._over = self._over, True
        self._client.forget(self)
        if not self._ready.done():
            self._ready.cancel()
        release(self._readers)
        return not before

    # For its events

    async def _acknowledge(self, event: Event, confirmed: bool) -> None:
        """There is nothing to acknowledge."""

    def _reject(self, event: Event) -> None:
        """There is nothing to reject."""

    def _respond(self, request: str, content: Any) -> None:
        self._client.respond(request, content)
