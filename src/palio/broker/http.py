"""HTTP: whether the broker is well, its metrics for Prometheus, and the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from palio.broker.access.rights import Allowance
from palio.broker.gateway import description
from palio.broker.gateway.credentials import read_credentials
from palio.broker.gateway.gateway import Gateway
from palio.broker.gateway.protocols import MAX_HEAD, BoundedSocket, Callers, PatientProtocol
from palio.broker.metrics import Metrics
from palio.transport.tunnel import MAX_MESSAGE

if TYPE_CHECKING:
    from palio.broker.broker import Broker


class _Server(uvicorn.Server):
    """Signals are the business of the program, not of its HTTP server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """The HTTP side of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        registry = CollectorRegistry()
        app = FastAPI(title=f"Palio broker {broker.settings.name}", docs_url=None, redoc_url=None)
        self.gateway = Gateway(broker, app)
        registry.register(Metrics(broker))

        @app.get("/health", **description.HEALTH)
        async def health() -> Response:
            return self._health()

        @app.get("/metrics", **description.METRICS)
        async def metrics(request: Request) -> Response:
            """For who has the right to inspect, where anybody has to say who they are."""
            principal = read_credentials(request).authenticate(broker.access)
            principal.require(Allowance.INSPECT, "see the metrics")
            return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

        self._app = app
        self._server: _Server | None = None
        self._task: asyncio.Task[Any] | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen. Returns the port. Raises `OSError`."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
        settings = self._broker.settings
        patience = {
            "callers": Callers(settings.limits, self._broker.refused),
            "head_within": settings.gateway.body_within,
            "taken_within": 2 * settings.gateway.stalled,  # streams end themselves before that, and say so
        }
        patient = type("Patient", (PatientProtocol,), patience)
        config = uvicorn.Config(
            self._app,
            http=patient,
            ws=BoundedSocket,
            ws_max_size=MAX_MESSAGE,
            ws_per_message_deflate=False,  # what is small on the wire is small here, too
            h11_max_incomplete_event_size=MAX_HEAD,
            limit_concurrency=self._broker.settings.limits.connections,
            log_config=None,
            log_level="critical",  # what matters is in the broker's own log
            access_log=False,
            server_header=False,
            lifespan="off",
        )
        config.load()
        if self._broker.tls is not None:
            config.ssl = (
                self._broker.tls.context
            )  # that of all ports, whose certificate is read again on change
        await self.gateway.start()
        self._server = _Server(config)
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[listening]))
        return int(listening.getsockname()[1])

    async def stop(self) -> None:
        await self.gateway.stop()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            await self._task

    def _health(self) -> Response:
        """Well, or (503) why not: the store cannot be written to."""
        broker = self._broker
        waiting = broker.store.statistics().waiting if broker.store is not None else None
        text = f"not well: {waiting}\n" if waiting else "well\n"
        return Response(text, status_code=503 if waiting else 200, media_type="text/plain")
