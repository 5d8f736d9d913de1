"""`DocumentKeeper`: the current documents of the whole network that a filter selects (`[documents] keep`).

The broker itself has a durable subscription, here: so nothing is missed that any journal still has, whoever is
away meanwhile. It begins with all that the journals have. What it is told of, and what becomes of that, is in
`routing.documents.keeping`; here is what that wants done, with a session and the store of a broker. What
journals have trimmed before is fetched (`fetching`), and comes to the keeper among what is delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from palio.broker.access.principal import Holder, Principal
from palio.broker.access.rights import Rights
from palio.broker.documents.fetching import EarlierDocuments
from palio.language import PALIO, read_filter
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.routing.documents.keeping import (
    AskBroker,
    AwaitMessage,
    KeepingWish,
    KeptDocuments,
    LookUp,
    TellBroker,
    WriteRecords,
    widened,
)
from palio.routing.scopes import SetScope

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.gateway.visitor import Visitor
    from palio.routing.durable.home.subscription import Durable

# Who the keeper is where rights count: no principal can be called so.
OWNER: Final = "_documents"
SESSION: Final = "keeper"
_AGAIN = 1.0  # seconds until it is tried again


class DocumentKeeper:
    """Keeps documents of other brokers. `start` and `stop` it."""

    def __init__(self, broker: BrokerServer, keep: str, dialect: str = PALIO) -> None:
        """Raises the errors of filters."""
        self.filter = read_filter(keep, dialect).require_satisfiable()
        self._broker = broker
        self._own = broker.settings.name
        self.kept = KeptDocuments(self.filter, self._own, broker.newest_documents.tell)
        self._name = f"documents-{self._own}"
        self._task: asyncio.Task[None] | None = None
        self._known_as = self._name
        self._earlier = EarlierDocuments(broker, widened(self.filter), self.subscription)

    def heard(self, origin: str) -> int | None:
        """Up to which sequence all is kept that is to be kept of a broker; None if it is not heard of."""
        return self.kept.heard(self.subscription(), origin) if self._earlier.has(origin) else None

    def origins(self) -> list[str]:
        """The other brokers that were heard of."""
        durable = self.subscription()
        return [] if durable is None else [one for one in durable.stored_position if one != self._own]

    def subscription(self) -> Durable | None:
        """The durable subscription by which documents come."""
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
        fetching: asyncio.Task[None] | None = None
        keeping = self.kept.keep(self._name, self._known_as)
        do: Callable[[], Any] = partial(next, keeping)
        try:
            with suppress(StopIteration):
                while True:
                    wish = do()
                    if fetching is None and isinstance(wish, AwaitMessage):
                        fetching = asyncio.get_running_loop().create_task(self._earlier.run(visitor))
                    try:
                        do = partial(keeping.send, await self._done(wish, visitor))
                    except PalioError as problem:
                        do = partial(keeping.throw, problem)
        finally:
            if fetching is not None:
                fetching.cancel()
                await asyncio.gather(fetching, return_exceptions=True)

    async def _done(self, wish: KeepingWish, visitor: Visitor) -> Any:
        match wish:
            case AskBroker(request):
                return await visitor.ask(request)
            case AwaitMessage():
                return await self._earlier.next(visitor)
            case TellBroker(message):
                return visitor.say(message)
            case LookUp(look):
                store = self._broker.store
                assert store is not None, "Settings want a journal for this."
                return await asyncio.to_thread(look, store)
            case WriteRecords(records):
                return await self._broker.storing.keep(*records)
