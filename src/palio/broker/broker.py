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
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from palio.broker import fitting
from palio.broker.access import Access
from palio.broker.access.rights import Allowance
from palio.broker.border import bounced
from palio.broker.clock import Clock
from palio.broker.connection import Connection
from palio.broker.dialling import AlreadyLinked, Dialling
from palio.broker.extension import Extensions, Installer
from palio.broker.gateway.counts import GatewayStatistics
from palio.broker.guard import Guard, answered, require_deliverable
from palio.broker.inspection import Inspection
from palio.broker.limits import Tally, TooManyConnections, TooManySubscriptions
from palio.broker.settings import Settings, require_safe, split_address
from palio.broker.tls import ServerTls
from palio.broker.unlisted import UnlistedMessage
from palio.matching.hints import Hints
from palio.model.errors import InvalidNotification, PalioError
from palio.protocol.deliveries import Lost
from palio.protocol.durable.subscriptions import Attach, Rejected
from palio.protocol.encoding import encode_envelopes
from palio.protocol.envelope import Envelope
from palio.protocol.frames import MAX_EVENT, MAX_FRAME
from palio.protocol.greeting import Greet, Role
from palio.protocol.heartbeat import LOOKS
from palio.protocol.inquiries import Inspect, Inspected, Requested, Respond, Watch
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Advertise, Refused, Subscribe
from palio.protocol.subjects import subject_of
from palio.protocol.violations import ProtocolViolation
from palio.routing.configuration import Configuration
from palio.routing.durable.effects import STORE_EFFECTS, Hand
from palio.routing.effects import CloseLink, Deliver, Effect, Reply, Send, SetTimer
from palio.routing.links import COUNTERPART
from palio.routing.occurrences import Close, LinkDown, LinkUp, Open
from palio.routing.router import Router
from palio.routing.scopes import SetScope
from palio.transport.tcp import Tcp
from palio.transport.tls import WrongCertificate

if TYPE_CHECKING:
    from palio.broker.gateway.definitions import Keeper

# What is held for a client until it gives it back.
_HELD = frozenset((Subscribe, Advertise, Watch))
# Why something that is kept cannot be delivered.
TOO_LARGE = f"It has more than the {MAX_FRAME:,} bytes that a frame may have."
# Seconds after which tokens, rights and certificates that have changed count at the latest.
_LOOK_AT_FILES_EVERY = 0.5


class BrokerStatistics(msgspec.Struct, frozen=True):
    """Counts of a broker since it started."""

    name: str
    started: float
    connections: int
    sessions: int
    links: int
    refused: dict[str, int]
    dropped: dict[str, int]
    refused_requests: dict[str, int]


class Broker:
    """One broker. `start` and `stop` it; everything else it does by itself."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        extensions: Iterable[Installer] = (),
    ) -> None:
        self.settings = settings.named()
        self.now = Clock(clock)
        self.log = logging.getLogger(f"palio.broker.{self.settings.name}")
        security = self.settings.security
        self.access = Access(self.settings.access_folder if security.authentication else None, self.now)
        self.connections: dict[Connection, None] = {}
        self.sessions: dict[str, Connection] = {}
        self.links: dict[str, Connection] = {}
        self.router: Router
        self.store: Any = None
        self.port = 0
        self.http_port = 0
        self.started = 0.0
        self.failed: asyncio.Future[str] | None = None  # done when the broker cannot go on
        self.dropped: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._refused_requests: Counter[str] = Counter()
        self._by_address = Tally(self.settings.limits.connections_per_address)
        self._by_principal = Tally(self.settings.limits.connections_per_principal)
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
        self.tls: ServerTls | None = None
        self._guard = Guard(self.settings, self.now)
        self._watching: asyncio.Task[None] | None = None
        self._dialling = Dialling(self)
        self._inspection = Inspection(self)
        self._installers = tuple(extensions)
        self.extensions = Extensions(self.log)
        self._handlers = {
            Send: self._send,
            Deliver: self._deliver,
            Reply: self._reply,
            Hand: self._hand,
            SetTimer: self._set_timer,
            CloseLink: self._close_link,
        } | dict.fromkeys(STORE_EFFECTS, self._to_store.append)

    # Beginning and end

    async def start(self) -> None:
        """Open the store, listen, and connect to the neighbours. Raises what the store or the socket does."""
        settings = self.settings
        require_safe(settings)
        self.access.open()
        security = settings.security
        if security.certificate:
            self.tls = ServerTls(security.certificate, security.key, security.authority)
        self._loop = asyncio.get_running_loop()
        self.failed = self._loop.create_future()
        configuration = Configuration(
            broker=settings.name,
            strategy=settings.strategy,
            advertisements=settings.advertisements,
            merging_excess=settings.merging_excess,
            hints=Hints.load(settings.hints) if settings.hints else None,
            durable=settings.delivery,
            incarnation=int(self.now()),
            scoped=self.access.is_on,
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
            tls = None if self.tls is None else self.tls.context
            transport = Tcp(host, port, tls, handshake=settings.limits.greeting)
            self._server = await transport.listen(lambda: Connection(self))
        except OSError:
            await self._close_store()
            raise
        self.port = self._server.sockets[0].getsockname()[1]
        for install in self._installers:
            for extension in install(self):
                self.extensions.add(extension)
        if settings.http != "off":
            from palio.broker.http import HttpServer  # noqa: PLC0415 (only where it is wanted)

            self._http = HttpServer(self)
        await self.extensions.start()
        if self._http is not None:
            self.http_port = await self._http.start(*split_address(settings.http))
        self.started = self.now()
        self._beating = self._loop.create_task(self._beat())
        self._tell_scopes(self.access.principals())
        if self.access.is_on or self.tls is not None:
            self._watching = self._loop.create_task(self._watch_files())
        self.carry_out(self.router.on_timer("started", self.now()))
        self._dialling.start(settings.peers)
        self.log.info("The broker is up.", extra={"port": self.port})

    async def open_store(self) -> Any:
        """The store that the settings ask for. Raises what it does."""
        from palio.store import SqlStore  # noqa: PLC0415 (not needed without a journal)

        settings = self.settings
        Path(settings.data).mkdir(mode=0o700, parents=True, exist_ok=True)  # it is what rights are about
        store = await asyncio.to_thread(
            SqlStore.open,
            settings.store_url,
            broker=settings.name,
            completed=self._completed_elsewhere,
            broken=self._broken_elsewhere,
            sync=settings.sync,
            retention=settings.durable.retention,
            remembered=settings.durable.remembered,
            lake=settings.lake or None,
        )
        settings.keep_name()
        return store

    def keeper(self) -> Keeper:
        """Where the gateway keeps its subscriptions."""
        from palio.broker.gateway.definitions import FileKeeper, MemoryKeeper  # noqa: PLC0415 (only with HTTP)

        return FileKeeper(Path(self.settings.data)) if self.settings.journal else MemoryKeeper()

    async def stop(self, reason: str = "The broker is stopping.") -> None:
        """Say goodbye to everyone, write what is to be written, and end."""
        if self._stopping:
            return
        self._stopping = True
        self._dialling.stop()
        if self._server is not None:
            self._server.close()
        for task in (self._beating, self._watching):
            if task is not None:
                task.cancel()
        open_ones = list(self.connections)
        for connection in open_ones:
            connection.end(reason)
        if open_ones:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await asyncio.gather(*[connection.closed for connection in open_ones])
        for connection in list(self.connections):
            connection.abort(reason)
        await self.extensions.stop()
        if self._http is not None:
            await self._http.stop()
        for timer in self._timers.values():
            timer.cancel()
        await self._close_store()
        if self.started:  # otherwise what is wrong is told, and nothing else
            self.log.info("The broker has stopped.")

    async def _close_store(self) -> None:
        if self.store is not None:
            await asyncio.to_thread(self.store.close)

    async def _beat(self) -> None:
        pause = self.settings.heartbeat / LOOKS
        now = self._loop.time()
        while True:
            await asyncio.sleep(pause)
            before, now = now, self._loop.time()
            for connection in list(self.connections):
                connection.beat(now, max(0.0, now - before - pause))

    # Who may come in, and what they may do, may change at any time

    async def _watch_files(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_AT_FILES_EVERY)
            self.refresh_access()

    def refresh_access(self) -> None:
        """Read tokens, rights and certificates again if they have changed; they count from now on."""
        self._tell_scopes(self.access.refresh())
        for connection in list(self.connections):
            problem = self.access.objection(connection.principal)
            if problem is not None and connection.is_live:
                connection.refuse(problem)
        try:
            if self.tls is not None and self.tls.refresh():
                self.log.info("The certificate was read again.")
        except WrongCertificate as problem:
            self.log.error("The certificate before stays in use.", extra={"reason": str(problem)})

    def _tell_scopes(self, owners: Iterable[str]) -> None:
        for owner in sorted(owners):
            rights = self.access.rights_of(owner)
            self.handle(SetScope(owner, rights.subscribe, rights.publish), "")

    # Connections

    def connected(self, connection: Connection) -> None:
        """A connection was accepted or dialled."""
        self.connections[connection] = None
        try:
            self._by_address.add(connection.host)
            if len(self.connections) > self.settings.limits.connections:
                raise TooManyConnections(self.settings.limits.connections)
        except TooManyConnections as problem:
            connection.refuse(problem)

    def admit(self, connection: Connection, greet: Greet) -> None:
        """Whether who greets may come in; raises what speaks against it."""
        if self._stopping:
            raise ProtocolViolation("The broker is stopping.")
        principal = connection.acting_for or self.access.authenticate(greet.token, connection.certificate)
        connection.principal = principal
        if principal.name:
            self._by_principal.add(principal.name)
        if greet.role is Role.PEER:
            principal.require(Allowance.PEER, "link a broker")
            self.admit_peer(connection, greet.name)

    def admit_peer(self, connection: Connection, name: str) -> None:
        """Raises `AlreadyLinked` if there is a link that counts more than this new one."""
        if name == self.settings.name:
            raise ProtocolViolation(f"The broker {name} cannot be its own neighbour.")
        known = self.links.get(name)
        if known is None:
            return
        if not connection.may_replace(known):
            raise AlreadyLinked(name)
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
        name = connection.name
        known = self.sessions.get(name)
        if known is not None:
            known.end("This client has connected again.", event="taken over")
        self.sessions[name] = connection
        connection.read(self._reading)
        self.handle(Open(), name)

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
            self._guard.gone(name)
            self.handle(Close(), name)

    def disconnected(self, connection: Connection, *, was_live: bool) -> None:
        """A connection is gone."""
        if connection in self.connections:
            del self.connections[connection]
            self._by_address.remove(connection.host)
            if connection.principal.name:
                self._by_principal.remove(connection.principal.name)
        self._to_flush.pop(connection, None)
        self.dropped.update(connection.outgoing.statistics().dropped)
        if was_live:
            self.ended(connection)

    def refused(self, problem: PalioError, address: str, name: str = "") -> None:
        """A connection ends for what was said on it, or a request for what it shows."""
        self._refused[type(problem).__name__] += 1
        self.log.warning(
            "A connection was refused.",
            extra={"connection": name, "address": address, "reason": str(problem)},
        )

    def gave_up(self, connection: Connection) -> None:
        """A connection ends at once, for a reason that is not the other end's own."""
        self.log.warning(
            "A connection was given up.",
            extra={"connection": connection.name, "address": connection.address, "reason": connection.reason},
        )

    # Messages

    def take(self, message: Any, connection: Connection, size: int) -> None:
        """A message from a client or a neighbour, which came in so many bytes."""
        if connection.role is Role.CLIENT:
            try:
                if size > MAX_EVENT:
                    require_deliverable(message)
                name, limit = connection.name, self.settings.limits.subscriptions
                if type(message) in _HELD and self.router.is_full(name, limit):
                    raise TooManySubscriptions(limit)
                message = self._guard.check(message, connection.principal, name)
                if type(message) is Attach and not self.router.has_room_for(name, message.name, limit):
                    raise TooManySubscriptions(limit)
            except PalioError as problem:
                self.refuse_request(connection, message, problem)
                return
        elif (border := connection.border) is not None:
            try:
                taken = border.coming(message)
            except UnlistedMessage as problem:
                connection.refuse(problem)
                return
            if taken is None:
                if (answer := bounced(message, self.settings.name)) is not None:
                    connection.say(answer)
                return
            message = taken
        try:
            self.handle(message, connection.name)
        except InvalidNotification as problem:  # of a neighbour: those of clients are answered
            connection.refuse(problem)

    def refuse_request(self, connection: Connection, request: Any, problem: PalioError) -> None:
        """Something that a client asked for is not done."""
        self._refused_requests[type(problem).__name__] += 1
        connection.say(Refused.of(subject_of(request), problem, request.number))

    def inspected(self, connection: Connection, message: Inspect) -> None:
        """A question about this broker."""
        try:
            for result, last in self._inspection.answer(message, connection.principal):
                connection.say(Inspected(message.number, result, last))
        except PalioError as problem:
            self.refuse_request(connection, message, problem)

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
        if connection is None:
            return
        message: Any = effect.message
        if (border := connection.border) is not None:
            try:
                message = border.leaving(message)
            except UnlistedMessage as problem:
                self._withhold(problem, connection)
                return
            if message is None:
                answer = bounced(effect.message, effect.broker)
                if answer is not None:
                    self._loop.call_soon(self.handle, answer, effect.broker)
                return
        for payload in fitting.letters(message):
            connection.put(payload)

    def _deliver(self, effect: Deliver) -> None:
        connection = self.sessions.get(effect.session)
        if connection is None:
            self.dropped["session gone"] += len(effect.envelopes)
            return
        # Many sessions mostly get the same: the comparison is by identity, and so costs next to nothing.
        if self._encoded is None or self._encoded[0] != effect.envelopes:
            self._encoded = effect.envelopes, encode_envelopes(effect.envelopes)
        for payload, count in fitting.events(effect.handles, effect.envelopes, self._encoded[1]):
            if payload is None:
                self._lose(connection)
            else:
                connection.put(payload, count)

    def _withhold(self, problem: UnlistedMessage, connection: Connection) -> None:
        """What this broker would say, and may not."""
        self.dropped["unlisted"] += 1
        self.log.error("A message is not sent.", extra={"connection": connection.name, "reason": str(problem)})

    def _lose(self, connection: Connection) -> None:
        """An event, or an answer, that no frame can bring."""
        self.dropped["too large"] += 1
        self.log.warning("What does not fit into a frame is not sent.", extra={"connection": connection.name})
        connection.say(Lost(1, TOO_LARGE))

    def _reply(self, effect: Reply) -> None:
        connection = self.sessions.get(effect.session)
        if type(effect.answer) is Refused:
            self._refused_requests[effect.answer.error] += 1
        if connection is None:
            return
        try:
            answer = answered(effect.answer, connection.principal)
        except UnlistedMessage as problem:
            self._withhold(problem, connection)
            return
        for payload in fitting.answers(answer):
            if payload is not None:
                connection.put(payload)
                continue
            self._lose(connection)
            if type(effect.answer) is Requested:  # nobody shall wait for what it would have said
                self._loop.call_soon(self._say_for, effect.session, Respond(effect.answer.id))

    def _hand(self, effect: Hand) -> None:
        connection = self.sessions.get(effect.session)
        if connection is None:
            return
        for payload, deliveries in fitting.handed(connection.principal.called(effect.name), effect.deliveries):
            if payload is not None:
                connection.put(payload)
                continue
            # Not now: the router is about to hand out the rest. It counts as an attempt like any other.
            number = deliveries[0][0]
            extra = {"durable": effect.name, "delivery": number, "reason": TOO_LARGE}
            self.log.warning("A delivery does not fit into a frame.", extra=extra)
            rejected = Rejected(effect.name, (number,), reason=TOO_LARGE)
            self._loop.call_soon(self._say_for, effect.session, rejected)

    def _say_for(self, session: str, message: Rejected | Respond) -> None:
        """What a client would say that cannot be given what it was to be given."""
        if session in self.sessions:
            self.handle(message, session)

    def _set_timer(self, effect: SetTimer) -> None:
        self._cancel_timer(effect.name)
        delay = max(0.0, effect.at - self.now.last)
        self._timers[effect.name] = self._loop.call_later(delay, self._on_timer, effect.name)

    def _cancel_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
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

    def gateway_statistics(self) -> GatewayStatistics:
        """What was done over HTTP; nothing, where there is none."""
        return self._http.statistics() if self._http is not None else GatewayStatistics()

    def statistics(self) -> BrokerStatistics:
        dropped = Counter(self.dropped)
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
            dict(self._refused_requests),
        )
