"""`Client`: what a program does with a network. How it stays in touch with one is in `session`."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

import msgspec

from palio.client.arguments import Ready, Subscribing
from palio.client.attaching import PALIO, Since, attach_request, temporary_name
from palio.client.content import Content, Properties, is_single, make_body, make_document
from palio.client.decoding import Decoding
from palio.client.dialling import Backoff, tls_for
from palio.client.durable import DurableSubscription
from palio.client.errors import AlreadySubscribed, WrongSubscription
from palio.client.knowledge import withdrawal
from palio.client.options import DELAY, UNSENT_LIMIT, ClientStatistics, Options
from palio.client.publishing import Confirmation
from palio.client.query_methods import QueryMethods, as_advertisement
from palio.client.retroactive import RetroactiveSubscription
from palio.client.selecting import filter_at
from palio.client.session import ClientSession
from palio.client.session_handles import Advertised
from palio.client.states import State
from palio.client.subscription import DEFAULT_LIMIT, Subscription, WhenFull
from palio.model.advertisement import Advertisement
from palio.model.body import Body
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.lineage import Lineage
from palio.protocol.durable.wishes import WrongAttachment
from palio.protocol.heartbeat import HEARTBEAT

if TYPE_CHECKING:
    from palio.client.detecting import Detection
    from palio.model.patterns.pattern import Pattern

Value = TypeVar("Value")


class Client(QueryMethods):
    """A client of a network. `async with palio.connect(…) as client`, or `client = await palio.connect(…)`."""

    def __init__(self, address: str, options: Options) -> None:
        super().__init__(ClientSession(address, options))
        self._ids = secrets.token_hex(8)
        self._count = count(1).__next__  # what gets a name here: people see them, so they count by themselves

    def __repr__(self) -> str:
        return f"<Client {self.name} {self.state.value} {self.broker}>"

    # Beginning and end

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        await self._session.open()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection. What was published and acknowledged still goes out, unconfirmed.

        Who waits for something is told `ClientClosed`; iterating over a subscription ends.
        """
        await self._session.close("It was closed.")

    async def drain(self, timeout: float | None = None) -> None:
        """Take nothing new, let what is under way come to its end, and close.

        Subscriptions end when others have read what has come; then everything that was published is confirmed
        or has at least been taken by the broker, and acknowledgements are on disk. Raises `RequestTimeout`
        after `timeout` seconds; the client is closed all the same.
        """
        await self._session.drain(self._session.options.request_timeout if timeout is None else timeout)

    @property
    def name(self) -> str:
        """Its identity, the same after each reconnect."""
        return self._session.name

    @property
    def state(self) -> State:
        """Where it is: connecting, live, suspended, draining or closed."""
        return self._session.state

    @property
    def broker(self) -> str:
        """The name of the broker that it is, or was last, connected to."""
        return self._session.broker

    def statistics(self) -> ClientStatistics:
        """What became of what was published and of what came."""
        return self._dispatch.statistics()

    # Publishing

    @overload
    async def publish(
        self, content: Content, *, timeout: float | None = None, **properties: Unpack[Properties]
    ) -> Confirmation: ...

    @overload
    async def publish(
        self, content: Iterable[Content], *, timeout: float | None = None, **properties: Unpack[Properties]
    ) -> list[Confirmation]: ...

    async def publish(
        self,
        content: Content | Iterable[Content],
        *,
        timeout: float | None = None,
        **properties: Unpack[Properties],
    ) -> Confirmation | list[Confirmation]:
        """Publish, and wait until the broker has confirmed it: it is on disk where there is a journal.

        Properties are `id`, `lifetime` (seconds or a timedelta), `priority` (0 to 9, 9 first) and `payload`
        (bytes). A list is published in its order, and has a list of confirmations. While the connection is away
        this waits, and what was not confirmed is published again under the same id, so that it is there once.
        Raises `InvalidNotification`, `EventTooLarge`, `RequestTimeout`, `ClientClosed`, and what the broker
        refuses with.
        """
        self._session.require_open()
        single = is_single(content)
        several: Iterable[Any] = [content] if single else content
        bodies = [make_body(one, **properties) for one in several]
        future = self._session.publishing.confirmed(self._identified(bodies), single=single)
        confirmed: Confirmation | list[Confirmation] = await self._session.wait_for("publish", future, timeout)
        return confirmed

    async def publish_document(
        self,
        document: str | bytes,
        attributes: Content | None = None,
        *,
        id: str | None = None,
        lifetime: timedelta | float | None = None,
        priority: int | None = None,
        timeout: float | None = None,
    ) -> Confirmation:
        """Publish an XML document, and wait as `publish` does. Its broker reads it: what the paths of its
        family find are its attributes, and the document, byte for byte, is its payload. `attributes` of your
        own go with it.

        Raises `DocumentRefused` and `DocumentTooLarge` for what cannot be read, `NoFamily` if it belongs to
        none, and what `publish` does.
        """
        self._session.require_open()
        body = make_document(document, attributes or {}, id=id, lifetime=lifetime, priority=priority)
        future = self._session.publishing.confirmed(self._identified([body]), single=True, documents=True)
        confirmed: Confirmation = await self._session.wait_for("publish", future, timeout)
        return confirmed

    async def withdraw_document(
        self, family: str, key: str, *, id: str | None = None, timeout: float | None = None
    ) -> Confirmation:
        """Say that there is no such document any more, and wait as `publish` does.

        That is a version like any other: it comes to whoever has subscribed to what the document was, with the
        attribute `xml.withdrawn`. Raises `NoSuchDocument` and `DocumentWithdrawn` as `RequestRefused`, and what
        `publish` does.
        """
        self._session.require_open()
        body = make_body(withdrawal(family, key), id=id)
        future = self._session.publishing.confirmed(self._identified([body]), single=True, documents=True)
        confirmed: Confirmation = await self._session.wait_for("withdraw", future, timeout)
        return confirmed

    def _identified(self, bodies: list[Body]) -> list[Body]:
        """With ids, by which a journal recognises what is published again."""
        if not self._session.journal:
            return bodies
        return [
            body if body.id is not None else msgspec.structs.replace(body, id=f"{self._ids}-{self._count()}")
            for body in bodies
        ]

    @overload
    def publish_nowait(
        self, content: Content, *, confirm: Literal[False] = False, **properties: Unpack[Properties]
    ) -> None: ...

    @overload
    def publish_nowait(
        self, content: Content, *, confirm: Literal[True], **properties: Unpack[Properties]
    ) -> asyncio.Future[Confirmation]: ...

    def publish_nowait(
        self, content: Content, *, confirm: bool = False, **properties: Unpack[Properties]
    ) -> asyncio.Future[Confirmation] | None:
        """Publish without waiting; it goes out with others, at the latest at the end of this turn of the loop.

        What has left when a connection is lost may be lost with it. `await flush()` from time to time: it waits
        while too much is under way. Raises `InvalidNotification`, `TooMuchUnsent` or `ClientClosed`.

        With `confirm` it is like `publish`, and the confirmation can be waited for later.
        """
        session = self._session
        if session.state is not State.LIVE:
            session.require_open()
        if confirm:
            bodies = self._identified([make_body(content, **properties)])
            return session.publishing.confirmed(bodies, single=True)
        if properties or type(content) is not dict or not session.publishing.plain(content):
            session.publishing.nowait(make_body(content, **properties))
        return None

    def publish_body(self, body: Body) -> None:
        """Publish what is in bytes already, as `publish_nowait` does."""
        self._session.require_open()
        self._session.publishing.nowait(body)

    async def flush(self, *, arrived: bool = False, timeout: float | None = None) -> None:
        """Wait until all that was published has left, or with `arrived`: until the broker has taken it.

        Others get a turn of the event loop in any case. Raises `RequestTimeout`, and `ConnectionLost` if it
        cannot be known whether it has arrived.
        """
        self._session.require_open()
        await asyncio.sleep(0)
        await self._session.wait_for("flush", self._session.publishing.sent(), timeout)
        if arrived:
            await self._session.arrived(timeout)

    def _handle(self, kind: str) -> str:
        """What something is called that its user gives no name; no durable subscription is called so."""
        while (name := f"{kind}{self._count()}") in self._session.held:
            pass
        return name

    async def advertise(
        self, advertisement: str | Advertisement, *, ready: Ready = "broker", timeout: float | None = None
    ) -> Advertised:
        """Say what will be published. Returns when the broker, or (`ready`) the whole network knows."""
        self._session.require_open()
        advertised = Advertised(self._session, self._handle("a"), as_advertisement(advertisement))
        await advertised.ask(timeout, ready=ready == "network")
        return advertised

    # Subscribing

    @overload
    async def subscribe(
        self, filter: str | Filter | None, *, into: type[Value], durable: str, **options: Unpack[Subscribing]
    ) -> DurableSubscription[Value]: ...

    @overload
    async def subscribe(
        self, filter: str | Filter | None, *, into: None = None, durable: str, **options: Unpack[Subscribing]
    ) -> DurableSubscription[Notification]: ...

    @overload
    async def subscribe(
        self,
        filter: str | Filter | None,
        *,
        into: type[Value],
        durable: None = None,
        **options: Unpack[Subscribing],
    ) -> Subscription[Value]: ...

    @overload
    async def subscribe(
        self,
        filter: str | Filter | None,
        *,
        into: None = None,
        durable: None = None,
        **options: Unpack[Subscribing],
    ) -> Subscription[Notification]: ...

    async def subscribe(
        self,
        filter: str | Filter | None,
        *,
        into: type[Any] | None = None,
        durable: str | None = None,
        dialect: str = PALIO,
        since: Since | None = None,
        retroactive: bool = False,
        after: Mapping[str, int] | None = None,
        lineages: Mapping[str, Lineage] | None = None,
        ready: Ready = "broker",
        limit: int = DEFAULT_LIMIT,
        when_full: WhenFull = "drop-newest",
        in_flight: int | None = None,
        anew: bool = False,
        change: bool = False,
        linger: float | None = None,
        attempts: int | None = None,
        backoff: Backoff | float | None = None,
        timeout: float | None = None,
    ) -> Subscription[Any]:
        """Ask for all that the filter selects. Returns when the broker or (`ready`) the whole network knows.

        `dialect` is what the text of the filter is written in, such as "mqtt": `docs/dialects.md`. A filter
        about XML documents, `family card where xpath("/card/price") < 10`, is read by the broker; all brokers
        then extract its paths (`docs/xml.md`).

        `limit` and `when_full` bound what waits here for a slow reader.

        With `durable`, a name, it outlives this client and loses nothing that is not acknowledged; `in_flight`
        is how many events may be out without that. If there is one of that name, this client becomes its taker;
        if it is at a broker that cannot be reached now, that is refused, unless `anew` is asked for.

        A filter that means something else than that of the one that is there raises `FilterDiffers`, and
        whoever takes it goes on. With `change` it is changed in place, as its method `change` does; with None
        as the filter it is taken as it is, and `NoSuchSubscription` raised if there is none. What it selects is
        its `filter` in any case.

        `linger` is how many seconds it outlives its taker, `attempts` after how many an event becomes a dead
        letter, and `backoff` how long the pauses between them are: seconds, or a `palio.Backoff`, whose pauses
        double from the first to the longest. They stay with the subscription until a taker asks for others;
        what nobody has asked for is as the broker says.

        `since` reaches back: a datetime or a number of seconds since 1970, "all", or the `position` of an
        event. History comes first, and then what is published, without gap or duplicate; where a broker names a
        lake, what its journal does not have any more comes from there. Without `durable`, such a subscription
        ends with this client, and events need not be acknowledged. Of the brokers that are named in `after`,
        which goes with `since`, only what follows those sequences is wanted.

        `retroactive` begins with the current documents (`document`) that the filter selects, each once, and
        goes on with what is published. Versions that are not current any more never come. With `durable` that
        is so for a new subscription, and with `filter=None` for one that was made to begin so; whoever is
        interrupted before all of these documents are acknowledged begins with them again.

        A journal may have come back older than it was when the position was noted, and have given its sequences
        again (docs/delivery.md). With the `lineages` of the journals, as `journals` told them then, the
        subscription goes on exactly where it was the same; without them that is noticed only where a journal
        has never come as far as the position, and the present life of its broker is what comes. What may be
        missing is in `gaps`.

        `into` is a type to decode events into (a dataclass, a `msgspec.Struct`, a `TypedDict` or a model of
        pydantic): `event.value` is an object of it. What cannot be decoded is a dead letter of a durable
        subscription; otherwise `UndecodableEvent` is raised in its place.

        If history cannot be read, the subscription raises `HistoryUnavailable` when it is read.

        Raises `FilterSyntaxError`, `UnknownDialect`, `ContradictoryFilter`, `WrongType`, `WrongAttachment`,
        `RequestTimeout`, and what the broker refuses with.
        """
        session = self._session
        session.require_open()
        wanted = None if filter is None else await filter_at(session, filter, dialect, timeout)
        if wanted is None and (durable is None or change):
            raise WrongSubscription("None is for a durable subscription that is there; else name a filter.")
        if change and durable is None:
            raise WrongSubscription("Only a durable subscription can be changed; name it with durable=….")
        if retroactive and (change or since is not None or after is not None):
            raise WrongSubscription("retroactive=True does not go with change, since or after.")
        decoding = None if into is None else Decoding(into)
        if durable is None:
            for setting, wish in (("linger", linger), ("attempts", attempts), ("backoff", backoff)):
                if wish is not None:
                    raise WrongAttachment(setting, "It is for durable subscriptions; name one (durable=…).")
        subscription: Subscription[Any]
        if durable is None and since is None and after is None and not retroactive:
            assert wanted is not None
            subscription = Subscription(session, self._handle("s"), wanted, limit, when_full, into=decoding)
        else:
            temporary = durable is None
            name = temporary_name(session.name, self._count()) if durable is None else durable
            if name in session.held:
                raise AlreadySubscribed(name)
            attach = attach_request(
                name,
                wanted,
                since,
                after=after,
                lineages=lineages,
                in_flight=in_flight,
                anew=anew,
                as_is=change,
                temporary=temporary,
                linger=linger,
                attempts=attempts,
                backoff=backoff,
            )
            kind = RetroactiveSubscription if retroactive else DurableSubscription
            subscription = kind(session, attach, temporary=temporary, into=decoding)
        await subscription.ask(timeout, ready=ready == "network")
        if change and isinstance(subscription, DurableSubscription):
            await subscription.change_if_other(wanted, timeout)
        return subscription

    async def detect(
        self,
        patterns: Mapping[str, str | Pattern],
        *,
        time: str | None = None,
        delay: float = DELAY,
        ready: Ready = "broker",
        limit: int = DEFAULT_LIMIT,
        timeout: float | None = None,
    ) -> Detection:
        """Ask for matches of patterns, given by name: `async for match in await client.detect(…)`.

        An event's time is when the first broker took it, which is the same for all that was published together,
        or what the attribute named by `time` has. Events may be up to `delay` seconds older than the newest
        that has come; what is older still is dropped and counted. So a match is told when something newer than
        its last event, by that much, has come, or time has passed: `delay`, and at least two seconds.

        Up to `limit` events wait here. If more come than can be looked at, it ends with `SlowConsumer`, as what
        is found would no longer be true.

        Raises `PatternError` for what is no pattern, or one that can never be found, and what `subscribe` does.
        """
        from palio.client.detecting import Detection, pattern_set, selected_by  # noqa: PLC0415 (it needs matching)

        prepared = pattern_set(patterns)
        subscription = await self.subscribe(
            selected_by(prepared), ready=ready, limit=limit, when_full="error", timeout=timeout
        )
        return Detection(subscription, prepared, delay, time)


def connect(
    address: str,
    *,
    token: str | None = None,
    name: str | None = None,
    publisher: str = "",
    tls: ssl.SSLContext | str | None = None,
    connect_timeout: float = 5.0,
    connect_within: float = 0.0,
    request_timeout: float = 10.0,
    heartbeat: float = HEARTBEAT,
    reconnect: bool = True,
    give_up_after: float | None = None,
    backoff: Backoff = Backoff(),  # noqa: B008 (it is immutable)
    unsent_limit: int = UNSENT_LIMIT,
    other_brokers: bool = True,
    on_state: Callable[[State, str], None] | None = None,
) -> Client:
    """A client of the brokers at `palio://host:port`, of which several may be named after commas.

    `ws://host:port` (and `wss://…`) reaches a broker through its HTTP port, by WebSocket; `quic://…` by UDP.

    Use it as `async with palio.connect(…) as client`, or `client = await palio.connect(…)` and later
    `await client.close()`. Raises `WrongAddress` here, and `NotConnected` when it is opened.

    With `palios://` and `quic://` the connection is protected by TLS, and the broker's certificate must be for
    its host and signed by an authority that the system trusts. `tls` is the file of another authority, or a
    context of your own, which may have a certificate that shows who connects, though not by QUIC. `token` does
    that, too.

    `name` is the client's identity, the same after each reconnect; if none is given, it says which program on
    which machine it is, with something by chance. What is
    published again under the same id is recognised by that name, or by that of a `publisher` for which several
    clients speak, at the same time or one after the other. One attempt
    to connect takes at most `connect_timeout` seconds; `connect_within` says how long the first connection is
    tried, `give_up_after` how long one that was lost (None: for ever), with `backoff` between attempts. A
    broker that has said nothing for three times `heartbeat` seconds is taken for gone. `unsent_limit` is how
    many bytes may wait to be sent. If none of the address answers any more, it goes on at `other_brokers`, of
    which the one that it was with has told. `on_state` is called with each new state and its reason.
    """
    return Client(
        address,
        Options(
            token=token,
            name=name or "",
            publisher=publisher,
            tls=tls_for(address, tls),
            connect_timeout=connect_timeout,
            connect_within=connect_within,
            request_timeout=request_timeout,
            heartbeat=heartbeat,
            reconnect=reconnect,
            give_up_after=give_up_after,
            backoff=backoff,
            unsent_limit=unsent_limit,
            other_brokers=other_brokers,
            on_state=on_state,
        ),
    )
