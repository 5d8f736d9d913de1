"""`RetroactiveBeginnings`: subscriptions that begin with the current documents, and then go on with what comes.

Where documents end and what comes begins is in `routing.documents.beginning`.

1. A page has documents that are current when it is read, and were published up to the position. What has been
   superseded meanwhile is not among them: its next version comes by the subscription.
2. Who does not come to the end of the documents begins with them again: a record says so from before the
   subscription is made (`documents.begin`) until its taker has done with all of them (`documents.caught_up`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.documents.errors import NotHeardYet, TooManyBeginnings, WrongDocumentQuestion
from palio.broker.extension import ExtensionRequest
from palio.routing.clients import NoJournal
from palio.routing.documents.beginning import RetroactivePosition, RetroactiveSearch
from palio.routing.durable.effects import KeyedRecord

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.documents.keeping import DocumentKeeper
    from palio.routing.durable.home.subscription import Durable
    from palio.store import Store

BEGINNING: Final = "document.beginning"  # records of subscriptions that have not had all documents
MOST: Final = 256  # of one owner; those of subscriptions that are gone are forgotten then
_LOOK_EVERY = 0.02
_ATTACHED_WITHIN = 60.0  # seconds from `begin` to the subscription
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class BeginningQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A subscription that begins with documents, by its name."""

    name: _Name
    wait: Annotated[float, msgspec.Meta(ge=0, le=60)] = 10.0


class RetroactiveBeginnings:
    """What clients ask whose subscriptions begin with the current documents."""

    def __init__(self, broker: BrokerServer, keeper: DocumentKeeper | None) -> None:
        self._broker = broker
        self._name = broker.settings.name
        self._keeper = keeper

    def requests(self) -> tuple[ExtensionRequest, ...]:
        return (
            ExtensionRequest("documents.begin", self._begin, None),
            ExtensionRequest("documents.position", self._position, None, reads=True),
            ExtensionRequest("documents.caught_up", self._caught_up, None),
        )

    def _begin(
        self, argument: dict[str, Any], principal: Principal, session: str
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Raises `WrongDocumentQuestion`, `NoJournal`, `TooManyBeginnings`."""
        name = _read(argument).name

        async def answer() -> dict[str, Any]:
            return {"pending": await self.begin(name, principal)}

        return answer()

    async def begin(self, called: str, principal: Principal) -> bool:
        """What somebody calls so is to begin with documents, if it is not there. Returns whether that is known.

        Raises `NoJournal`, `TooManyBeginnings`.
        """
        store, name = self._store(), principal.own(called)
        pending = await asyncio.to_thread(store.record, BEGINNING, name) is not None
        if not pending and self._subscription(name) is None:
            await self._make_room(store, principal.own(""))
            time = msgspec.msgpack.encode(self._broker.now())
            await self._broker.storing.keep(KeyedRecord(BEGINNING, name, time))
        return pending

    async def _make_room(self, store: Store, prefix: str) -> None:
        records = await asyncio.to_thread(store.records, BEGINNING, prefix=prefix, limit=MOST)
        if len(records) < MOST:
            return
        old = self._broker.now() - _ATTACHED_WITHIN
        gone = [
            KeyedRecord(BEGINNING, one.key, None)
            for one in records
            if self._subscription(one.key) is None and msgspec.msgpack.decode(one.value or b"\0") < old
        ]
        if not gone:
            raise TooManyBeginnings(MOST)
        await self._broker.storing.keep(*gone)

    def _caught_up(
        self, argument: dict[str, Any], principal: Principal, session: str
    ) -> Coroutine[Any, Any, None]:
        """Raises `WrongDocumentQuestion`, `NoJournal`."""
        name = principal.own(_read(argument).name)
        self._store()
        return self._broker.storing.keep(KeyedRecord(BEGINNING, name, None))

    def _position(
        self, argument: dict[str, Any], principal: Principal, session: str
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Raises `WrongDocumentQuestion`, `NoJournal`, `NotHeardYet`."""
        asked = _read(argument)
        name = principal.own(asked.name)

        async def answer() -> dict[str, Any]:
            return msgspec.structs.asdict(await self.position(name, asked.wait))

        return answer()

    async def position(self, name: str, wait: float) -> RetroactivePosition:
        """A position that is not before the beginning of a subscription.

        Raises `NoJournal`, `NotHeardYet`.
        """
        store, keeper = self._store(), self._keeper
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        heard, keep = (_nothing, None) if keeper is None else (keeper.heard, keeper.filter)
        search = RetroactiveSearch(self._name, keep)
        while True:
            found = search.look(self._subscription(name), heard, store.statistics().head)
            if found is not None:
                return found
            if loop.time() >= until:
                raise NotHeardYet(*search.late(heard), self._name, wait)
            await asyncio.sleep(_LOOK_EVERY)

    def _subscription(self, name: str) -> Durable | None:
        inside = self._broker.router.durable
        return None if inside is None else inside.homes.subscriptions.get(name)

    def _store(self) -> Store:
        store = self._broker.store
        if store is None:
            raise NoJournal
        return store


def _nothing(origin: str) -> None:
    """What a broker has heard of others that keeps nothing of them."""


def _read(argument: dict[str, Any]) -> BeginningQuestion:
    try:
        return msgspec.convert(argument, BeginningQuestion)
    except msgspec.ValidationError as problem:
        raise WrongDocumentQuestion(f"{problem}.") from None
