"""Pull points: subscriptions whose events wait until a client asks for them.

A pull point is a durable subscription without a sink. Its taker is a session in the broker (`Visitor`), which
acts for the owner, and is there from the first pull on.

1. What was answered is acknowledged once the answer has been sent to a client that is still there; until then,
   and if it has gone, it is the next to be answered. A broker that ends in between delivers it again: at least
   once.
2. One client at a time waits at a pull point. Another one takes its place, and the first is answered with
   nothing: it is the same client, whose connection broke.
3. A pull point keeps the subscription from ending as long as somebody waits there, and no longer than the end
   it has or the time it was last waited for, whichever is later.
4. What waits here is bounded: so many deliveries for each pull point, and as many pull points as subscriptions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from palio.broker.gateway.subscriptions import Subscriptions, UnknownSubscription
from palio.broker.gateway.visitor import VisitEnded, Visitor
from palio.model.errors import PalioError
from palio.protocol.deliveries import Handed
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Taken
from palio.protocol.durable.wishes import LONGEST_WAIT, MAX_ATTEMPTS
from palio.protocol.envelope import Envelope

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

# Deliveries that wait at a pull point; ONVIF's clients ask for up to 100 at a time.
AT_ONCE = 100
LONGEST_PULL = 60.0  # seconds; what ONVIF demands at least
Key = tuple[str, str]


class PullPointTaken(PalioError):
    """A pull point whose events another client takes by now."""

    id: str
    sentence = (
        "Another client takes the events of the subscription {id!r} now; end it there, or make another one."
    )


class Pulled(msgspec.Struct, frozen=True):
    """What is answered to a pull: deliveries by their numbers."""

    deliveries: tuple[tuple[int, Envelope], ...]

    @property
    def envelopes(self) -> tuple[Envelope, ...]:
        return tuple([envelope for _, envelope in self.deliveries])


class _PullPoint:
    """The taker of one subscription, and what it has been handed."""

    def __init__(self, id: str, visitor: Visitor) -> None:
        self.id = id
        self.visitor = visitor
        self.waiting: deque[tuple[int, Envelope]] = deque()
        self.lock = asyncio.Lock()
        self.newcomer = asyncio.Event()

    async def pull(self, most: int, timeout: float) -> Pulled:
        """Raises `VisitEnded`, and `PullPointTaken`."""
        self.newcomer.set()  # whoever waits here makes room
        async with self.lock:
            self.newcomer.clear()
            if not self.waiting:
                await self._wait(timeout)
            while len(self.waiting) < most and await self._hear(0.0):
                pass
            many = min(most, len(self.waiting))
            return Pulled(tuple([self.waiting.popleft() for _ in range(many)]))

    async def _wait(self, timeout: float) -> None:
        hearing = asyncio.ensure_future(self._hear(timeout))
        leaving = asyncio.ensure_future(self.newcomer.wait())
        try:
            await asyncio.wait({hearing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not hearing.done():
                hearing.cancel()
            await asyncio.gather(leaving, hearing, return_exceptions=True)
        if not hearing.cancelled():
            hearing.result()

    async def _hear(self, timeout: float) -> bool:
        """Hear something. Returns whether there was anything in time."""
        message = await self.visitor.take(timeout)
        if isinstance(message, Taken):
            raise PullPointTaken(self.id)
        if isinstance(message, Handed):
            self.waiting.extend([(number, envelope) for number, _, envelope in message.deliveries])
        return message is not None

    def settle(self, pulled: Pulled, *, sent: bool) -> None:
        """What was pulled has been sent, or goes back to where it came from."""
        if not sent:
            self.waiting.extendleft(reversed(pulled.deliveries))
        elif pulled.deliveries and not self.visitor.is_over:
            self.visitor.say(Acknowledged(self.id, tuple([number for number, _ in pulled.deliveries])))


class PullPoints:
    """All pull points of a broker."""

    def __init__(self, broker: BrokerServer, subscriptions: Subscriptions) -> None:
        self._broker = broker
        self._subscriptions = subscriptions
        self._points: dict[Key, _PullPoint] = {}
        self._entering = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._points)

    async def pull(self, key: Key, most: int, timeout: float) -> Pulled:
        """Up to so many events, or none in time. Raises `UnknownSubscription`, and `PullPointTaken`."""
        timeout = min(max(timeout, 0.0), LONGEST_PULL)
        self._subscriptions.use(key, self._broker.now() + timeout)
        point = await self._point(key)
        try:
            return await point.pull(max(1, min(most, AT_ONCE)), timeout)
        except (PullPointTaken, VisitEnded):
            self._forget(key)
            raise
        finally:
            self._subscriptions.use(key, self._broker.now() + timeout)

    def settle(self, key: Key, pulled: Pulled, *, sent: bool) -> None:
        """Say whether an answer has been sent. What belongs to a session that is over is handed out again."""
        point = self._points.get(key)
        if point is not None:
            point.settle(pulled, sent=sent)

    async def _point(self, key: Key) -> _PullPoint:
        owner, id = key
        async with self._entering:
            point = self._points.get(key)
            if point is not None and not point.visitor.is_over:
                return point
            filter, config = (
                self._subscriptions.filter_named(owner, id),
                self._subscriptions.config_named(owner, id),
            )
            if filter is None or config is None:
                raise UnknownSubscription(id)
            visitor = await Visitor.enter(self._broker, f"pull-{id}", acting_for=owner)
            # Nobody knows when the client comes next: what waits for it is no attempt that failed.
            patience = Patience(in_flight=AT_ONCE, acknowledge_within=LONGEST_WAIT, attempts=MAX_ATTEMPTS)
            attach = Attach(id, filter, in_flight=AT_ONCE, patience=patience, as_is=True, retry=config.retry)
            try:
                await visitor.ask(attach)
            except BaseException:
                visitor.leave("The pull point is not there.")
                raise
            point = self._points[key] = _PullPoint(id, visitor)
            return point

    def _forget(self, key: Key) -> None:
        point = self._points.pop(key, None)
        if point is not None:
            point.visitor.leave("The pull point is not used any more.")

    async def sweep(self) -> None:
        """Leave what has no subscription any more."""
        for key in list(self._points):
            if self._subscriptions.filter_named(*key) is None:
                self._forget(key)

    async def stop(self) -> None:
        for key in list(self._points):
            self._forget(key)
