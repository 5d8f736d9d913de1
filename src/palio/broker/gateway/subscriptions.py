"""Subscriptions as resources, in the shape of the CloudEvents Subscriptions API.

Each is a durable subscription of the broker, of the same name. One with a sink has a `Pusher` as its taker, as
long as the broker runs; one without is read as an event stream (`/events?durable=ID`) or by any client. What
was asked for is kept on disk, so that a broker that begins anew goes on pushing.

Making, changing and ending one is done with the token of whoever asks, so that the same rights and limits apply
as to any durable subscription. A wish that is made twice, with the same id, is one subscription.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from palio.broker.gateway.definitions import Config, Keeper, NotStored, StoredDefinition
from palio.broker.gateway.modes import PushModes, require_mode
from palio.broker.gateway.problems import RefusedByBroker
from palio.broker.gateway.pushing import Pusher
from palio.broker.gateway.representations import (
    PausedSubscription,
    ShownSubscription,
    SoughtSubscription,
)
from palio.broker.gateway.selections import plain_document
from palio.broker.gateway.sinks import Sinks
from palio.broker.gateway.stream_request import read_since
from palio.broker.gateway.visitor import Visitor
from palio.broker.gateway.wishes import filter_of, new_id, read_definition, read_place
from palio.model.errors import NoSuchSubscription, PalioError, WrongParameter, cut
from palio.model.filter import Filter
from palio.protocol.durable.control import Pause, Paused, Resume, Seek, Sought
from palio.protocol.durable.retry import Retry
from palio.protocol.durable.subscriptions import Attach, Attached, Change, Finish
from palio.routing.documents.beginning import RetroactivePosition
from palio.routing.scopes import SEPARATOR, owner_of

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

Key = tuple[str, str]
# How whoever asks comes in: under a name that begins so.
Enter = Callable[[str], Awaitable[Visitor]]
RESTARTED = 60.0  # seconds in which what would have ended while the broker was down may be renewed
LINGER = 60.0  # seconds: whatever outlives its taker by no more is temporary, and no resource


class UnknownSubscription(PalioError):
    """There is no subscription of that id, or it is somebody else's."""

    id: str = cut(80)
    sentence = "There is no subscription {id!r}."


class SubscriptionExists(PalioError):
    """Another subscription has this id."""

    id: str
    sentence = (
        "There is a subscription {id!r} already, and it is another one; change it with PUT, or choose another "
        "id."
    )


class GatewayFull(PalioError):
    """The gateway has as many subscriptions as it may."""

    limit: int
    sentence = (
        "There are {limit:,} subscriptions, as many as there may be; delete some, or raise the limit "
        "`gateway.subscriptions` of the broker."
    )


class _Turn(msgspec.Struct, eq=False):
    """Whose turn it is with one subscription, and how many wait for theirs."""

    lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    users: int = 0


class Subscriptions:
    """All subscriptions that were made as resources."""

    def __init__(self, broker: BrokerServer, keeper: Keeper, sinks: Sinks, modes: PushModes) -> None:
        self._broker = broker
        self._keeper = keeper
        self._sinks = sinks
        self._modes = modes
        self._kept: dict[Key, StoredDefinition] = {}
        self._filters: dict[Key, Filter] = {}
        self._pushes: Counter[str] = Counter()
        self._pushers: dict[Key, Pusher] = {}
        self._busy: dict[Key, _Turn] = {}
        self._saving = asyncio.Lock()
        self._used: dict[Key, float] = {}  # until when those that end are wanted by their use
        self._ending: set[asyncio.Task[None]] = set()

    # Beginning and end

    async def start(self) -> None:
        """Take up what was kept. Raises `UnreadableDefinitions`."""
        for kept in await asyncio.to_thread(self._keeper.load):
            self._take(kept, filter_of(kept.definition))
            self.use(kept.key, self._broker.now() + RESTARTED)

    async def stop(self) -> None:
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*[pusher.stop() for pusher in self._pushers.values()])

    def __len__(self) -> int:
        return len(self._kept)

    def pushes(self) -> dict[str, int]:
        """What became of requests to webhooks since the broker started."""
        return dict(self._pushes)

    def filter_named(self, owner: str, id: str) -> Filter | None:
        """What a subscription selects, if there is one of that name."""
        return self._filters.get((owner, id))

    def config_named(self, owner: str, id: str) -> Config | None:
        """How the events of a subscription come, if there is one of that name."""
        kept = self._kept.get((owner, id))
        return None if kept is None else kept.definition.config

    # Those that end by themselves

    def use(self, key: Key, until: float) -> None:
        """A subscription is in use, and does not end before. This is not kept on disk."""
        kept = self._kept.get(key)
        if kept is not None and kept.definition.config.until is not None:
            self._used[key] = max(until, self._used.get(key, 0.0))

    def until(self, key: Key) -> float | None:
        """When a subscription ends unless it is renewed or used."""
        kept = self._kept.get(key)
        if kept is None or kept.definition.config.until is None:
            return None
        return max(kept.definition.config.until, self._used.get(key, 0.0))

    async def renew(self, id: str, until: float | None, enter: Enter) -> None:
        """A subscription ends then and not before, or not by itself. Raises `UnknownSubscription`."""
        async with self._visit(enter, id) as visitor:
            key = visitor.principal, id
            kept = self._kept.get(key)
            if kept is None:
                raise UnknownSubscription(id)
            config = msgspec.structs.replace(kept.definition.config, until=until)
            definition = msgspec.structs.replace(kept.definition, config=config)
            await self._keep(key, msgspec.structs.replace(kept, definition=definition))
            self._used.pop(key, None)

    async def end_expired(self) -> None:
        """End what nobody has renewed in time."""
        now = self._broker.now()
        for key, kept in list(self._kept.items()):
            until = self.until(key)
            if until is not None and until <= now:
                self._broker.log.info("A subscription was not renewed.", extra={"subscription": key[1]})
                try:
                    await self._end(kept)
                except PalioError as problem:  # it is tried again, and the others end
                    extra = {"subscription": key[1], "reason": str(problem)}
                    self._broker.log.warning("A subscription could not be ended.", extra=extra)

    # What can be asked for

    async def create(self, document: Any, key: str | None, enter: Enter) -> tuple[ShownSubscription, bool]:
        """Make a subscription. Returns it, and whether it is new."""
        document = await plain_document(document, enter)
        definition = read_definition(document, new_id(document, key))
        require_mode(self._modes, definition.config.contentmode)
        filter = filter_of(definition)
        async with self._visit(enter, definition.id) as visitor:
            place = visitor.principal, definition.id
            known = self._kept.get(place)
            if known is not None:
                if known.definition != definition:
                    raise SubscriptionExists(definition.id)
                return self._shown(known), False
            self._require_room()
            rate = await self._sinks.ask(definition.sink) if definition.sink is not None else None
            since = read_since(definition.config.since) or "now"
            attach = Attach(definition.id, filter, since=since, retry=definition.config.retry)
            attached: Attached = await visitor.ask(attach)
            kept = StoredDefinition(place[0], definition, rate)
            try:
                await self._keep(place, kept)
            except BaseException:
                if attached.created:  # else it is somebody's who made it in another way
                    visitor.say(Finish(definition.id))
                raise
            self._take(kept, filter)
        return self._shown(kept), True

    async def all(self, enter: Enter) -> list[ShownSubscription]:
        """Everything that whoever asks has made."""
        visitor = await enter("subscriptions")
        visitor.leave()
        made = {id: self._shown(kept) for (owner, id), kept in self._kept.items() if owner == visitor.principal}
        others = {id: shown for id, shown in self._others(visitor) if id not in made}
        return [shown for _, shown in sorted({**made, **others}.items())]

    async def get(self, id: str, enter: Enter) -> ShownSubscription:
        visitor = await enter("subscriptions")
        visitor.leave()
        kept = self._kept.get((visitor.principal, id))
        shown = self._shown(kept) if kept is not None else dict(self._others(visitor)).get(id)
        if shown is None:
            raise UnknownSubscription(id)
        return shown

    def _others(self, visitor: Visitor) -> Iterator[tuple[str, ShownSubscription]]:
        """What is at home here of whoever asks, however it was made, but for what ends with its client."""
        for row in self._broker.router.subscriptions():
            name, linger = row.get("durable"), row.get("linger")
            if name is not None and (linger is None or linger > LINGER):
                if owner_of(name) == visitor.principal or not visitor.principal:
                    id = visitor.connection.principal.called(name)
                    paused: bool = row["paused"]
                    yield id, ShownSubscription(id=id, protocol="HTTP", filter=row["filter"], paused=paused)

    async def update(self, id: str, document: Any, enter: Enter) -> ShownSubscription:
        """Replace a subscription by another one; what is out or waits for it stays."""
        definition = read_definition(await plain_document(document, enter), id)
        if definition.id != id:
            raise WrongParameter("$.id", "The id of a subscription cannot be changed.")
        require_mode(self._modes, definition.config.contentmode)
        filter = filter_of(definition)
        async with self._visit(enter, id) as visitor:
            key = visitor.principal, id
            before = self._kept.get(key)
            if before is not None and definition.sinkcredential is None:
                # It is never shown, so whoever sends back what was shown does not mean to take it away.
                if definition.sink == before.definition.sink:
                    secret = before.definition.sinkcredential
                    definition = msgspec.structs.replace(definition, sinkcredential=secret)
            if definition.config.retroactive and not (before and before.definition.config.retroactive):
                raise WrongParameter("$.config.retroactive", "Only a new subscription begins with documents.")
            if before is None:  # one that was made in another way becomes a resource by this, if there is one
                await _attach(visitor, id, None)
            rate = await self._sinks.ask(definition.sink) if definition.sink is not None else None
            await self._stop_pushing(key)
            former = self._filters.get(key)
            try:
                attached = await _attach(visitor, id, former, definition.config.retry)
                former = attached.filter or former
                await visitor.ask(Change(id, filter))
                kept = StoredDefinition(key[0], definition, rate, None if before is None else before.begun)
                await self._keep(key, kept)
            except BaseException:
                if former is not None:
                    visitor.say(Change(id, former))  # which may have been changed already
                if before is not None:
                    self._take(before, self._filters[key])
                raise
            self._take(kept, filter)
        return self._shown(kept)

    async def delete(self, id: str, enter: Enter) -> None:
        """End a subscription for good, with all that waits for it."""
        async with self._visit(enter, id) as visitor:
            key = visitor.principal, id
            kept = self._kept.get(key)
            await self._stop_pushing(key)
            # One that was made in another way (`GET /events?durable=…`, any client) has no definition here.
            await _attach(visitor, id, self._filters.get(key))
            await visitor.ask(Finish(id))
            if kept is None:
                return
            try:
                await self._keep(key, None)
            except BaseException:
                self._take(kept, self._filters[key])  # from now on: it is shown, so it is there
                raise
            self._filters.pop(key, None)
            self._used.pop(key, None)

    # Steering; also one that was made in another way

    async def pause(self, id: str, enter: Enter) -> PausedSubscription:
        """Deliver nothing until it is resumed, and keep what comes."""
        paused: Paused = await self._steer(Pause(id), enter)
        return PausedSubscription(paused.name, paused.paused)

    async def resume(self, id: str, enter: Enter) -> PausedSubscription:
        """Deliver again."""
        paused: Paused = await self._steer(Resume(id), enter)
        return PausedSubscription(paused.name, paused.paused)

    async def seek(self, id: str, document: Any, enter: Enter) -> SoughtSubscription:
        """Go on from another position."""
        sought: Sought = await self._steer(read_place(document, id), enter)
        return SoughtSubscription(sought.name, sought.dropped, sought.unread)

    async def _steer(self, message: Pause | Resume | Seek, enter: Enter) -> Any:
        async with self._visit(enter, message.name) as visitor:
            return await visitor.ask(message)

    # Inside

    @asynccontextmanager
    async def _visit(self, enter: Enter, id: str) -> AsyncIterator[Visitor]:
        """One after the other for each subscription."""
        visitor = await enter(f"subscription-{id}")
        place = visitor.principal, id
        turn = self._busy.setdefault(place, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield visitor
        finally:
            visitor.leave()
            turn.users -= 1
            if not turn.users:
                del self._busy[place]

    def _take(self, kept: StoredDefinition, filter: Filter) -> None:
        self._kept[kept.key] = kept
        self._filters[kept.key] = filter
        if kept.definition.sink is not None:
            pusher = Pusher(
                self._broker, self._sinks, self._modes, kept, filter, self._pushes, self._gone, self._begun
            )
            self._pushers[kept.key] = pusher
            pusher.start()

    async def _stop_pushing(self, key: Key) -> None:
        pusher = self._pushers.pop(key, None)
        if pusher is not None:
            await pusher.stop()

    async def _keep(self, key: Key, kept: StoredDefinition | None) -> None:
        """Change what is on disk about one subscription; one after the other, or a change would be lost."""
        async with self._saving:
            if kept is not None and key not in self._kept:
                self._require_room()
            following = {other: one for other, one in self._kept.items() if other != key}
            if kept is not None:
                following[key] = kept
            try:
                await asyncio.to_thread(self._keeper.save, list(following.values()))
            except OSError as problem:
                self._broker.log.error("The subscriptions cannot be written.", extra={"reason": str(problem)})
                raise NotStored(problem.strerror or str(problem)) from None
            self._kept = following

    def _require_room(self) -> None:
        limit = self._broker.settings.gateway.subscriptions
        if len(self._kept) >= limit:
            raise GatewayFull(limit)

    async def _begun(self, key: Key, position: RetroactivePosition) -> None:
        """A webhook has the current documents, and goes on with what is published. Raises `NotStored`."""
        if (kept := self._kept.get(key)) is not None:
            await self._keep(key, msgspec.structs.replace(kept, begun=position))

    def _gone(self, kept: StoredDefinition) -> None:
        """A webhook wants no more, and has said that it never will."""
        self._broker.log.warning("A webhook is gone.", extra={"subscription": kept.definition.id})
        task = asyncio.get_running_loop().create_task(self._end(kept))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self, kept: StoredDefinition) -> None:
        def enter(name: str) -> Awaitable[Visitor]:
            return Visitor.enter(self._broker, name, acting_for=kept.owner)

        await self.delete(kept.definition.id, enter)

    def _shown(self, kept: StoredDefinition) -> ShownSubscription:
        definition, inside = kept.definition, self._broker.router.durable
        name = SEPARATOR.join(filter(None, kept.key))
        known = inside.homes.subscriptions.get(name) if inside is not None else None
        pusher = self._pushers.get(kept.key)
        return ShownSubscription(
            id=definition.id,
            source=definition.source,
            types=definition.types,
            filters=cast("Any", definition.filters),
            sink=definition.sink,
            protocolsettings=definition.protocolsettings,
            config=definition.config,
            protocol=definition.protocol,
            filter=str(self._filters.get(kept.key, "")) or "true",
            paused=True if known is not None and known.paused else UNSET,
            status=pusher.statistics() if pusher is not None else UNSET,
        )


async def _attach(visitor: Visitor, id: str, filter: Filter | None, retry: Retry | None = None) -> Attached:
    """Become the taker of a subscription as it is. Raises `UnknownSubscription` if there is none."""
    try:
        attached: Attached = await visitor.ask(Attach(id, filter, as_is=True, retry=retry))
    except RefusedByBroker as problem:
        if problem.error == NoSuchSubscription.__name__:
            raise UnknownSubscription(id) from None
        raise
    return attached
