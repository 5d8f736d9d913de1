"""`Client`: the connection of a program to a network, whichever broker it is with at the moment.

A client is in one of a few states (`states`). It remembers what it has asked for that lasts, so that a new
connection is made to be like the one before without its user: subscriptions, advertisements, watches, and
whatever was published and not confirmed. What was asked for once is said again where that does no harm;
otherwise whoever waits is told that the connection was lost.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import msgspec

from palio.client.address import parse_addresses
from palio.client.connection import Connection
from palio.client.dialling import Backoff, dial
from palio.client.durable import DurableSubscription
from palio.client.errors import ClientClosed, RequestTimeout, error_of
from palio.client.publishing import (
    Confirmation,
    Content,
    Publishing,
    PublishStatistics,
    make_body,
)
from palio.client.reading import Arrived, Asked, HandedOut
from palio.client.states import TRANSITIONS, State
from palio.client.subscription import DEFAULT_LIMIT, Ready, Subscription, SubscriptionStatistics, WhenFull
from palio.client.waiting import OnLoss, Waiting
from palio.model import body as bodies
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.routing import messages
from palio.routing.durable.messages import Attach, Attached, Changed, Done, DurableReady, Taken
from palio.routing.inquiries import Respond
from palio.routing.messages import Accepted, Ended, Published, Refused
from palio.routing.protocol import HEARTBEAT, PROTOCOL, Greet, Lost, Role, Welcome

Result = TypeVar("Result")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a client behaves. Times are in seconds."""

    token: str | None = None
    name: str = ""
    tls: ssl.SSLContext | None = None
    connect_timeout: float = 5.0  # for one attempt
    connect_within: float = 0.0  # how long the first connection is tried again if no broker is there
    request_timeout: float = 10.0
    heartbeat: float = HEARTBEAT
    reconnect: bool = True
    give_up_after: float | None = None  # how long a lost connection is tried to be made again
    backoff: Backoff = Backoff()
    unsent_limit: int = 64 * 1024 * 1024  # bytes published and not sent
    on_state: Callable[[State, str], None] | None = None


class ClientStatistics(msgspec.Struct, frozen=True):
    """A client, as data."""

    state: str
    broker: str
    connections: int
    publishing: PublishStatistics
    subscriptions: dict[str, SubscriptionStatistics]


class Client:
    """A client of a network. `async with palio.connect(…) as client`, or `client = await palio.connect(…)`."""

    def __init__(self, address: str, options: Options) -> None:
        self._addresses = parse_addresses(address)
        self._options = options
        self.name = options.name or f"client-{secrets.token_hex(8)}"
        self.state = State.CONNECTING
        self.broker = ""
        self.is_closed_in_order = False
        self._reason = ""
        self._connections = 0
        self._connection: Connection | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._journal = False
        self._ids = secrets.token_hex(8)
        self._count = 0
        self._waiting = Waiting()
        self._subscriptions: dict[str, Subscription] = {}
        self._acknowledged: list[asyncio.Future[None]] = []
        self.loop: asyncio.AbstractEventLoop
        self._publishing: Publishing
        self._handlers: dict[type, Callable[[Any], None]] = {
            Arrived: self._arrived,
            HandedOut: self._handed,
            Asked: self._asked,
            Published: self._published,
            Refused: self._refused,
            Accepted: self._accepted,
            Attached: self._attached,
            messages.Ready: lambda answer: self._became_ready(answer.handle),
            DurableReady: lambda answer: self._became_ready(answer.name),
            Ended: self._ended,
            Changed: self._changed,
            Done: self._done,
            Taken: self._taken,
            Lost: self._events_lost,
        }

    # Beginning

    async def open(self) -> Self:
        """Connect. Raises `NotConnected`, or what the broker refuses with."""
        if self.state is State.CLOSED:
            raise ClientClosed(self._reason)
        if self._connections == 0:
            self.loop = asyncio.get_running_loop()
            self._publishing = Publishing(self._options.unsent_limit)
            try:
                await self._connect(self._options.connect_within)
            except BaseException as problem:
                self._go("closed", f"It could not connect: {problem}")
                raise
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self.open().__await__()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _go(self, event: str, reason: str) -> None:
        """Change the state as the table of transitions says."""
        before, self.state = self.state, TRANSITIONS[self.state][event]
        if self.state is not before:
            self._reason = reason
            if self._options.on_state is not None:
                self._options.on_state(self.state, reason)

    @property
    def is_over(self) -> bool:
        return self.state is State.CLOSED

    async def _connect(self, within: float) -> None:
        options = self._options
        greet = Greet(PROTOCOL, Role.CLIENT, self.name, options.token, heartbeat=options.heartbeat)

        def make() -> Connection:
            return Connection(greet, self._handlers, self._lost, self._resumed)

        connection, welcome = await dial(
            self._addresses,
            make,
            options.tls,
            timeout=options.connect_timeout,
            within=within,
            backoff=options.backoff,
        )
        if self.is_over:
            connection.end(self._reason)
            return
        self._welcomed(connection, welcome)

    def _welcomed(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        self._connections += 1
        self.broker = welcome.broker
        self._journal = welcome.journal
        self._go("welcomed", f"The broker {welcome.broker} has taken the connection.")
        for subscription in self._subscriptions.values():
            connection.say(subscription.request())
        for message in self._waiting.again():
            connection.say(message)
        self._publishing.connected(connection, welcome.max_frame)

    def _resumed(self) -> None:
        self._publishing.send()

    def _lost(self, connection: Connection, reason: str) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        self._publishing.disconnected()
        self._waiting.lost(reason)
        for subscription in list(self._subscriptions.values()):
            subscription.disconnected()
        if self.is_over:
            return
        self._go("lost", reason)
        if connection.refusal is not None or not self._options.reconnect:
            self._over(reason)
        else:
            self._reconnecting = self.loop.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        limit = self._options.give_up_after
        try:
            await self._connect(float("inf") if limit is None else limit)
        except PalioError as problem:
            self._over(str(problem))

    # The end

    async def close(self) -> None:
        """End the connection. What is published is still sent; what is not confirmed is told to who waits."""
        if self.is_over:
            return
        connection = self._connection
        if connection is not None:
            self._publishing.flush()
            for subscription in list(self._subscriptions.values()):
                subscription.flush()
        self.is_closed_in_order = True
        self._over("It was closed.")
        if connection is not None:
            await asyncio.wait([connection.closed], timeout=self._options.connect_timeout)

    async def drain(self, timeout: float | None = None) -> None:
        """Take nothing new, let what is under way come to its end, and close.

        Subscriptions end when what has come is read; then everything that was published is confirmed or has at
        least been taken by the broker, and so are acknowledgements. Raises `RequestTimeout` after `timeout`
        seconds; the client is closed all the same.
        """
        if self.is_over:
            return
        self._go("drained", "It is being drained.")
        seconds = self._options.request_timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*[one.drain() for one in list(self._subscriptions.values())])
                await self._publishing.all_confirmed()
                if self._connection is not None:
                    await self._connection.ping(seconds)
        except TimeoutError:
            raise RequestTimeout("drain", seconds) from None
        finally:
            await self.close()

    def _over(self, reason: str) -> None:
        """Nothing goes on from here."""
        self._go("closed", reason)
        problem = ClientClosed(reason)
        self._waiting.close(problem)
        self._publishing.close(problem)
        for subscription in list(self._subscriptions.values()):
            subscription.closed(problem)
        if self._reconnecting is not None and self._reconnecting is not asyncio.current_task():
            self._reconnecting.cancel()
        if self._connection is not None:
            self._connection.end(reason)

    def statistics(self) -> ClientStatistics:
        return ClientStatistics(
            self.state.value,
            self.broker,
            self._connections,
            self._publishing.statistics(),
            {name: one.statistics() for name, one in self._subscriptions.items()},
        )

    # Publishing

    @overload
    async def publish(
        self,
        content: Content,
        *,
        id: str | None = None,
        lifetime: timedelta | float | None = None,
        priority: int | None = None,
        payload: bytes | None = None,
        timeout: float | None = None,
    ) -> Confirmation: ...

    @overload
    async def publish(
        self,
        content: Iterable[Content],
        *,
        lifetime: timedelta | float | None = None,
        priority: int | None = None,
        timeout: float | None = None,
    ) -> list[Confirmation]: ...

    async def publish(
        self,
        content: Content | Iterable[Content],
        *,
        id: str | None = None,
        lifetime: timedelta | float | None = None,
        priority: int | None = None,
        payload: bytes | None = None,
        timeout: float | None = None,
    ) -> Confirmation | list[Confirmation]:
        """Publish, and wait until the broker has confirmed it: it is on disk where there is a journal.

        A list is published in its order, and has a list of confirmations. While the connection is away this
        waits, and what was not confirmed is published again under the same id, so that it is there once.
        """
        future = self._publish(content, id, lifetime, priority, payload)
        confirmations = await self.wait_for("publish", future, timeout)
        return confirmations[0] if isinstance(content, Mapping | Notification) else confirmations

    def _publish(
        self,
        content: Content | Iterable[Content],
        id: str | None,
        lifetime: timedelta | float | None,
        priority: int | None,
        payload: bytes | None,
    ) -> asyncio.Future[list[Confirmation]]:
        self._require_open()
        several = [content] if isinstance(content, Mapping | Notification) else list(content)
        made = [make_body(one, id, lifetime, priority, payload) for one in several]
        return self._publishing.confirmed([self._identified(body) for body in made] if self._journal else made)

    def _identified(self, body: bodies.Body) -> bodies.Body:
        if body.id is not None:
            return body
        self._count += 1
        return msgspec.structs.replace(body, id=f"{self._ids}-{self._count}")

    def publish_nowait(
        self,
        content: Content,
        *,
        id: str | None = None,
        lifetime: timedelta | float | None = None,
        priority: int | None = None,
        payload: bytes | None = None,
    ) -> None:
        """Publish without waiting; it goes out with others at the end of this turn of the event loop.

        What has left when a connection is lost may be lost with it. `await flush()` from time to time: it waits
        while too much is under way. Raises `InvalidNotification`, `TooMuchUnsent` or `ClientClosed`.
        """
        if self.state is not State.LIVE:
            self._require_open()
        if (
            type(content) is not dict
            or id is not None
            or lifetime is not None
            or priority is not None
            or payload is not None
            or not self._publishing.plain(content)
        ):
            self._publishing.nowait(make_body(content, id, lifetime, priority, payload))

    async def flush(self, *, arrived: bool = False) -> None:
        """Wait until all that was published has left this client, or with `arrived`: has been taken by the
        broker.
        """
        self._require_open()
        await self._publishing.sent()
        if arrived and self._connection is not None:
            await self._connection.ping(self._options.request_timeout)

    # Subscribing

    async def subscribe(
        self,
        filter: str | Filter,
        *,
        durable: str | None = None,
        since: datetime | float | str | Mapping[str, int] | None = None,
        ready: Ready = "broker",
        limit: int = DEFAULT_LIMIT,
        when_full: WhenFull = "drop-newest",
        in_flight: int | None = None,
        anew: bool = False,
        timeout: float | None = None,
    ) -> Subscription:
        """Ask for all that the filter selects. Returns when the broker holds it, or (`ready`) the whole
        network.

        `limit` and `when_full` bound what waits here for a slow reader. With `durable`, a name, it outlives
        this client and loses nothing, up to what is acknowledged; `in_flight` is how many events may wait for
        that. Raises `FilterSyntaxError`, `ContradictoryFilter`, and what the broker refuses with.
        """
        self._require_open()
        wanted = Filter.parse(filter) if isinstance(filter, str) else filter
        wanted.require_satisfiable()
        self._count += 1
        subscription: Subscription
        if durable is None:
            subscription = Subscription(self, f"s{self._count}", wanted, limit, when_full)
        else:
            attach = Attach(durable, wanted, anew=anew)
            subscription = DurableSubscription(self, durable, wanted, attach, own_acknowledgements=False)
        self._subscriptions[subscription.name] = subscription
        try:
            await self.ask(subscription.request(), subscription.subject, on_loss="keep", timeout=timeout)
            if ready == "network":
                await subscription.ready(timeout)
        except BaseException:
            self._subscriptions.pop(subscription.name, None)
            raise
        return subscription

    # Requests and their answers

    def _require_open(self) -> None:
        if self.state in (State.CLOSED, State.DRAINING) or self._connections == 0:
            raise ClientClosed(self._reason or "It was not opened; `async with` or `await` does that.")

    def say(self, message: Any) -> None:
        """Send a message, if there is a connection."""
        if self._connection is not None:
            self._connection.say(message)

    async def ask(self, message: Any, subject: str, *, on_loss: OnLoss, timeout: float | None = None) -> Any:
        """Send a request and wait for its answer."""
        future = self._waiting.add(subject, message, on_loss)
        self.say(message)
        return await self.wait_for(subject, future, timeout)

    async def wait_for(self, subject: str, awaited: Awaitable[Result], timeout: float | None) -> Result:
        """Wait for something. Raises `RequestTimeout`."""
        seconds = self._options.request_timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                return await awaited
        except TimeoutError as problem:
            if isinstance(problem, PalioError):
                raise
            raise RequestTimeout(subject, seconds) from None
        finally:
            self._waiting.forget(subject)

    def _refused(self, refused: Refused) -> None:
        kind, _, name = refused.subject.partition(" ")
        if kind == "publish":
            self._publishing.refused(refused)
            return
        problem = error_of(refused)
        if self._waiting.refuse(refused.subject, problem):
            return
        subscription = self._subscriptions.get(name)
        if subscription is not None and subscription.subject == refused.subject:
            subscription.fail(problem)  # it was held before, and could not be asked for again

    def _published(self, answer: Published) -> None:
        self._publishing.published(answer)

    def _accepted(self, answer: Accepted) -> None:
        self._waiting.answer(f"subscribe {answer.handle}", answer)

    def _attached(self, answer: Attached) -> None:
        subscription = self._subscriptions.get(answer.name)
        if isinstance(subscription, DurableSubscription):
            subscription.accepted(answer)
        self._waiting.answer(f"attach {answer.name}", answer)

    def _changed(self, answer: Changed) -> None:
        self._waiting.answer(f"change {answer.name}", answer)

    def _became_ready(self, name: str) -> None:
        subscription = self._subscriptions.get(name)
        if subscription is not None:
            subscription.became_ready()

    def _ended(self, answer: Ended) -> None:
        for name in answer.handles:
            if not self._waiting.answer(f"release {name}", answer):
                self._waiting.answer(f"finish {name}", answer)

    def forget(self, subscription: Subscription) -> None:
        """A subscription has ended; it is not asked for again."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]

    # Events

    def _arrived(self, message: Arrived) -> None:
        handles = message.handles
        for handle in handles[1:]:
            subscription = self._subscriptions.get(handle)
            if subscription is not None:
                subscription.take([event.copy() for event in message.envelopes])
        subscription = self._subscriptions.get(handles[0])
        if subscription is not None:
            subscription.take(message.envelopes)

    def _handed(self, message: HandedOut) -> None:
        subscription = self._subscriptions.get(message.name)
        if isinstance(subscription, DurableSubscription):
            subscription.hand(message.deliveries)

    def _asked(self, message: Asked) -> None:
        found = [self._subscriptions[one] for one in message.handles if one in self._subscriptions]
        if not found:
            self.respond(message.id, None)
        for subscription in found:
            event = message.envelope.copy()
            event._request = message.id
            subscription.take([event])

    def respond(self, request: str, content: Content | None) -> None:
        """Reply to a request."""
        notification = None if content is None else Notification.of_body(make_body(content))
        self.say(Respond(request, notification))

    def _done(self, answer: Done) -> None:
        subscription = self._subscriptions.get(answer.name)
        if isinstance(subscription, DurableSubscription):
            subscription.done(answer)

    def _taken(self, answer: Taken) -> None:
        subscription = self._subscriptions.get(answer.name)
        if isinstance(subscription, DurableSubscription):
            subscription.taken()

    def _events_lost(self, lost: Lost) -> None:
        for subscription in list(self._subscriptions.values()):
            subscription.lost(lost.count, lost.reason)


def connect(
    address: str,
    *,
    token: str | None = None,
    name: str | None = None,
    tls: ssl.SSLContext | None = None,
    connect_timeout: float = 5.0,
    connect_within: float = 0.0,
    request_timeout: float = 10.0,
    heartbeat: float = HEARTBEAT,
    reconnect: bool = True,
    give_up_after: float | None = None,
    backoff: Backoff = Backoff(),  # noqa: B008 (it is immutable)
    unsent_limit: int = 64 * 1024 * 1024,
    on_state: Callable[[State, str], None] | None = None,
) -> Client:
    """A client of the brokers at `palio://host:port`, of which several may be named after commas.

    Use it as `async with palio.connect(…) as client`, or `client = await palio.connect(…)` and
    `client.close()`.

    `name` is the client's identity, the same after each reconnect, and by chance if none is given. One attempt
    to connect takes at most `connect_timeout` seconds; `connect_within` says how long the first connection is
    tried, `give_up_after` how long one that was lost. `unsent_limit` is how many bytes may wait to be sent.
    `on_state` is called with each new state and its reason.
    """
    return Client(
        address,
        Options(
            token=token,
            name=name or "",
            tls=tls,
            connect_timeout=connect_timeout,
            connect_within=connect_within,
            request_timeout=request_timeout,
            heartbeat=heartbeat,
            reconnect=reconnect,
            give_up_after=give_up_after,
            backoff=backoff,
            unsent_limit=unsent_limit,
            on_state=on_state,
        ),
    )
