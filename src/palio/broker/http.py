"""The HTTP port of a broker: the server, and on it the gateway and whatever else extensions add."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import uvicorn

from palio.broker.gateway.counts import GatewayStatistics
from palio.broker.gateway.front import Front
from palio.broker.gateway.gateway import Gateway
from palio.broker.gateway.protocols import MAX_HEAD, BoundedSocket, Callers, PatientProtocol
from palio.transport.tunnel import MAX_MESSAGE

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer


class _Server(uvicorn.Server):
    """Signals are the business of the program, not of its HTTP server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """The HTTP side of one broker."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._gateway = Gateway(broker)
        self._front = Front(broker)
        for extension in self._gateway.extensions():
            broker.extensions.add(extension)
        for extension in broker.extensions:
            self._front.mount(extension)
        self._server: _Server | None = None
        self._task: asyncio.Task[Any] | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen. Returns the port. Raises `OSError`."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
        settings = self._broker.settings
        patience = {
            "scheduler": self._broker.scheduler,
            "callers": Callers(settings.limits, self._broker.admission.refused),
            "head_within": settings.gateway.body_within,
            "taken_within": 2 * settings.gateway.stalled,  # streams end themselves before that, and say so
        }
        patient = type("Patient", (PatientProtocol,), patience)
        config = uvicorn.Config(
            self._front.app,
            http=patient,
            ws=type("Bounded", (BoundedSocket,), {"scheduler": self._broker.scheduler}),
            ws_max_size=MAX_MESSAGE,
            ws_per_message_deflate=False,  # what is small on the wire is small here, too
            h11_max_incomplete_event_size=MAX_HEAD,
            log_config=None,
            log_level="critical",  # what matters is in the broker's own log
            access_log=False,
            server_header=False,
            lifespan="off",
        )
        config.load()
        if self._broker.tls is not None:
            config.ssl = self._broker.tls.context  # of all ports; its certificate is read again on change
        self._server = _Server(config)
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[listening]))
        return int(listening.getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            await self._task

    def statistics(self) -> GatewayStatistics:
        return self._gateway.statistics(self._front)
