"""The client for programs without an event loop, with the same names: `palio.sync.connect(…)`.

    with palio.sync.connect("palio://127.0.0.1:7070") as client:
        subscription = client.subscribe("price > 100")
        client.publish({"symbol": "ACME", "price": 101.5})
        for event in subscription:
            print(event["price"])

Every call waits for its answer, with the same time-outs and errors as in `palio.Client`, where each is
explained. `publish_nowait` does not wait. A client may be used by several threads; callbacks come in a thread
of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, overload
from weakref import WeakSet

from palio import client as asynchronous
from palio.client.arguments import (
    Advertising,
    Connecting,
    Detecting,
    LookingAtDocuments,
    PublishArguments,
    Replaying,
    Requesting,
    Subscribing,
    Surveying,
)
from palio.client.attaching import PALIO, Since
from palio.client.blocking import Worker
from palio.client.blocking_event import Event
from palio.client.blocking_families import BlockingFamilies
from palio.client.content import Content, Properties
from palio.client.durable import DurableSubscription
from palio.client.errors import NoEvent, SubscriptionEnded
from palio.client.event import Content_co
from palio.client.options import LINK_WITHIN, ClientStatistics
from palio.client.publishing import Confirmation
from palio.client.replay import Survey
from palio.client.replies import Watch as AsynchronousWatch
from palio.client.session_handles import SessionHandle
from palio.client.states import State
from palio.client.subscription import SubscriptionStatistics
from palio.matching.patterns import DetectorStatistics, Match
from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.model.patterns.pattern import Pattern
from palio.protocol.durable.control import Sought
from palio.protocol.durable.journals import JournalRange, JournalsListed, JournalTrimmed
from palio.protocol.durable.lineage import Lineage
from palio.protocol.durable.subscriptions import Changed
from palio.protocol.inquiries import Hop

__all__ = ["Advertised", "Client", "Detection", "Event", "Subscription", "Watch", "connect"]

# Events that are fetched from a subscription at a time.
FETCHED = 256

Value = TypeVar("Value")


class _Holding:
    """What a client holds, until the end of a `with`."""

    def __init__(self, held: SessionHandle, worker: Worker) -> None:
        self._held = held
        self._worker = worker

    @property
    def name(self) -> str:
        return self._held.name

    def ready(self, timeout: float | None = None) -> None:
        """Wait until the whole network knows of it."""
        self._worker.run(self._held.ready(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.run(self._held.__aexit__(kind, problem, trace))


class Advertised(_Holding):
    """An advertisement of a client."""

    def withdraw(self) -> None:
        """End it."""
        self._worker.run(self._held.release())


class Watch(_Holding):
    """Whether anybody wants what an advertisement describes."""

    _held: AsynchronousWatch

    @property
    def wanted(self) -> bool:
        return self._held.wanted

    def __iter__(self) -> Iterator[bool]:
        return self._worker.iterate(aiter(self._held))

    def stop(self) -> None:
        """End it."""
        self._worker.run(self._held.release())


class Detection:
    """Matches of patterns: `for match in detection`."""

    def __init__(self, detection: asynchronous.Detection, worker: Worker) -> None:
        self._detection = detection
        self._worker = worker

    def __iter__(self) -> Iterator[Match]:
        return self._worker.iterate(aiter(self._detection))

    def statistics(self) -> DetectorStatistics:
        """What is remembered, and what was counted, drops by their reason."""
        return self._detection.statistics()

    def stop(self) -> None:
        """End it. Iterating over it ends."""
        self._worker.run(self._detection.stop())


class Subscription(_Holding, Generic[Content_co]):
    """Events that a filter selects: `for event in subscription`."""

    _held: asynchronous.Subscription[Content_co]

    def __init__(self, held: asynchronous.Subscription[Content_co], worker: Worker) -> None:
        super().__init__(held, worker)
        self._fetched: deque[asynchronous.Event[Content_co]] = deque()

    @property
    def filter(self) -> Filter:
        return self._held.filter

    def __iter__(self) -> Iterator[Event[Content_co]]:
        return self.events()

    def events(self, timeout: float | None = None) -> Iterator[Event[Content_co]]:
        """Its events, until it ends, or until none has come for `timeout` seconds."""
        while True:
            try:
                yield self.next(timeout)
            except (SubscriptionEnded, NoEvent) as problem:
                if type(problem) in (SubscriptionEnded, NoEvent):
                    return
                raise

    def next(self, timeout: float | None = None) -> Event[Content_co]:
        """The next event. Raises `NoEvent` or `SubscriptionEnded`."""
        while True:
            try:
                return Event(self._fetched.popleft(), self._worker)
            except IndexError:
                self._fetched.extend(self._worker.run(self._held.take_all(FETCHED, timeout)))

    def _put_back(self) -> None:
        """Give back what was fetched and nobody has looked at."""
        fetched, self._fetched = self._fetched, deque()
        self._worker.run(self._held.put_back(fetched))

    def change(self, filter: str | Filter, *, dialect: str = PALIO) -> Changed:
        """Change the filter of a durable subscription in place. Returns what that drops and adds."""
        return self._worker.run(self._durable().change(filter, dialect=dialect))

    def detach(self) -> None:
        """Stop taking the events of a durable subscription, which stays."""
        self._worker.run(self._durable().detach())
        self._fetched.clear()  # it comes again, to whoever attaches next

    def _durable(self) -> DurableSubscription[Content_co]:
        if not isinstance(self._held, DurableSubscription):
            raise TypeError("This is for durable subscriptions: subscribe(…, durable=…).")
        return self._held

    def unsubscribe(self) -> None:
        """End it."""
        self._worker.run(self._held.unsubscribe())

    def statistics(self) -> SubscriptionStatistics:
        """What became of its events."""
        return self._held.statistics()


class Client:
    """A client of a network: `with palio.sync.connect(…) as client`."""

    def __init__(self, client: asynchronous.Client) -> None:
        self._client = client
        self._worker = Worker(client)
        self.families = BlockingFamilies(client.families, self._worker)
        self._subscriptions: WeakSet[Subscription[Any]] = WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. What was published still goes out."""
        self._end(timeout=None, drain=False)

    def drain(self, timeout: float | None = None) -> None:
        """Let what is under way come to its end, and close. Raises `RequestTimeout`."""
        self._end(timeout=timeout, drain=True)

    def _end(self, timeout: float | None, drain: bool) -> None:
        if self.state is State.CLOSED:
            self._worker.stop()
            return
        try:
            if drain:
                for subscription in self._subscriptions:
                    subscription._put_back()
            self._worker.run(self._worker.end(drain=drain, timeout=timeout))
        finally:
            self._worker.stop()

    @property
    def name(self) -> str:
        """Its identity."""
        return self._client.name

    @property
    def state(self) -> State:
        """Where it is."""
        return self._client.state

    @property
    def broker(self) -> str:
        """The name of the broker that it is, or was last, connected to."""
        return self._client.broker

    def statistics(self) -> ClientStatistics:
        """What became of what was published and of what came."""
        return self._client.statistics()

    @overload
    def publish(self, content: Content, **options: Unpack[PublishArguments]) -> Confirmation: ...

    @overload
    def publish(
        self, content: Iterable[Content], **options: Unpack[PublishArguments]
    ) -> list[Confirmation]: ...

    def publish(
        self, content: Content | Iterable[Content], **options: Unpack[PublishArguments]
    ) -> Confirmation | list[Confirmation]:
        """Publish, and wait for the confirmation, or for a list of them. Options: as in
        `palio.Client.publish`.
        """
        confirmed: Confirmation | list[Confirmation] = self._worker.run(self._publish(content, options))
        return confirmed

    async def _publish(self, content: Any, options: PublishArguments) -> Any:
        self._worker.collect()
        return await self._client.publish(content, **options)

    def publish_document(
        self,
        document: str | bytes,
        attributes: Content | None = None,
        **options: Unpack[PublishArguments],
    ) -> Confirmation:
        """Publish an XML document, and wait for the confirmation; as `palio.Client.publish_document`."""
        return self._worker.run(self._publish_document(document, attributes, options))

    async def _publish_document(self, document: Any, attributes: Any, options: Any) -> Confirmation:
        self._worker.collect()
        return await self._client.publish_document(document, attributes, **options)

    def withdraw_document(
        self, family: str, key: str, *, id: str | None = None, timeout: float | None = None
    ) -> Confirmation:
        """Say that there is no such document any more; as `palio.Client.withdraw_document`."""
        return self._worker.run(self._client.withdraw_document(family, key, id=id, timeout=timeout))

    def publish_nowait(self, content: Content, **properties: Unpack[Properties]) -> None:
        """Publish without waiting. Raises `InvalidNotification`, and later what else went wrong."""
        self._worker.publish(content, **properties)

    def flush(self, *, arrived: bool = False, timeout: float | None = None) -> None:
        """Wait until all that was published has left, or been taken by the broker."""
        self._worker.run(self._worker.flush(arrived=arrived, timeout=timeout))

    @overload
    def subscribe(
        self,
        filter: str | Filter | None,
        *,
        into: type[Value],
        durable: str | None = None,
        **options: Unpack[Subscribing],
    ) -> Subscription[Value]: ...

    @overload
    def subscribe(
        self,
        filter: str | Filter | None,
        *,
        into: None = None,
        durable: str | None = None,
        **options: Unpack[Subscribing],
    ) -> Subscription[Notification]: ...

    def subscribe(
        self,
        filter: str | Filter | None,
        *,
        into: type[Any] | None = None,
        durable: str | None = None,
        **options: Unpack[Subscribing],
    ) -> Subscription[Any]:
        """Ask for all that the filter selects. Options: as in `palio.Client.subscribe`."""
        held: asynchronous.Subscription[Any] = self._worker.run(
            self._client.subscribe(filter, into=into, durable=durable, **options)
        )
        subscription = Subscription(held, self._worker)
        self._subscriptions.add(subscription)
        return subscription

    def advertise(self, advertisement: str | Advertisement, **options: Unpack[Advertising]) -> Advertised:
        """Say what will be published. Options: as in `palio.Client.advertise`."""
        return Advertised(self._worker.run(self._client.advertise(advertisement, **options)), self._worker)

    def detect(self, patterns: Mapping[str, str | Pattern], **options: Unpack[Detecting]) -> Detection:
        """Ask for matches of patterns, given by name; options as in `palio.Client.detect`."""
        return Detection(self._worker.run(self._client.detect(patterns, **options)), self._worker)

    def watch(self, advertisement: str | Advertisement, *, timeout: float | None = None) -> Watch:
        """Learn whether anybody wants what an advertisement describes."""
        return Watch(self._worker.run(self._client.watch(advertisement, timeout=timeout)), self._worker)

    def request(self, content: Content, **options: Unpack[Requesting]) -> asynchronous.Replies:
        """Ask everybody who takes this notification, and wait for all replies, which are like a list."""
        return self._worker.run(self._request(content, options))

    async def _request(self, content: Content, options: Requesting) -> asynchronous.Replies:
        return await self._client.request(content, **options)

    def trace(self, content: Content | Event, *, timeout: float | None = None) -> Hop:
        """Who would get this notification, hop by hop."""
        what = content._event if isinstance(content, Event) else content
        return self._worker.run(self._client.trace(what, timeout=timeout))

    def document(
        self, family: str, key: str, *, at_least: Confirmation | None = None, timeout: float | None = None
    ) -> Event:
        """The current version of a document; as `palio.Client.document`."""
        asked = self._client.document(family, key, at_least=at_least, timeout=timeout)
        return Event(self._worker.run(asked), self._worker)

    def documents(
        self, filter: str | Filter = "true", **options: Unpack[LookingAtDocuments]
    ) -> Iterator[Event]:
        """The current documents that the filter selects. Options: as in `palio.Client.documents`."""
        for event in self._worker.iterate(self._client.documents(filter, **options)):
            yield Event(event, self._worker)

    def operations(self, *, timeout: float | None = None, **wanted: Any) -> dict[str, Any]:
        """As `Client.operations`."""
        return self._worker.run(self._client.operations(timeout=timeout, **wanted))

    def inspect(self, what: str, *, timeout: float | None = None, **argument: Any) -> Any:
        """Ask the broker about itself."""
        return self._worker.run(self._client.inspect(what, timeout=timeout, **argument))

    def survey(self, filter: str | Filter, **options: Unpack[Surveying]) -> Survey:
        """How many events of the past the filter selects. Options: as in `palio.Client.survey`."""
        return self._worker.run(self._client.survey(filter, **options))

    def replay(self, filter: str | Filter, **options: Unpack[Replaying]) -> Iterator[Event]:
        """The events of the past that the filter selects. Options: as in `palio.Client.replay`."""

        async def begin() -> AsyncIterator[asynchronous.Event]:
            return aiter(self._client.replay(filter, **options))

        for event in self._worker.iterate(self._worker.run(begin())):
            yield Event(event, self._worker)

    def journals(self, *, timeout: float | None = None) -> JournalsListed:
        """How far the journals in reach are."""
        return self._worker.run(self._client.journals(timeout=timeout))

    def hold(
        self, reader: str, sequence: int, *, lineage: Lineage = (), timeout: float | None = None
    ) -> JournalRange:
        """Have the broker's journal kept for a reader that has everything up to a sequence; -1 ends that."""
        return self._worker.run(self._client.hold(reader, sequence, lineage=lineage, timeout=timeout))

    def trim_journal(
        self, upto: int | None = None, *, dry: bool = False, timeout: float | None = None
    ) -> JournalTrimmed:
        """Have the broker let go all of its journal that nobody needs, or say how much that would be."""
        return self._worker.run(self._client.trim_journal(upto, dry=dry, timeout=timeout))

    def remove(self, durable: str, *, timeout: float | None = None) -> None:
        """End a durable subscription for good, wherever it is."""
        self._worker.run(self._client.remove(durable, timeout=timeout))

    def pause(self, durable: str, *, timeout: float | None = None) -> None:
        """Let a durable subscription keep what comes and deliver nothing, until it is resumed."""
        self._worker.run(self._client.pause(durable, timeout=timeout))

    def resume(self, durable: str, *, timeout: float | None = None) -> None:
        """Let a durable subscription deliver again."""
        self._worker.run(self._client.resume(durable, timeout=timeout))

    def seek(self, durable: str, since: Since, *, dry: bool = False, timeout: float | None = None) -> Sought:
        """Move a durable subscription to a time or a position. Returns how much that drops."""
        return self._worker.run(self._client.seek(durable, since, dry=dry, timeout=timeout))

    def requeue(
        self, durable: str, deliveries: Iterable[int], *, timeout: float | None = None
    ) -> tuple[int, ...]:
        """Let dead letters be delivered after all. Returns which of them were there."""
        return self._worker.run(self._client.requeue(durable, deliveries, timeout=timeout))

    def discard(
        self, durable: str, deliveries: Iterable[int], *, timeout: float | None = None
    ) -> tuple[int, ...]:
        """Throw dead letters away. Returns which of them were there."""
        return self._worker.run(self._client.discard(durable, deliveries, timeout=timeout))

    def leave(
        self,
        do: Literal["leave", "look", "try", "stay"] = "leave",
        *,
        to: str = "",
        parting: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Let this broker leave its network for good, and tell how far it is. See `Client.leave`."""
        return self._worker.run(self._client.leave(do, to=to, parting=parting, timeout=timeout))

    def add_link(
        self,
        address: str,
        *,
        kind: Literal["peer", "master", "below", "graph"] = "peer",
        cost: float = 1.0,
        if_allowed: bool = False,
        timeout: float = LINK_WITHIN,
    ) -> dict[str, Any]:
        """Let this broker connect to another one, and keep the link. See `Client.add_link`."""
        adding = self._client.add_link(address, kind=kind, cost=cost, if_allowed=if_allowed, timeout=timeout)
        return self._worker.run(adding)

    def remove_link(self, broker: str, *, timeout: float | None = None) -> dict[str, Any]:
        """Let this broker end the link to a neighbour. See `Client.remove_link`."""
        return self._worker.run(self._client.remove_link(broker, timeout=timeout))

    def overlay_changes(
        self, after: int | None = None, *, wait: float = 0.0, timeout: float | None = None
    ) -> dict[str, Any]:
        """What has happened to the links of this broker. See `Client.overlay_changes`."""
        return self._worker.run(self._client.overlay_changes(after, wait=wait, timeout=timeout))

    def forget_broker(self, broker: str, *, timeout: float | None = None) -> None:
        """Say that a broker is gone for good."""
        self._worker.run(self._client.forget_broker(broker, timeout=timeout))


def connect(address: str, **options: Unpack[Connecting]) -> Client:
    """A client that is connected. Options: as in `palio.connect`. Raises `WrongAddress` or `NotConnected`."""
    return Client(asynchronous.connect(address, **options))
