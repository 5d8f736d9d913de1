"""`RetroactiveBeginnings`: subscriptions that begin with the current documents, and then go on with what comes.

Where documents end and what comes begins is in `routing.documents.beginning`.

1. A page has documents that are current when it is read, and were published up to the position. What has been
   superseded meanwhile is not among them: its next version comes by the subscription.
2. Who does not come to the end of the documents begins with them again: a record says so from before the
   subscription is made (`documents.begin`) until its taker has done with all of them (`documents.caught_up`).
   Nobody knows here how far one came that is at another home: it begins again, too.
3. Who has done with all documents passes over what comes by the subscription up to their position, also in
   another life. So the position is kept until the subscription is beyond it (`BegunPosition`). Of a journal
   that came back older nothing is passed over: other events have those numbers.
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

BEGINNING: Final = "document.beginning"  # records of subscriptions that have not had all documents,
BEGUN: Final = "document.begun"  # and of those that have, and are not beyond the position
MOST: Final = 256  # of either, of one owner; those of subscriptions that are gone are forgotten then
_LOOK_EVERY = 0.02
_ATTACHED_WITHIN = 60.0  # seconds from `begin` to the subscription
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class BeginningQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A subscription that begins with documents, by its name."""

    name: _Name
    wait: Annotated[float, msgspec.Meta(ge=0, le=60)] = 10.0
    again: bool = False  # whether it begins with documents although it is there


class BegunPosition(msgspec.Struct, frozen=True):
    """Up to where a subscription is given documents, and the places of that in the journals."""

    position: RetroactivePosition
    places: dict[str, tuple[int, str]]

    def ahead(self, durable: Durable | None) -> RetroactivePosition | None:
        """What of it may still come by the subscription; None if nothing may (3)."""
        if durable is None:
            return None
        places = durable.places(self.position.position.items())
        upto = {origin: place[0] for origin, place in places.items() if place == self.places.get(origin)}
        left = msgspec.structs.replace(self.position, position=upto)
        waiting, stored = durable.outbox.deliveries.values(), durable.stored_position
        is_there = all(origin in stored and stored[origin][0] >= upto[origin] for origin in upto)
        return None if is_there and not any(left.has(one.envelope) for one in waiting) else left


class _Beginning(msgspec.Struct, frozen=True):
    """A record: since when, and what was answered when the position was asked for last."""

    time: float
    begun: BegunPosition | None = None


_encode = msgspec.msgpack.encode
_read_beginning = msgspec.msgpack.Decoder(float | _Beginning).decode
_read_begun = msgspec.msgpack.Decoder(BegunPosition).decode


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
        asked = _read(argument)

        async def answer() -> dict[str, Any]:
            if await self.begin(asked.name, principal, again=asked.again):
                return {"pending": True, "begun": None}
            return {"pending": False, "begun": await self._begun(principal.own(asked.name))}

        return answer()

    async def begin(self, called: str, principal: Principal, *, again: bool = False) -> bool:
        """What somebody calls so is to begin with documents, if it is not here. Returns whether it is to (2).

        Raises `NoJournal`, `TooManyBeginnings`.
        """
        store, name = self._store(), principal.own(called)
        if await asyncio.to_thread(store.record, BEGINNING, name) is not None:
            return True
        if not again and self._subscription(name) is not None:
            return False
        await self._make_room(BEGINNING, principal)
        record = KeyedRecord(BEGINNING, name, _encode(_Beginning(self._broker.now())))
        await self._broker.storing.keep(record, KeyedRecord(BEGUN, name, None))
        return True

    async def _begun(self, name: str) -> dict[str, Any] | None:
        """What a subscription passes over that has had all documents (3)."""
        value = await asyncio.to_thread(self._store().record, BEGUN, name)
        ahead = None if value is None else _read_begun(value).ahead(self._subscription(name))
        if value is not None and ahead is None:
            await self._broker.storing.keep(KeyedRecord(BEGUN, name, None))
        return None if ahead is None else msgspec.structs.asdict(ahead)

    async def _make_room(self, kind: str, principal: Principal) -> None:
        """Forgets what nobody asks for any more, if there are many records. Raises `TooManyBeginnings`."""
        records = await asyncio.to_thread(self._store().records, kind, prefix=principal.own(""), limit=MOST)
        if len(records) < MOST:
            return
        gone = [KeyedRecord(kind, one.key, None) for one in records if self._is_over(one)]
        if not gone:
            raise TooManyBeginnings(MOST)
        await self._broker.storing.keep(*gone)

    def _is_over(self, record: KeyedRecord) -> bool:
        assert record.value is not None
        durable = self._subscription(record.key)
        if record.kind == BEGUN:
            return _read_begun(record.value).ahead(durable) is None
        known = _read_beginning(record.value)
        since = known if isinstance(known, float) else known.time
        return durable is None and since < self._broker.now() - _ATTACHED_WITHIN

    def _caught_up(
        self, argument: dict[str, Any], principal: Principal, session: str
    ) -> Coroutine[Any, Any, None]:
        """Raises `WrongDocumentQuestion`, `NoJournal`."""
        name = principal.own(_read(argument).name)
        store = self._store()

        async def answer() -> None:
            value = await asyncio.to_thread(store.record, BEGINNING, name)
            known = None if value is None else _read_beginning(value)
            begun = known.begun if isinstance(known, _Beginning) else None
            records = [KeyedRecord(BEGINNING, name, None)]
            if begun is not None and begun.ahead(self._subscription(name)) is not None:
                await self._make_room(BEGUN, principal)
                records.append(KeyedRecord(BEGUN, name, _encode(begun)))
            await self._broker.storing.keep(*records)

        return answer()

    def _position(
        self, argument: dict[str, Any], principal: Principal, session: str
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Raises `WrongDocumentQuestion`, `NoJournal`, `NotHeardYet`."""
        asked = _read(argument)
        name = principal.own(asked.name)

        async def answer() -> dict[str, Any]:
            position = await self.position(name, asked.wait)
            await self._note(name, position)
            return msgspec.structs.asdict(position)

        return answer()

    async def _note(self, name: str, position: RetroactivePosition) -> None:
        """Writes up to where a subscription is given documents, before it is, if it begins so again (2)."""
        durable, store = self._subscription(name), self._store()
        if durable is None or await asyncio.to_thread(store.record, BEGINNING, name) is None:
            return
        begun = BegunPosition(position, durable.places(position.position.items()))
        record = KeyedRecord(BEGINNING, name, _encode(_Beginning(self._broker.now(), begun)))
        await self._broker.storing.keep(record)

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
