"""`BrokerServer`: the shell around a `Router`, put together of its parts; and how it starts and stops.

Everything happens in one event loop. A message comes in on a connection (`intake`), the router says what is to
be done, and it is done in that order (`runner`): answers and events are put on their connections (`registry`)
and written at the end of the turn, effects on the store are handed over (`storing`), whose completions come
back as messages. Who comes in and goes is the business of `admission`. Each part is handed what it needs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from palio.broker.access import Access
from palio.broker.accounts import Accounts
from palio.broker.admission import Admission
from palio.broker.auditing import Auditing
from palio.broker.connection import BrokerConnection
from palio.broker.counts import BrokerCounts
from palio.broker.dialling import Dialling
from palio.broker.directory import Directory
from palio.broker.documents.completing import DocumentCompletions
from palio.broker.documents.parts import DocumentParts
from palio.broker.documents.steady_times import not_before
from palio.broker.extension import Extensions, Installer
from palio.broker.gateway.counts import GatewayStatistics
from palio.broker.host import Host, MachineHost
from palio.broker.inspection import Inspection
from palio.broker.intake import Intake
from palio.broker.invoking import Invoking
from palio.broker.leave_requests import LeaveRequests
from palio.broker.link_requests import LinkRequests
from palio.broker.listening import Listening
from palio.broker.met import MetBrokers
from palio.broker.operations import OperationLog
from palio.broker.overlay_news import OverlayNews
from palio.broker.registry import Registry
from palio.broker.request_guard import RequestGuard
from palio.broker.rereading import Rereading
from palio.broker.runner import EffectRunner
from palio.broker.scheduling import Scheduler
from palio.broker.settings import Settings, require_safe, split_address
from palio.broker.storing import StoreBridge
from palio.broker.thinking import Stacks
from palio.broker.tls import ServerTls
from palio.matching.hints import Hints
from palio.model.errors import PalioError
from palio.protocol.addresses import SCHEME, SECURE_SCHEME
from palio.protocol.overlay import Contact
from palio.routing.configuration import Configuration
from palio.routing.router import Router

if TYPE_CHECKING:
    from palio.broker.gateway.definitions import Keeper
    from palio.store import Store


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


class BrokerServer:
    """One broker. `start` and `stop` it; everything else it does by itself."""

    _met: MetBrokers  # from when it is started

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        host: Host | None = None,
        extensions: Iterable[Installer] = (),
    ) -> None:
        """`clock` is that of the machine; another `host` brings its own, with all else that is around it."""
        self.settings = settings = settings.named()
        self._host: Host = host if host is not None else MachineHost(clock)
        self.now = self._host.now
        self.spool_folder = self._host.spool_folder(settings)
        self.log = log = logging.getLogger(f"palio.broker.{settings.name}")
        self.access = Access(settings.access_folder if settings.security.authentication else None, self.now)
        self.http_port = 0
        self.started = 0.0
        self._counts = counts = BrokerCounts()
        registry = Registry()
        self.scheduler = scheduler = Scheduler()
        scheduler.speak = registry.flush
        self.stacks = Stacks()
        self.accounts = Accounts(settings.limits.held, settings.limits.held_in_all)
        self.directory = Directory(self)
        registry.beaten = self._beaten
        completions = DocumentCompletions(settings.documents, self._head, self.now)
        self.storing = StoreBridge(
            settings.limits.unwritten,
            registry.read,
            scheduler,
            log,
            completions,
        )
        self.operations = operations = OperationLog(
            settings.operations, self.storing, self.now, journal=settings.journal
        )
        self._runner = runner = EffectRunner(
            registry,
            self.storing,
            counts,
            self._host,
            operations,
            broker=settings.name,
            scheduler=scheduler,
            log=log,
            publishes_overlay=settings.overlay.publishes and not settings.relay,
        )
        guard = RequestGuard(settings, self.now)
        self.admission = Admission(
            settings,
            self.access,
            guard,
            registry,
            counts,
            runner.handle,
            log,
            operations,
            lambda name: name in runner.router.neighbours(),
            self.directory.welcomed,
        )
        self._rereading = Rereading(self.access, registry, runner.handle, log)
        self._dialling = runner.dialling = Dialling(self, self._host.addresses)
        self._installers = tuple(extensions)
        self.extensions = Extensions(log)
        intake = Intake(settings, guard, runner, Inspection(self), counts, operations)
        self._registry = registry
        self._listening = Listening()
        self._http: Any = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

        # What connections and the gateway say goes straight to the part whose business it is.
        self.connections = registry.connections
        self.sessions = registry.sessions
        self.links = registry.links
        self.dropped = counts.dropped
        self.handle = runner.handle
        self.carry_out = runner.carry_out
        self.sharing = runner.sharing
        self.newest_documents = runner.newest_documents
        self.notice = runner.notices.tell
        self.documents = DocumentParts(self, completions, guard, intake)
        runner.outlived = self.documents.outlived
        self.take = intake.take
        self.inspected = intake.inspected
        self.invoked = Invoking(self.extensions, self.accounts, counts, operations).take
        self.throttled = intake.throttled
        self.will_flush = registry.will_flush
        self.refresh_access = self._rereading.refresh

    # Beginning and end

    async def start(self) -> None:
        """Open the store, listen, and connect to the neighbours. Raises what the store or the socket does."""
        settings, security = self.settings, self.settings.security
        require_safe(settings)
        self.access.open()
        if security.certificate:
            self._rereading.tls = ServerTls(security.certificate, security.key, security.authority)
        loop = asyncio.get_running_loop()
        self.storing.begin(self._runner.complete)
        self._runner.left = loop.create_future()
        self._runner.router = await self._make_router()
        self.refresh_access()  # a store may have been waited for, for days
        await self.documents.begin()
        try:
            await self._listening.start(settings, self.tls, lambda: BrokerConnection(self))
        except (OSError, PalioError):
            await self.storing.close()
            raise
        self.extensions.add(Auditing(self).extension())
        self.extensions.add(LeaveRequests(self).extension())
        self.extensions.add(LinkRequests(self, self._dialling).extension())
        self.extensions.add(self.overlay_news.extension())
        for extension in self.documents.extensions():
            self.extensions.add(extension)
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
        self._tasks.append(loop.create_task(self._registry.beat(settings.heartbeat)))
        self._rereading.tell(self.access.principals())
        if self.access.is_on or self.tls is not None:
            self._tasks.append(loop.create_task(self._rereading.watch()))
        self._runner.on_timer("started")
        self._dialling.start(settings.peers)
        scheme = SECURE_SCHEME if self.tls is not None else SCHEME
        host = split_address(settings.listen)[0]
        where = f"[{host}]" if ":" in host else host
        self._met = MetBrokers.of(settings, self.log)
        self.carry_out(self.router.begin(f"{scheme}{where}:{self.port}", self.now(), self._met.read()))
        self.log.info("The broker is up.", extra={"port": self.port})

    async def _make_router(self) -> Router:
        """The router, with what is in the store if there is one."""
        settings = self.settings
        configuration = Configuration(
            broker=settings.name,
            strategy=settings.strategy,
            advertisements=settings.advertisements,
            merging_excess=settings.merging_excess,
            overlay=settings.overlay,
            reconfiguration=settings.reconfiguration,
            hints=Hints.load(settings.hints) if settings.hints else None,
            durable=settings.delivery,
            relay=settings.relay,
            incarnation=int(self.now()),
            scoped=self.access.is_on,
            patient=True,
        )
        if not settings.journal:
            return Router(configuration)
        self.storing.store = store = await self._host.open_store(settings, self.storing)
        recovered, incarnation = store.recovered()
        last = await not_before(self.storing, recovered.last_time, self.now())
        recovered = msgspec.structs.replace(recovered, last_time=last)
        return Router(msgspec.structs.replace(configuration, incarnation=incarnation), recovered=recovered)

    async def stop(self, reason: str = "The broker is stopping.") -> None:
        """Say goodbye to everyone, write what is to be written, and end."""
        if self._stopping:
            return
        self._stopping = self.admission.is_closed = True
        if self.started:
            self._met.keep(self._known_brokers, last=True)
        self._dialling.stop()
        self._listening.close()
        for task in self._tasks:
            task.cancel()
        await self._registry.close(reason)
        self._listening.end()
        self.documents.stop()
        await self.extensions.stop()
        if self._http is not None:
            await self._http.stop()
        self._runner.stop()
        self.operations.close()
        await self.storing.close()
        if self.started:  # otherwise what is wrong is told, and nothing else
            self.log.info("The broker has stopped.")

    def _beaten(self) -> None:
        self.accounts.give_back()
        self.directory.look()
        self._met.keep(self._known_brokers)

    def _known_brokers(self) -> tuple[Contact, ...]:
        return self.router.overlay().known

    # Looking in

    @property
    def port(self) -> int:
        """Where it listens for TCP, or 0 when it does not yet."""
        return self._listening.port

    @property
    def quic_port(self) -> int:
        """Where it listens for QUIC, or 0."""
        return self._listening.quic_port

    @property
    def router(self) -> Router:
        """The routing core, which decides."""
        return self._runner.router

    @property
    def overlay_news(self) -> OverlayNews:
        """What has happened to the links of this broker."""
        return self._runner.overlay_news

    @property
    def store(self) -> Store | None:
        return self.storing.store

    def _head(self) -> int:
        return 0 if self.store is None else self.store.statistics().head

    @property
    def failed(self) -> asyncio.Future[str] | None:
        """Completes when the broker cannot go on, with the reason."""
        return self.storing.failed

    @property
    def left(self) -> asyncio.Future[None]:
        """Completes when the broker has left its network, as it was told to."""
        return self._runner.left

    @property
    def tls(self) -> ServerTls | None:
        """The certificate that it shows, if it has one."""
        return self._rereading.tls

    def keeper(self) -> Keeper:
        """Where the gateway keeps its subscriptions."""
        return self._host.keeper(self.settings)

    def dialling_problems(self) -> dict[str, str]:
        """By address: why there is no link to a neighbour that this broker connects to."""
        return self._dialling.problems

    def gateway_statistics(self) -> GatewayStatistics:
        """What was done over HTTP; nothing, where there is none."""
        return self._http.statistics() if self._http is not None else GatewayStatistics()

    def statistics(self) -> BrokerStatistics:
        counts = self._counts
        dropped = Counter(counts.dropped)
        for connection in self.connections:
            dropped.update(connection.outgoing.statistics().dropped)
        dropped.update(self.router.statistics().forwarding.dropped)
        return BrokerStatistics(
            self.settings.name,
            self.started,
            len(self.connections),
            len(self.sessions),
            len(self.links),
            dict(counts.refused),
            dict(dropped),
            dict(counts.refused_requests),
        )
