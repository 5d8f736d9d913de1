"""`EarlierDocuments`: documents of other brokers whose journals were trimmed before a keeper began.

    ListJournals ──> trimmed up to … ──> Replay of that span ──> what comes to the keeper, as deliveries

A keeper's durable subscription begins with what the journals have. What they had before is asked for once: a
span of a journal that was trimmed is answered with the current documents that have outlived it (`outlived`).

1. The subscription is there before it is asked: what a journal trims from then on has come by it.
2. What is fetched goes the way of what is delivered, one after the other, so there is one who writes records.
   It comes late, and possibly again: that makes no difference to which version is current.
3. A record says of which origins that has been done for a subscription. Who cannot be reached is asked when it
   comes; until then it was not heard of (`has`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.deliveries import Handed
from palio.protocol.durable.journals import GoOn, JournalsListed, ListJournals, Replay, Replayed
from palio.routing.durable.effects import KeyedRecord

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.gateway.visitor import Visitor
    from palio.routing.durable.home.subscription import Durable

FETCHED: Final = "document.fetched"  # the kind of the record that says what was done
_PAGE: Final = 256  # documents that are asked for at a time
_LOOK_EVERY: Final = 0.1  # seconds between two looks for an origin that is new
_AGAIN: Final = 2.0  # seconds until somebody is asked again who has not answered
_NO_DELIVERY: Final = 0  # its acknowledgement is of nothing
_ANY_TIME: Final = 2.0**40  # also of clocks that are ahead


class _Fetched(msgspec.Struct, frozen=True, array_like=True):
    """Of which origins it was asked, for a subscription: its identity, and how many gaps it had then."""

    subscription: str
    gaps: int
    origins: tuple[str, ...]


_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(_Fetched).decode


class EarlierDocuments:
    """Fetches them for one keeper, whose subscription is `subscription()`."""

    def __init__(
        self, broker: BrokerServer, wanted: Filter, subscription: Callable[[], Durable | None]
    ) -> None:
        self._broker = broker
        self._wanted = wanted
        self._subscription = subscription
        self._done = _Fetched("", 0, ())
        self._waiting: asyncio.Queue[tuple[Handed, asyncio.Future[None]]] = asyncio.Queue(1)
        self._handed: asyncio.Future[None] | None = None  # of what was given to the keeper last
        self._coming: asyncio.Future[Any] | None = None  # what is delivered next

    def has(self, origin: str) -> bool:
        """Whether what an origin had trimmed is kept."""
        durable = self._subscription()
        return durable is not None and self._fits(durable) and origin in self._done.origins

    def _fits(self, durable: Durable) -> bool:
        return (durable.identity, len(durable.gaps)) == (self._done.subscription, self._done.gaps)

    async def next(self, visitor: Visitor) -> Any:
        """What comes next to the keeper, who is done with all before: what is delivered, or was fetched."""
        if self._handed is not None and not self._handed.done():
            self._handed.set_result(None)
        self._handed = None
        coming = self._coming = self._coming or asyncio.ensure_future(visitor.take())
        fetched = asyncio.ensure_future(self._waiting.get())
        try:
            await asyncio.wait((coming, fetched), return_when=asyncio.FIRST_COMPLETED)
            if fetched.done():
                message, self._handed = fetched.result()
                return message
            self._coming = None
            return coming.result()
        finally:
            fetched.cancel()

    async def run(self, visitor: Visitor) -> None:
        """Ask whoever was not asked, as long as a session lasts."""
        try:
            while True:
                durable = self._subscription()
                if durable is not None:
                    await self._look_up(durable)
                    others = set(durable.stored_position) - {self._broker.settings.name, *self._done.origins}
                    if others and not await self._fetch(others, visitor, durable):
                        await asyncio.sleep(_AGAIN)
                await asyncio.sleep(_LOOK_EVERY)
        finally:
            if self._coming is not None:
                self._coming.cancel()
            self._coming = self._handed = None
            self._waiting = asyncio.Queue(1)

    async def _look_up(self, durable: Durable) -> None:
        """What was done for this subscription, also before a restart (3)."""
        if self._fits(durable):
            return
        store = self._broker.store
        assert store is not None, "Settings want a journal for this."
        value = await asyncio.to_thread(store.record, FETCHED, durable.name)
        if value is not None:
            self._done = _read(value)
        if not self._fits(durable):
            self._done = _Fetched(durable.identity, len(durable.gaps), ())

    async def _fetch(self, origins: set[str], visitor: Visitor, durable: Durable) -> bool:
        """Ask some origins. Returns whether all have answered."""
        try:
            listed: JournalsListed = await visitor.ask(ListJournals(0))
            answered = {one.origin: one.trimmed for one in listed.journals if one.origin in origins}
            spans = [(origin, 0, trimmed) for origin, trimmed in answered.items() if trimmed]
            if spans:
                silent = await self._replay(spans, visitor)
                answered = {one: upto for one, upto in answered.items() if one not in silent}
            if answered:
                self._done = msgspec.structs.replace(
                    self._done, origins=tuple(sorted({*self._done.origins, *answered}))
                )
                await self._broker.storing.keep(KeyedRecord(FETCHED, durable.name, _encode(self._done)))
        except PalioError as problem:
            self._broker.log.info("Documents from before are asked for again.", extra={"reason": str(problem)})
            return False
        return len(answered) == len(origins)

    async def _replay(self, spans: list[tuple[str, int, int]], visitor: Visitor) -> tuple[str, ...]:
        """Fetch what was trimmed. Returns who did not answer."""
        replay = Replay(0, self._wanted, 0.0, _ANY_TIME, _PAGE, tuple(spans))
        page: Replayed = await visitor.ask(replay)
        while not page.last:
            handed = asyncio.get_running_loop().create_future()
            deliveries = tuple([(_NO_DELIVERY, 1, one) for one in page.envelopes])
            await self._waiting.put((Handed("", deliveries), handed))
            await handed
            page = await visitor.ask(GoOn(page.number))
        return page.missing
