"""`Broker`: the shell around a `Router`. Sockets, clock and store are here; what to do is decided there.

Everything happens in one event loop. A message comes in on a connection, the router says what is to be
done, and it is done in that order: answers and events are put on their connections and written at the end
of the turn, effects on the store are handed to its thread, whose completions come back as messages. While
much waits for the disk, clients are not read from: so a fast publisher cannot fill the memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from palio.broker.clock import Clock
from palio.broker.connection import Connection, ProtocolViolation
from palio.broker.dialling import Dialling
from palio.broker.inspection import Inspection
from palio.broker.outgoing import MAX_BATCH, halves
from palio.broker.settings import Settings, split_address
from palio.model.errors import InvalidNotification, PalioError
from palio.routing.clients import subject_of
from palio.routing.configuration import Configuration
from palio.routing.durable.effects import Append, Hand, Read, Remove, SaveCursor, Spool, Trim
from palio.routing.effects import CancelTimer, CloseLink, Deliver, Effect, Reply, Send, SetTimer
from palio.routing.inquiries import Watch
from palio.routing.links import COUNTERPART
from palio.routing.messages import (
    Advertise,
    Close,
    Envelope,
    LinkDown,
    LinkKind,
    LinkUp,
    Open,
    Refused,
    Subscribe,
)
from palio.routing.protocol import Greet, Handed, Inspect, Inspected, Role
from palio.routing.router import Router
from palio.routing.wire import encode, encode_envelopes, encode_events

# What is held for a client until it gives it back.
_HELD = frozenset((Subscribe, Advertise, Watch))
# How many times in a heartbeat all connections are looked at.
_LOOKS = 4


class TooManyConnections(PalioError):
    """The broker has as many connections as it may."""

    limit: int

    def __init__(self, limit: int) -> None:
        super().__init__(f"This broker has {limit:,} connections, as many as it may.", limit=limit)


class TooManySubscriptions(PalioError):
    """A client has as many subscriptions and advertisements as it may."""

    limit: int

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"This client has {limit:,} subscriptions and advertisements, as many as it may; "
            "release some, or raise the limit `limits.subscriptions` of the broker.",
            limit=limit,
        )


class AlreadyLinked(PalioError):
    """There is a link between the two brokers."""

    broker: str

    def __init__(self, broker: str) -> None:
        super().__init__(f"There is a link to {broker} already.", broker=broker)


class BrokerStatistics(msgspec.Struct, frozen=True):
    """Counts of a broker since it started."""

    name: str
    started: float
    connections: int
    sessions: int
    links: int
    refused: dict[str, int]
    dropped: dict[str, int]


class Broker:
    """One broker. `start` and `stop` it; everything else it does by itself."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings.named()
        self.now = Clock(clock)
        self.log = logging.getLogger(f"palio.broker.{self.settings.name}")
        self.connections: dict[Connection, None] = {}
        self.sessions: dict[str, Connection] = {}
        self.links: dict[str, Connection] = {}
        self.router: Router
        self.store: Any = None
        self.port = 0
        self.http_port = 0
        self.started = 0.0
        self.failed: asyncio.Future[str] | None = None  # done when the broker cannot go on
        self._dropped: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._loop: asyncio.AbstractEventLoop
        self._server: asyncio.Server | None = None
        self._http: Any = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._to_flush: dict[Connection, None] = {}
        self._to_store: list[Any] = []
        self._reading = True
        self._beating: asyncio.Task[None] | None = None
        self._stopping = False
        self._encoded: tuple[tuple[Envelope, ...], msgspec.Raw] | None = None
        self._dialling = Dialling(self)
        self._inspection = Inspection(self)
        self._handlers = {
            Send: self._send,
            Deliver: self._deliver,
            Reply: self._reply,
            Hand: self._hand,
            SetTimer: self._set_timer,
            CancelTimer: self._cancel_timer,
            CloseLink: self._close_link,
        } | dict.fromkeys((Append, Read, Spool, SaveCursor, Trim, Remove), self._to_store.append)

    # Beginning and end

    async def start(self) -> None:
        """Open the store, listen, and connect to the neighbours. Raises what the store or the socket does."""
        settings = self.settings
        self._loop = asyncio.get_running_loop()
        self.failed = self._loop.create_future()
        configuration = Configuration(
            broker=settings.name,
            strategy=settings.strategy,
            advertisements=settings.advertisements,
            merging_excess=settings.merging_excess,
            durable=settings.delivery,
            incarnation=int(self.now()),
        )
        if settings.journal:
            self.store = await self.open_store()
            recovered, incarnation = self.store.recovered()
            configuration = msgspec.structs.replace(configuration, incarnation=incarnation)
            self.router = Router(configuration, recovered=recovered)
        else:
            self.router = Router(configuration)
        host, port = split_address(settings.listen)
        try:
            self._server = await self._loop.create_server(lambda: Connection(self), host, port, backlog=1_024)
        except OSError:
            await self._close_store()
            raise
        self.port = self._server.sockets[0].getsockname()[1]
        if settings.http != "off":
            from palio.broker.http import HttpServer  # noqa: PLC0415 (only where it is wanted)

            self._http = HttpServer(self)
            self.http_port = await self._http.start(*split_address(settings.http))
        self.started = self.now()
        self._beating = self._loop.create_task(self._beat())
        self.carry_out(self.router.on_timer("started", self.now()))
        self._dialling.start(settings.peers)
        self.log.info("The broker is up.", extra={"port": self.port})

    async def open_store(self) -> Any:
        """The store that the settings ask for. Raises what it does."""
        from palio.store import Store  # noqa: PLC0415 (not needed without a journal)

        settings = self.settings
        Path(settings.data).mkdir(parents=True, exist_ok=True)
        return await asyncio.to_thread(
            Store.open,
            settings.store_url,
            broker=settings.name,
            completed=self._completed_elsewhere,
            broken=self._broken_elsewhere,
            sync=settings.sync,
            retention=settings.durable.retention,
        )

    async def stop(self, reason: str = "The broker is stopping.") -> None:
        """Say goodbye to everyone, write what is to be written, and end."""
        if self._stopping:
            return
        self._stopping = True
        self._dialling.stop()
        if self._server is not None:
            self._server.close()
        if self._beating is not None:
            self._beating.cancel()
        open_ones = list(self.connections)
        for connection in open_ones:
            connection.end(reason)
        if open_ones:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await asyncio.gather(*[connection.closed for connection in open_ones])
        for connection in list(self.connections):
            connection.abort(reason)
        if self._http is not None:
            await self._http.stop()
        for timer in self._timers.values():
            timer.cancel()
        await self._close_store()
        self.log.info("The broker has stopped.", extra={"broker": self.settings.name})

    async def _close_store(self) -> None:
        if self.store is not None:
            await asyncio.to_thread(self.store.close)

    async def _beat(self) -> None:
        pause = self.settings.heartbeat / _LOOKS
        now = self._loop.time()
        while True:
            await asyncio.sleep(pause)
            before, now = now, self._loop.time()
            for connection in list(self.connections):
                connection.beat(now, max(0.0, now - before - pause))

    # Connections

    def connected(self, connection: Connection) -> None:
        """A connection was accepted or dialled."""
        self.connections[connection] = None
        if len(self.connections) > self.settings.limits.connections:
            connection.refuse(TooManyConnections(self.settings.limits.connections))

    def admit(self, connection: Connection, greet: Greet) -> None:
        """Whether who greets may come in; raises what speaks against it."""
        if self._stopping:
            raise ProtocolViolation("The broker is stopping.")
        if greet.role is Role.PEER:
            self.admit_peer(connection, greet.name)

    def admit_peer(self, connection: Connection, name: str) -> None:
        """Raises `AlreadyLinked` if there is a link that counts more than this new one."""
        if name == self.settings.name:
            raise ProtocolViolation(f"The broker {name} cannot be its own neighbour.")
        known = self.links.get(name)
        if known is None:
            return
        # If both have dialled, the connection that the broker with the smaller name made is the one to keep.
        keep_dialled = self.settings.name < name
        if (known.peer is not None) == keep_dialled and (connection.peer is not None) != keep_dialled:
            raise AlreadyLinked(name)
        known.end("Another connection takes the place of this one.")

    def greeted(self, connection: Connection, greet: Greet) -> None:
        """Someone has come in."""
        if greet.role is Role.PEER:
            self.linked(connection, COUNTERPART[greet.kind], greet.cost)
            return
        known = self.sessions.get(greet.name)
        if known is not None:
            known.end("This client has connected again.", event="taken over")
        self.sessions[greet.name] = connection
        connection.read(self._reading)
        self.handle(Open(), greet.name)

    def linked(self, connection: Connection, kind: LinkKind, cost: float) -> None:
        """There is a link to a neighbour."""
        self.links[connection.name] = connection
        self.log.info("A link is up.", extra={"neighbour": connection.name, "address": connection.address})
        self.handle(LinkUp(kind, cost), connection.name)

    def ended(self, connection: Connection) -> None:
        """A live connection is ending: nothing more comes from it."""
        name = connection.name
        if connection.role is Role.PEER and self.links.get(name) is connection:
            del self.links[name]
            self.log.info("A link is down.", extra={"neighbour": name, "reason": connection.reason})
            self.handle(LinkDown(), name)
        elif connection.role is Role.CLIENT and self.sessions.get(name) is connection:
            del self.sessions[name]
            self.handle(Close(), name)

    def disconnected(self, connection: Connection, *, was_live: bool) -> None:
        """A connection is gone."""
        self.connections.pop(connection, None)
        self._to_flush.pop(connection, None)
        self._dropped.update(connection.outgoing.statistics().dropped)
        if was_live:
            self.ended(connection)

    def refused(self, connection: Connection, problem: PalioError) -> None:
        """A connection ends for what was said on it."""
        self._refused[type(problem).__name__] += 1
        self.log.warning(
            "A connection was refused.",
            extra={"connection": connection.name, "address": connection.address, "reason": str(problem)},
        )

    def gave_up(self, connection: Connection) -> None:
        """A connection ends at once, for a reason that is not the other end's own."""
        self.log.warning(
            "A connection was given up.",
            extra={"connection": connection.name, "address": connection.address, "reason": connection.reason},
        )

    # Messages

    def take(self, message: Any, connection: Connection) -> None:
        """A message from a client or a neighbour."""
        limit = self.settings.limits.subscriptions
        if type(message) in _HELD and self.router.holds(connection.name) >= limit:
            problem = TooManySubscriptions(limit)
            connection.say(Refused(subject_of(message), type(problem).__name__, str(problem)))
            return
        try:
            self.handle(message, connection.name)
        except InvalidNotification as problem:  # of a neighbour: those of clients are answered
            connection.refuse(problem)

    def inspected(self, connection: Connection, message: Inspect) -> None:
        """A question about this broker."""
        for result, last in self._inspection.answer(message):
            connection.say(Inspected(message.number, result, last))

    def handle(self, message: Any, source: str) -> None:
        """Let the router take a message, and do what it says."""
        self.carry_out(self.router.handle(message, source, self.now()))

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Do what the router says, in its order."""
        handlers = self._handlers
        for effect in effects:
            handlers[type(effect)](effect)  # type: ignore[operator]
        if self._to_store:
            self.store.submit(tuple(self._to_store))
            self._to_store.clear()
            self._throttle()

    def _send(self, effect: Send) -> None:
        connection = self.links.get(effect.broker)
        if connection is not None:
            connection.put(encode(effect.message))

    def _deliver(self, effect: Deliver) -> None:
        connection = self.sessions.get(effect.session)
        if connection is None:
            self._dropped["session gone"] += len(effect.envelopes)
            return
        # Many sessions mostly get the same: the comparison is by identity, and so costs next to nothing.
        if self._encoded is None or self._encoded[0] != effect.envelopes:
            self._encoded = effect.envelopes, encode_envelopes(effect.envelopes)
        payload = encode_events(effect.handles, self._encoded[1])
        if len(payload) > MAX_BATCH and len(effect.envelopes) > 1:
            for part in halves(effect.envelopes):
                self._deliver(Deliver(effect.session, part, effect.handles))
        else:
            connection.put(payload, len(effect.envelopes))

    def _reply(self, effect: Reply) -> None:
        connection = self.sessions.get(effect.session)
        if connection is not None:
            connection.put(encode(effect.answer))

    def _hand(self, effect: Hand) -> None:
        connection = self.sessions.get(effect.session)
        if connection is None:
            return
        payload = encode(Handed(effect.name, effect.deliveries))
        if len(payload) > MAX_BATCH and len(effect.deliveries) > 1:
            for part in halves(effect.deliveries):
                self._hand(Hand(effect.session, effect.name, part))
        else:
            connection.put(payload)

    def _set_timer(self, effect: SetTimer) -> None:
        self._cancel_timer(effect)
        delay = max(0.0, effect.at - self.now.last)
        self._timers[effect.name] = self._loop.call_later(delay, self._on_timer, effect.name)

    def _cancel_timer(self, effect: SetTimer | CancelTimer) -> None:
        timer = self._timers.pop(effect.name, None)
        if timer is not None:
            timer.cancel()

    def _on_timer(self, name: str) -> None:
        del self._timers[name]
        self.carry_out(self.router.on_timer(name, self.now()))

    def _close_link(self, effect: CloseLink) -> None:
        connection = self.links.pop(effect.broker, None)
        self.log.warning("A link cannot be used.", extra={"neighbour": effect.broker, "reason": effect.reason})
        if connection is not None:
            connection.end(effect.reason)

    # Writing

    def will_flush(self, connection: Connection) -> None:
        """Something was put on a connection: it is written at the end of this turn of the loop."""
        if not self._to_flush:
            self._loop.call_soon(self._flush)
        self._to_flush[connection] = None

    def _flush(self) -> None:
        connections, self._to_flush = self._to_flush, {}
        self._encoded = None
        for connection in connections:
            connection.flush()

    # The store, which has a thread of its own

    def _completed_elsewhere(self, messages: Sequence[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is interested any more
            self._loop.call_soon_threadsafe(self._completed, messages)

    def _completed(self, messages: Sequence[Any]) -> None:
        now = self.now()
        try:
            for message in messages:
                self.carry_out(self.router.handle(message, "", now))
        except Exception:
            # What is on disk and what is in memory may differ now: only a new start makes that good.
            self.log.exception("The broker could not handle what its store says.")
            self._broken("The broker could not handle what its store says; this is its mistake.")
        self._throttle()

    def _broken_elsewhere(self, problem: Any) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._broken, str(problem))

    def _broken(self, reason: str) -> None:
        self.log.critical("The store cannot go on.", extra={"reason": reason})
        if self.failed is not None and not self.failed.done():
            self.failed.set_result(reason)

    def _throttle(self) -> None:
        """Clients are not read from while too much waits for the disk."""
        limit = self.settings.limits.unwritten
        queued = self.store.queued_bytes
        reading = queued < limit if self._reading else queued < limit // 2
        if reading != self._reading:
            self._reading = reading
            for connection in self.sessions.values():
                connection.read(reading)

    # Looking in

    def dialling_problems(self) -> dict[str, str]:
        """By address: why there is no link to a neighbour that this broker connects to."""
        return self._dialling.problems

    def statistics(self) -> BrokerStatistics:
        dropped = Counter(self._dropped)
        for connection in self.connections:
            dropped.update(connection.outgoing.statistics().dropped)
        dropped.update(self.router.statistics().forwarding.dropped)
        return BrokerStatistics(
            self.settings.name,
            self.started,
            len(self.connections),
            len(self.sessions),
            len(self.links),
            dict(self._refused),
            dict(dropped),
        )
