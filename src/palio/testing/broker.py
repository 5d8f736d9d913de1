"""`BrokerServer`: a broker for tests, which can be stopped, crash and start again at the same address."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

import msgspec

from palio.broker import broker as live
from palio.broker.broker import BrokerStatistics
from palio.broker.extension import Installer
from palio.broker.settings import Limits, Peer, Settings
from palio.client.blocking import LoopThread
from palio.protocol.peers import LinkKind
from palio.routing.durable.desk import DurableSettings
from palio.testing.clock import Clock
from palio.testing.memory import MemoryHost

# A test does not wait as patiently as a network in use.
PATIENCE = DurableSettings(tick=0.05, settle_within=0.01)


class Broker:
    """A broker. `async with` starts it and gives its address; `with` starts it in a thread."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None,
        extensions: Sequence[Installer] = (),
        resolver: Callable[[str], Awaitable[list[str]]] | None = None,
    ) -> None:
        self._settings = settings
        self._extensions = extensions
        self.clock = clock
        self._host = MemoryHost(clock, self._changed)
        self._host.resolver = resolver or self._host.resolver
        self._running: live.BrokerServer | None = None
        self._thread: LoopThread | None = None
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        if clock is not None:
            clock.wait_while(lambda: self._running is not None and self._host.is_busy)

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def port(self) -> int:
        """Where it listens, or did last."""
        return int(self._settings.listen.rpartition(":")[2])

    @property
    def address(self) -> str:
        """For `palio.connect`."""
        return f"palio://{self._settings.listen}"

    @property
    def url(self) -> str:
        """Its gateway, if it has one."""
        return f"http://{self._settings.http}"

    @property
    def running(self) -> live.BrokerServer:
        """The broker itself, with its router and connections."""
        assert self._running is not None, "The broker is not running; start it first."
        return self._running

    def statistics(self) -> BrokerStatistics:
        """Counts of the broker."""
        return self.running.statistics()

    async def __aenter__(self) -> str:
        await self.start()
        return self.address

    async def __aexit__(self, *problem: object) -> None:
        await self.stop()

    def __enter__(self) -> str:
        """For tests without an event loop: it runs in a thread of its own."""
        self._thread = LoopThread()
        self._thread.run(self.start())
        return self.address

    def __exit__(self, *problem: object) -> None:
        assert self._thread is not None
        self._thread.run(self.stop())
        self._thread.stop()

    async def start(self) -> Self:
        """Start it, at the same address as before."""
        if self._running is None:
            self._host.begin()
            running = live.BrokerServer(self._settings, host=self._host, extensions=self._extensions)
            await running.start()
            self._running = running
            host = self._settings.listen.rpartition(":")[0]
            http = f"127.0.0.1:{running.http_port}" if running.http_port else "off"
            quic = self._settings.quic
            if running.quic_port:
                quic = f"{quic.rpartition(':')[0]}:{running.quic_port}"
            self._settings = msgspec.structs.replace(
                self._settings, listen=f"{host}:{running.port}", http=http, quic=quic
            )
        return self

    async def stop(self) -> None:
        """Stop it in order."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    async def crash(self) -> None:
        """End it without a word: what was on its way is lost, what was in the journal is not."""
        running = self.running
        self._host.crash()
        for connection in list(running.connections):
            connection.abort("The broker has crashed.")
        await self.stop()

    def cut_off(self, client: str) -> None:
        """Cut the connection of a client, by the client's name."""
        self.running.sessions[client].abort("The connection was cut.")

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def link_to(self, *others: Broker, kind: LinkKind = LinkKind.PEER) -> None:
        """Connect to these brokers when it is started; they must have been."""
        peers = tuple([Peer(other._settings.listen, kind) for other in others])
        self._settings = msgspec.structs.replace(self._settings, peers=self._settings.peers + peers)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so at the broker; it is looked at whenever something has happened there."""
        if not condition():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((condition, future))
            await future

    def _changed(self) -> None:
        for condition, future in list(self._waiting):
            if future.done() or condition():
                self._waiting.remove((condition, future))
                if not future.done():
                    future.set_result(None)


def broker(
    *,
    name: str = "broker",
    journal: bool = False,
    http: bool = False,
    clock: Clock | None = None,
    durable: DurableSettings = PATIENCE,
    limits: Limits = Limits(),  # noqa: B008 (it is immutable)
    extensions: Sequence[Installer] = (),
    resolver: Callable[[str], Awaitable[list[str]]] | None = None,
    **settings: Any,
) -> Broker:
    """A broker for a test: `async with palio.testing.broker() as address`.

    With a `journal`, which is in memory, there are durable subscriptions and confirmations that mean something.
    With `http` it has a gateway. `extensions` add to it (`palio.broker.extension`). A `resolver` says to which
    addresses names lead that it joins (`dns://…`). Further `settings` are those of `palio.toml`.
    """
    return Broker(
        Settings(
            name=name,
            listen="127.0.0.1:0",
            http="127.0.0.1:0" if http else "off",
            journal=journal,
            durable=durable,
            limits=limits,
            **settings,
        ),
        clock,
        extensions,
        resolver,
    )
