"""`DocumentKeeper`: the current documents of the whole network that a filter selects (`[documents] keep`).

    durable subscription ──deliveries──> records `document.kept` ──on disk──> acknowledged

1. The broker itself has a durable subscription, here: so nothing is missed that any journal still has, whoever
   is away meanwhile. It begins with all that the journals have.
2. It is told of all versions of every document that may be selected, also of those that are not: what a
   document is called never changes, so only conditions on that are asked for (`widened`). A version that the
   filter does not select takes the place of one that it does, without its content.
3. What is heard is acknowledged once it is on disk. What comes again changes nothing (`current`, 2), so all
   brokers with the same filter that have heard the same keep the same.
4. With another filter all is begun anew: what was kept goes, and the subscription with it.
5. How far a journal was heard of (`heard`) is what the subscription here knows: all up to there is on disk, or
   was not selected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from palio.broker.access.principal import Holder, Principal
from palio.broker.access.rights import Rights
from palio.broker.documents.current import KEPT, Versions, document_name, record_key
from palio.documents.reserved import FAMILY, KEY
from palio.language import PALIO, read_filter
from palio.model.conjunction import Conjunction
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.deliveries import Handed
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Finish, Taken
from palio.protocol.durable.wishes import LONGEST_WAIT, MAX_ATTEMPTS
from palio.protocol.envelope import Envelope
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
IN_FLIGHT: Final = 64
_AGAIN = 1.0  # seconds until it is tried again
_PAGE = 256
_VERSIONS_OF_DOCUMENTS = Filter.parse(f"exists(string {FAMILY}) and exists(string {KEY})")
# It is no attempt that failed if the disk is full, and nothing is a dead letter.
_TAKER = Patience(in_flight=IN_FLIGHT, acknowledge_within=LONGEST_WAIT, attempts=MAX_ATTEMPTS)


def widened(keep: Filter) -> Filter:
    """All versions of documents that a filter may select one version of (2)."""
    boxes = [
        Conjunction.of({name: box.sides[name] for name in (FAMILY, KEY) if name in box.sides})
        for box in keep.conjunctions
    ]
    return Filter(tuple(boxes)).intersect(_VERSIONS_OF_DOCUMENTS)


class DocumentKeeper:
    """Keeps documents of other brokers. `start` and `stop` it."""

    def __init__(self, broker: BrokerServer, keep: str, dialect: str = PALIO) -> None:
        """Raises the errors of filters."""
        self.filter = read_filter(keep, dialect).require_satisfiable()
        self._broker = broker
        self._own = broker.settings.name
        self._wanted = widened(self.filter)
        self._name = f"documents-{self._own}"
        self._task: asyncio.Task[None] | None = None
        self._known_as = self._name
        self._begun = False  # whether what is kept is what the filter selects, and not one before it

    def heard(self, origin: str) -> int | None:
        """Up to which sequence all is kept that is to be kept of a broker; None if it is not heard of (5)."""
        durable = self._subscription()
        if not self._begun or durable is None or origin not in durable.stored_position:
            return None
        waiting = [
            one.envelope.sequence for one in durable.outbox.deliveries.values() if one.envelope.origin == origin
        ]
        return min([durable.stored_position[origin][0], *[sequence - 1 for sequence in waiting]])

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
        attach = Attach(self._name, self._wanted, since="all", in_flight=IN_FLIGHT, patience=_TAKER, as_is=True)
        await visitor.ask(attach)
        while True:
            message = await visitor.take()
            if isinstance(message, Taken):
                return
            if isinstance(message, Handed):
                envelopes = [envelope for _, _, envelope in message.deliveries]
                records = await asyncio.to_thread(self.changes, store, envelopes)
                if records:
                    await self._broker.storing.keep(*records)
                visitor.say(Acknowledged(self._name, tuple([number for number, _, _ in message.deliveries])))

    async def _begin(self, visitor: Visitor, store: Store) -> None:
        """Begins anew if another filter was kept before (4)."""
        state = KeyedRecord(STATE, self._known_as, self.filter.form)
        if await asyncio.to_thread(store.record, STATE, self._known_as) == state.value:
            return
        with suppress(PalioError):  # there is none
            await visitor.ask(Attach(self._name, None))
            await visitor.ask(Finish(self._name))
        while page := await asyncio.to_thread(store.records, KEPT, limit=_PAGE):
            await self._broker.storing.keep(*[KeyedRecord(KEPT, one.key, None) for one in page])
        await self._broker.storing.keep(state)

    def changes(self, store: Store, envelopes: Sequence[Envelope]) -> Iterable[KeyedRecord]:
        """The records that change by what was heard; in a thread."""
        changed: dict[str, Versions] = {}
        before: dict[str, Versions] = {}
        for envelope in envelopes:
            name = document_name(envelope.notification)
            if name is None or envelope.origin == self._own:  # what was published here has its own record
                continue
            key = record_key(*name)
            if key not in changed:
                before[key] = changed[key] = Versions.of(store.record(KEPT, key))
            changed[key] = changed[key].with_version(envelope, self.filter)
        return [
            KeyedRecord(KEPT, key, versions.encoded)
            for key, versions in changed.items()
            if versions is not before[key]
        ]
