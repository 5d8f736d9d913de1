"""Replies to a request, and watches: whether anybody is interested."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from palio.client.errors import ConnectionLost, ReplierFailed, RequestTimeout
from palio.client.reading import ReceivedReply
from palio.client.session_handles import SessionHandle
from palio.client.waiting import release
from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.notification import Notification
from palio.protocol.inquiries import Watch as WatchRequest

if TYPE_CHECKING:
    from palio.client.session import ClientSession

# The broker tells how many replies are missing when the time is over. So long after that, it is given up, too.
GRACE = 5.0
# Seconds before a request that has met a change of the network is tried again, or half of what is left of its
# time: a network that repairs itself has new routes within a second, as a rule (docs/overlay.md).
PAUSE = 1.0

Ask: TypeAlias = Callable[[float], None]  # asks again, for so many seconds


class Replies:
    """Replies to a request, as they come: `async for reply in client.request(…)`.

    Or all at once: `replies = await client.request(…)`, which is then like a list. `complete` says that
    everybody who took the request has replied, or said that there is nothing to say; `missing` counts those who
    did neither in time. A request that reaches nobody is complete and empty at once. `problems` says why those
    could not reply who have failed; if nobody has replied, that is raised, as `ReplierFailed`. `tries` says how
    often it was asked.

    With `again`, replies that are known to be missing before the time is over, or a lost connection, lead to a
    second try. Replies are those of the try that had more of them, the second if both had as many; so whoever
    has replied twice is there once, and iterating gives none before it is over.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        expect: int | None,
        timeout: float,
        again: Ask | None = None,
    ) -> None:
        self._loop = loop
        self._expect = expect
        self._timeout = timeout
        self._until = loop.time() + timeout + GRACE
        self._replies: list[Notification] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._problem: PalioError | None = None
        self._over = False
        self.given_up: Callable[[], object] = lambda: None  # called when nothing came in time
        self.complete = False
        self.missing = 0
        self.problems: list[str] = []
        self.tries = 1
        self._again = again
        self._waits_for_end = again is not None  # before it gives any
        self._first: tuple[list[Notification], int, list[str]] | None = None  # what the first of two tries gave

    def __await__(self) -> Generator[Any, None, Self]:
        return self._all().__await__()

    async def _all(self) -> Self:
        while not self._over:
            await self._wait()
        self._raise()
        return self

    async def __aiter__(self) -> AsyncIterator[Notification]:
        at = 0
        while True:
            while at < len(self._replies) and (self._over or not self._waits_for_end):
                yield self._replies[at]
                at += 1
            if self._over:
                break
            await self._wait()
        self._raise()

    def __len__(self) -> int:
        return len(self._replies)

    def __getitem__(self, index: int) -> Notification:
        return self._replies[index]

    def __iter__(self) -> Iterator[Notification]:
        return iter(self._replies)

    def __bool__(self) -> bool:
        return bool(self._replies)

    def __repr__(self) -> str:
        return f"<Replies {self._replies!r}, complete: {self.complete}, missing: {self.missing}>"

    async def _wait(self) -> None:
        self._waiting.append(waiting := self._loop.create_future())
        try:
            async with asyncio.timeout_at(self._until):
                await waiting
        except TimeoutError:
            self.fail(RequestTimeout("request", self._timeout))
            self.given_up()

    def _raise(self) -> None:
        if self._problem is not None:
            raise self._problem
        if self.problems and not self._replies:
            raise ReplierFailed(tuple(self.problems))

    def take(self, answer: ReceivedReply) -> bool:
        """Handles a reply, or the last word. Returns whether it is over."""
        if answer.notification is not None:
            self._replies.append(Notification.of_body(answer.notification))
        if answer.problem is not None:
            self.problems.append(answer.problem)
        if answer.last:
            self.complete, self.missing = answer.missing == 0, answer.missing
        enough = self._expect is not None and len(self._replies) >= self._expect
        if answer.last and not enough and self.missing and self._tries_again():
            return True
        self._over = answer.last or enough
        if self._over and self._first is not None and len(self._first[0]) > len(self._replies):
            self._as_at_first()
        release(self._waiting)
        return self._over

    def fail(self, problem: PalioError) -> None:
        """End the request because of a problem: no more replies will come."""
        if isinstance(problem, ConnectionLost) and self._tries_again():
            return
        self._over = True
        if self._first is not None and self._first[1]:  # the first try has an answer
            self._as_at_first()
        else:
            self._problem = problem
        release(self._waiting)

    # The second try

    def _tries_again(self) -> bool:
        """Whether there will be another try; it begins after a pause."""
        left = self._until - GRACE - self._loop.time()
        ask, self._again = self._again, None
        if ask is None or left <= 0 or self._over:
            return False
        self._first = self._replies, self.missing, self.problems
        self._loop.call_later(min(PAUSE, left / 2), self._try, ask)
        return True

    def _try(self, ask: Ask) -> None:
        if self._over:
            return
        self.tries, self.missing, self._replies, self.problems = 2, 0, [], []
        try:
            ask(self._until - GRACE - self._loop.time())
        except PalioError as problem:
            self.fail(problem)

    def _as_at_first(self) -> None:
        assert self._first is not None
        self._replies, self.missing, self.problems = self._first
        self.complete = False


class Watch(SessionHandle):
    """Whether anybody wants what an advertisement describes: `watch.wanted`, or `async for wanted in watch`.

    Iterating gives the answer of now first, and then each time that it has changed since.
    """

    def __init__(self, session: ClientSession, name: str, advertisement: Advertisement) -> None:
        super().__init__(session, name)
        self.advertisement = advertisement
        self.wanted = False
        self._problem: PalioError | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def request(self) -> Any:
        return WatchRequest(self.name, self.advertisement)

    def told(self, wanted: bool) -> None:
        """Handles news of the broker: whether somebody is interested."""
        self.wanted = wanted
        self.became_ready()
        release(self._waiting)

    async def __aiter__(self) -> AsyncIterator[bool]:
        await self.ready()
        given: bool | None = None
        while not self._over:
            if self.wanted is not given:
                given = self.wanted
                yield given
            else:
                self._waiting.append(waiting := self._session.loop.create_future())
                await waiting
        if self._problem is not None and not self._session.ended_in_order:
            raise self._problem

    def fail(self, problem: PalioError) -> None:
        self._problem = problem
        super().fail(problem)

    def _end(self) -> bool:
        ended = super()._end()
        release(self._waiting)
        return ended

    async def stop(self) -> None:
        """End the watch."""
        await self.release()
