"""`RetroactiveSubscription`: first the current documents that a filter selects, then what is published.

1. Documents come page by page, as they are read, and before anything else. Then the durable subscription goes
   on.
2. The position up to which documents come was taken when the subscription was there already
   (`documents.position` at the broker). What comes by it of documents up to there is passed over: it was among
   the documents, or there is a newer version.
3. Whoever is interrupted before all documents are acknowledged begins with them again.
4. A client that comes back to another broker meanwhile begins with the documents that are known there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from palio.client.decoding import Decoding
from palio.client.durable import DurableSubscription
from palio.client.event import Content_co, Event, Rejection
from palio.client.knowledge import pages
from palio.model.errors import PalioError
from palio.model.filter import Filter

if TYPE_CHECKING:
    from palio.client.session import ClientSession
    from palio.protocol.durable.subscriptions import Attach

_DOCUMENT: Final = -1  # in the place of a connection: it came by none
_FAMILY, _KEY = "xml.family", "xml.key"


class DocumentsBeginning(msgspec.Struct, frozen=True):
    """Up to where documents came: of a broker's own, and of others those that it keeps."""

    broker: str
    position: dict[str, int]
    keep: Filter | None

    def has(self, event: Event[Any]) -> bool:
        """Whether an event is a version of a document that is not newer."""
        if event.sequence > self.position.get(event.origin, -1) or _FAMILY not in event or _KEY not in event:
            return False
        return event.origin == self.broker or (self.keep is not None and self.keep.matches(event.notification))


class RetroactiveSubscription(DurableSubscription[Content_co]):
    """A durable subscription that begins with the current documents."""

    def __init__(
        self, session: ClientSession, attach: Attach, *, temporary: bool, into: Decoding[Any] | None = None
    ) -> None:
        super().__init__(session, attach, temporary=temporary, into=into)
        self._beginnings: list[DocumentsBeginning] = []
        self._documents: AsyncIterator[list[Event[Any]]] | None = None
        self._page: deque[Event[Any]] = deque()
        self._open_documents: dict[tuple[str, int], None] = {}  # handed out and not acknowledged
        self._turn = asyncio.Lock()
        self._telling: asyncio.Task[None] | None = None

    async def ask(self, timeout: float | None, *, ready: bool) -> None:
        pending = True
        if not self.is_temporary:
            answer = await self._session.invoke("documents.begin", {"name": self.name}, timeout=timeout)
            pending = answer["pending"]
        await super().ask(timeout, ready=ready)
        if pending or self.created:
            try:
                await self._begin(timeout)
            except BaseException:
                if self._end():
                    self._let_go()
                raise

    async def _begin(self, timeout: float | None = None) -> None:
        """Begin with the documents that the broker knows at this moment."""
        session = self._session
        seconds = session.options.request_timeout if timeout is None else timeout
        asked = {"name": self.name, "wait": min(60.0, max(0.0, seconds * 0.8))}
        found = await session.invoke("documents.position", asked, on_loss="again", timeout=timeout)
        keep = None if found["keep"] is None else Filter.parse(found["keep"])
        self._beginnings.append(DocumentsBeginning(found["broker"], found["position"], keep))
        text = self.filter.source or str(self.filter) or "true"
        asked = {"filter": text, "upto": found["position"]}
        self._documents = pages(session, asked, timeout)
        self._page.clear()

    # What comes

    async def __anext__(self) -> Event[Content_co]:
        if self._documents is not None or self._page:
            async with self._turn:
                event = await self._next_document()
            if event is not None:
                return event
        return await super().__anext__()

    async def _next_document(self) -> Event[Content_co] | None:
        while not self._over and self._error is None:
            if self._page:
                event = self._page.popleft()
                event._subscription, event._connection = self, _DOCUMENT
                self._received += 1
                self._handed_out += 1
                self._open_documents[event.origin, event.sequence] = None
                if self._into is not None and (problem := self._problem_of(event)) is not None:
                    event._fail(problem)
                    raise problem
                return event
            if self._documents is None:
                return None
            if self._session.broker != self._beginnings[-1].broker:
                await self._begin()
            try:
                self._page.extend(await anext(self._documents))
            except StopAsyncIteration:
                self._documents = None
                self._check_documents()
        return None

    def _hand_out(self) -> Event[Content_co] | None:
        event = self._queue[0]
        if event._connection != _DOCUMENT and any(one.has(event) for one in self._beginnings):
            self._queue.popleft()
            self._acknowledge(event)
            self._dropped["known as a document"] += 1
            return None
        return super()._hand_out()

    async def take_all(self, most: int, timeout: float | None) -> list[Event[Content_co]]:
        if self._documents is not None or self._page:
            return [await self.next(timeout)]
        return await super().take_all(most, timeout)

    async def put_back(self, events: Iterable[Event[Content_co]]) -> None:
        several = list(events)
        documents = [one for one in several if one._connection == _DOCUMENT]
        self._page.extendleft(reversed(documents))
        self._handed_out -= len(documents)
        await super().put_back([one for one in several if one._connection != _DOCUMENT])

    # What becomes of it

    def _acknowledge(self, event: Event[Any], *, confirmed: bool = False) -> asyncio.Future[None] | None:
        if event._connection != _DOCUMENT:
            return super()._acknowledge(event, confirmed=confirmed)
        self._open_documents.pop((event.origin, event.sequence), None)
        self._check_documents()
        return None

    def _reject(self, event: Event[Any], rejection: Rejection = Rejection()) -> None:  # noqa: B008 (immutable)
        if event._connection != _DOCUMENT:  # a document comes again with the next beginning
            super()._reject(event, rejection)

    def _check_documents(self) -> None:
        """When all documents are done with, the broker is told, and does not begin with them again."""
        done = self._documents is None and not self._page and not self._open_documents
        if done and not self.is_temporary and self._telling is None:
            self._telling = self._session.loop.create_task(self._tell())

    async def _tell(self) -> None:
        with suppress(PalioError):  # then they come again, which does no harm
            await self._session.invoke("documents.caught_up", {"name": self.name}, on_loss="again")
