"""`RetroactiveSubscription`: first the current documents that a filter selects, then what is published.

1. Documents come page by page, as they are read, and before anything else. Then the durable subscription goes
   on.
2. The position up to which documents come was taken when the subscription was there already
   (`documents.position` at the broker). What comes by it of documents up to there is passed over: it was among
   the documents, or there is a newer version.
   That is so in other lives of the client, too (`begun`).
3. Whoever is interrupted before all documents are acknowledged begins with them again.
4. A client that comes back to another broker meanwhile begins with the documents that are known there. From
   then on only that beginning counts: of the documents before it, some have not come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from palio.client.decoding import Decoding
from palio.client.durable import DurableSubscription
from palio.client.event import Content_co, Event, Rejection
from palio.client.knowledge import page_of
from palio.model.errors import PalioError
from palio.model.filter import Filter

if TYPE_CHECKING:
    from palio.client.session import ClientSession
    from palio.protocol.durable.subscriptions import Attach, Attached

_DOCUMENT: Final = -1  # in the place of a connection: it came by none
_FAMILY, _KEY = "xml.family", "xml.key"


class DocumentsBeginning(msgspec.Struct, frozen=True):
    """Up to where documents came: of a broker's own, and of others those that it keeps."""

    broker: str
    position: dict[str, int]
    keep: Filter | None

    @classmethod
    def of(cls, answer: dict[str, Any]) -> DocumentsBeginning:
        keep = None if answer["keep"] is None else Filter.parse(answer["keep"])
        return cls(answer["broker"], answer["position"], keep)

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
        self._beginning: DocumentsBeginning | None = None
        self._documents: dict[str, Any] | None = None  # what to ask for the next page
        self._timeout: float | None = None
        self._page: deque[Event[Any]] = deque()
        self._open_documents: dict[tuple[str, int], None] = {}  # handed out and not acknowledged
        self._turn = asyncio.Lock()
        self._is_beginning = False  # whether some documents are not done with
        self._telling: asyncio.Task[None] | None = None

    async def ask(self, timeout: float | None, *, ready: bool) -> None:
        pending = True
        if not self.is_temporary:
            answer = await self._session.invoke("documents.begin", {"name": self.name}, timeout=timeout)
            pending, begun = answer["pending"], answer.get("begun")
            self._beginning = None if begun is None else DocumentsBeginning.of(begun)
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
        self._beginning, self._is_beginning = DocumentsBeginning.of(found), True
        text = self.filter.source or str(self.filter) or "true"
        self._documents = {"filter": text, "upto": found["position"]}
        self._timeout = timeout
        self._page.clear()

    def answered(self, answer: Attached) -> None:
        super().answered(answer)
        elsewhere = self._beginning is not None and self._beginning.broker != self._session.broker
        if elsewhere and self._is_beginning:
            self._tell("begin", again=True)

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
            assert self._beginning is not None
            if self._session.broker != self._beginning.broker:
                await self._begin()
            page, onward = await page_of(self._session, self._documents, self._timeout)
            if self._session.broker == self._beginning.broker:  # another one has answered otherwise
                self._page.extend(page)
                self._documents = onward
                self._check_documents()
        return None

    def _hand_out(self) -> Event[Content_co] | None:
        event = self._queue[0]
        if event._connection != _DOCUMENT and self._beginning is not None and self._beginning.has(event):
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
        if self._is_beginning and self._documents is None and not self._page and not self._open_documents:
            self._is_beginning = False
            self._tell("caught_up")

    def _tell(self, what: str, **more: Any) -> None:
        """Tell a broker how far this is, after what it was told before; others hear nothing of it."""
        if not self.is_temporary:
            telling = self._told(self._telling, f"documents.{what}", {"name": self.name, **more})
            self._telling = self._session.loop.create_task(telling)

    async def _told(self, before: asyncio.Task[None] | None, what: str, asked: dict[str, Any]) -> None:
        if before is not None:
            await before
        with suppress(PalioError):  # then they come again, which does no harm
            await self._session.invoke(what, asked, on_loss="again")
