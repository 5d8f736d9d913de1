"""Surveys and replays: what the journals of a network hold of a filter, counted, or read page by page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import msgspec

from palio.client.errors import RequestTimeout
from palio.client.event import Event
from palio.client.reading import ReceivedReplayPage, ReceivedSurvey
from palio.client.waiting import release
from palio.model.errors import PalioError
from palio.protocol.durable.journals import GoOn


class Survey(msgspec.Struct, frozen=True):
    """How many events there are of a filter, and when.

    `histogram` counts them in equal parts of the time from `begin` to `end`; `samples` are the newest. Brokers
    in `missing` did not answer, or not completely.
    """

    count: int
    first: datetime | None
    last: datetime | None
    begin: datetime
    end: datetime
    histogram: tuple[int, ...]
    samples: tuple[Event, ...]
    missing: tuple[str, ...]


def survey_of(answer: ReceivedSurvey) -> Survey:
    """The result of a survey, for users."""
    begin, end = answer.span
    return Survey(
        answer.count,
        None if answer.first is None else datetime.fromtimestamp(answer.first, UTC),
        None if answer.last is None else datetime.fromtimestamp(answer.last, UTC),
        datetime.fromtimestamp(begin, UTC),
        datetime.fromtimestamp(end, UTC),
        answer.histogram,
        tuple(answer.samples),
        answer.missing,
    )


class Replay:
    """Events of the past: `async for event in client.replay(…)`, origin by origin, each in its order.

    The next page is asked for when the one before is read. At the end, `missing` names the brokers that did not
    answer, or not completely.
    """

    def __init__(self, number: int, say: Callable[[GoOn], object], timeout: float) -> None:
        self._number = number
        self._say = say
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._pages: list[ReceivedReplayPage] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._problem: PalioError | None = None
        self.given_up: Callable[[], object] = lambda: None  # called when no more is wanted, or came in time
        self.missing: tuple[str, ...] = ()

    async def __aiter__(self) -> AsyncIterator[Event]:
        try:
            while True:
                page = await self._next()
                for event in page.envelopes:
                    yield event
                if page.last:
                    self.missing = page.missing
                    return
                self._say(GoOn(self._number))
        finally:
            self.given_up()

    async def _next(self) -> ReceivedReplayPage:
        if not self._pages and self._problem is None:
            self._waiting.append(waiting := self._loop.create_future())
            try:
                async with asyncio.timeout(self._timeout):
                    await waiting
            except TimeoutError:
                raise RequestTimeout("replay", self._timeout) from None
        if not self._pages:
            assert self._problem is not None
            raise self._problem
        return self._pages.pop(0)

    def take(self, page: ReceivedReplayPage) -> bool:
        """Handles a page of the replay. Returns whether it is the last."""
        self._pages.append(page)
        release(self._waiting)
        return page.last

    def fail(self, problem: PalioError) -> None:
        """End the replay because of a problem: no more will come."""
        self._problem = problem
        release(self._waiting)
