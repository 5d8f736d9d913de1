"""`RetroactiveBeginnings`: subscriptions that begin with the current documents, and then go on with what comes.

    attach ──> position ──> current documents up to it, page by page ──> what is published after it

1. The subscription is there before the position is taken: what is published after the position comes by it, and
   is not trimmed. What came by it before belongs to the position, and is passed over by whoever reads.
2. All that was published up to the position has been heard of here when it is given (`documents.position`): of
   the own journal all that is on disk, of others what is kept here, once that is as far as the subscription.
3. A page has documents that are current when it is read, and were published up to the position. What has been
   superseded meanwhile is not among them: its next version comes by the subscription.
4. Who does not come to the end of the documents begins with them again: a record says so from before the
   subscription is made (`documents.begin`) until its taker has done with all of them (`documents.caught_up`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.documents.current import document_name
from palio.broker.documents.errors import NotHeardYet, TooManyBeginnings, WrongDocumentQuestion
from palio.broker.extension import ExtensionRequest
from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.routing.clients import NoJournal
from palio.routing.durable.effects import KeyedRecord
from palio.routing.durable.home.subscription import HomeState

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


class RetroactivePosition(msgspec.Struct, frozen=True):
    """Up to where documents are given: by origin, and of others than this broker what `keep` selects."""

    broker: str
    position: dict[str, int]
    keep: str | None

    def has(self, envelope: Envelope) -> bool:
        """Whether something is a version of a document that is not newer (1)."""
        if envelope.sequence > self.position.get(envelope.origin, -1):
            return False
        if document_name(envelope.notification) is None:
            return False
        kept = self.keep is not None and Filter.parse(self.keep).matches(envelope.notification)
        return envelope.origin == self.broker or kept


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
        name = principal.own(_read(argument).name)
        return self._begun(name, principal)

    async def _begun(self, name: str, principal: Principal) -> dict[str, Any]:
        store = self._store()
        pending = await asyncio.to_thread(store.record, BEGINNING, name) is not None
        if not pending and self._subscription(name) is None:
            await self._make_room(store, principal.own(""))
            time = msgspec.msgpack.encode(self._broker.now())
            await self._broker.storing.keep(KeyedRecord(BEGINNING, name, time))
        return {"pending": pending}

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
        """A position that is not before the beginning of a subscription (1, 2).

        Raises `NoJournal`, `NotHeardYet`.
        """
        store, keeper = self._store(), self._keeper
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        if keeper is None:
            return RetroactivePosition(self._name, {self._name: store.statistics().head}, None)
        needed: dict[str, int] | None = None
        while True:
            durable = self._subscription(name)
            if needed is None and durable is not None and durable.state is HomeState.LIVE:
                needed = {origin: one for origin, one in durable.position.items() if origin != self._name}
            if needed is not None:
                heard = {origin: keeper.heard(origin) for origin in needed}
                if all((heard[origin] or 0) >= sequence for origin, sequence in needed.items()):
                    position = {origin: one for origin, one in heard.items() if one is not None}
                    position[self._name] = store.statistics().head
                    return RetroactivePosition(self._name, position, str(keeper.filter))
            if loop.time() >= until:
                late = next((o for o, s in (needed or {}).items() if (keeper.heard(o) or 0) < s), self._name)
                raise NotHeardYet(late, (needed or {}).get(late, 0), self._name, wait)
            await asyncio.sleep(_LOOK_EVERY)

    def _subscription(self, name: str) -> Durable | None:
        inside = self._broker.router.durable
        return None if inside is None else inside.homes.subscriptions.get(name)

    def _store(self) -> Store:
        store = self._broker.store
        if store is None:
            raise NoJournal
        return store


def _read(argument: dict[str, Any]) -> BeginningQuestion:
    try:
        return msgspec.convert(argument, BeginningQuestion)
    except msgspec.ValidationError as problem:
        raise WrongDocumentQuestion(f"{problem}.") from None
