"""`DocumentKeeper`: the current documents of the whole network that a filter selects (`[documents] keep`).

    durable subscription ──deliveries──> records `document.kept` ──on disk──> acknowledged

1. The broker itself has a durable subscription, here: so nothing is missed that any journal still has, whoever
   is away meanwhile. It begins with all that the journals have. What it is told of, and what becomes of that,
   is in `routing.documents.keeping`.
2. What is heard is acknowledged once it is on disk. What journals have trimmed before is fetched (`fetching`).
3. With another filter all is begun anew: what was kept goes, and the subscription with it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from palio.broker.access.principal import Holder, Principal
from palio.broker.access.rights import Rights
from palio.broker.documents.fetching import EarlierDocuments
from palio.language import PALIO, read_filter
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.deliveries import Handed
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Finish, Taken
from palio.routing.documents.current import KEPT
from palio.routing.documents.keeping import KeptDocuments, widened
from palio.routing.durable.effects import KeyedRecord
from palio.routing.scopes import SetScope

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.gateway.visitor import Visitor
    from palio.routing.durable.home.subscription import Durable
    from palio.store import Store

STATE: Final = "document.keeping"  # the record that says which filter is kept, under which name
# Who the keeper is where rights count: no principal can be called so.
OWNER: Final = "_documents"
SESSION: Final = "keeper"
_AGAIN = 1.0  # seconds until it is tried again
_PAGE = 256


class DocumentKeeper:
    """Keeps documents of other brokers. `start` and `stop` it."""

    def __init__(self, broker: BrokerServer, keep: str, dialect: str = PALIO) -> None:
        """Raises the errors of filters."""
        self.filter = read_filter(keep, dialect).require_satisfiable()
        self._broker = broker
        self._own = broker.settings.name
        self._kept = KeptDocuments(self.filter, self._own, broker.newest_documents.tell)
        self._name = f"documents-{self._own}"
        self._task: asyncio.Task[None] | None = None
        self._known_as = self._name
        self._earlier = EarlierDocuments(broker, widened(self.filter), self._subscription)
        self._begun = False  # whether what is kept is what the filter selects, and not one before it

    def heard(self, origin: str) -> int | None:
        """Up to which sequence all is kept that is to be kept of a broker; None if it is not heard of."""
        if not self._begun or not self._earlier.has(origin):
            return None
        return self._kept.heard(self._subscription(), origin)

    def origins(self) -> list[str]:
        """The other brokers that were heard of."""
        durable = self._subscription()
        return [] if durable is None else [one for one in durable.stored_position if one != self._own]

    def _subscription(self) -> Durable | None:
        inside = self._broker.router.durable
        return None if inside is None else inside.homes.subscriptions.get(self._known_as)

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        from palio.broker.gateway.visitor import Visitor  # noqa: PLC0415 (only who keeps documents needs it)

        principal = None
        if self._broker.access.is_on:
            rights = Rights(subscribe=Filter())
            self._broker.handle(SetScope(OWNER, rights.subscribe, None), "")
            principal = Principal(OWNER, Holder(rights))
            self._known_as = principal.own(self._name)
        while True:
            try:
                visitor = await Visitor.enter(self._broker, SESSION, acting_as=principal)
                try:
                    await self._keep(visitor)
                finally:
                    visitor.leave("Documents are kept no more.")
            except PalioError as problem:
                extra = {"reason": str(problem)}
                self._broker.log.warning("Documents of other brokers are not kept for now.", extra=extra)
            except Exception:
                self._broker.log.exception("Documents of other brokers could not be kept.")
            await asyncio.sleep(_AGAIN)

    async def _keep(self, visitor: Visitor) -> None:
        store = self._broker.store
        assert store is not None, "Settings want a journal for this."
        await self._begin(visitor, store)
        self._begun = True
        await visitor.ask(self._kept.attach(self._name))
        fetching = asyncio.get_running_loop().create_task(self._earlier.run(visitor))
        try:
            await self._hear(visitor, store)
        finally:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

    async def _hear(self, visitor: Visitor, store: Store) -> None:
        """Keep what comes, until another one takes the subscription."""
        while True:
            message = await self._earlier.next(visitor)
            if isinstance(message, Taken):
                return
            if isinstance(message, Handed):
                envelopes = [envelope for _, _, envelope in message.deliveries]
                records = await asyncio.to_thread(self._kept.changes, store.record, envelopes)
                if records:
                    await self._broker.storing.keep(*records)
                visitor.say(Acknowledged(self._name, tuple([number for number, _, _ in message.deliveries])))

    async def _begin(self, visitor: Visitor, store: Store) -> None:
        """Begins anew if another filter was kept before (3)."""
        state = KeyedRecord(STATE, self._known_as, self.filter.form)
        if await asyncio.to_thread(store.record, STATE, self._known_as) == state.value:
            return
        with suppress(PalioError):  # there is none
            await visitor.ask(Attach(self._name, None))
            await visitor.ask(Finish(self._name))
        while page := await asyncio.to_thread(store.records, KEPT, limit=_PAGE):
            await self._broker.storing.keep(*[KeyedRecord(KEPT, one.key, None) for one in page])
        await self._broker.storing.keep(state)
