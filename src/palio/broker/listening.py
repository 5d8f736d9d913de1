"""`Listening`: the ports of a broker for clients and neighbours: TCP, and beside it QUIC if wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from palio.broker.settings import Settings, split_address
from palio.broker.tls import ServerTls
from palio.transport.quic import Quic, QuicServer
from palio.transport.tcp import Tcp


class Listening:
    """What listens. Ports are 0 until they are known."""

    def __init__(self) -> None:
        self.port = 0
        self.quic_port = 0
        self._server: asyncio.Server | None = None
        self._quic: QuicServer | None = None

    async def start(
        self, settings: Settings, tls: ServerTls | None, make: Callable[[], asyncio.Protocol]
    ) -> None:
        """Take connections from now on, or none. Raises OSError, and what a missing extra does."""
        within = settings.limits.greeting
        context = None if tls is None else tls.context
        transport = Tcp(*split_address(settings.listen), context, handshake=within)
        self._server = await transport.listen(make)
        self.port = self._server.sockets[0].getsockname()[1]
        if settings.quic == "off" or tls is None:
            return
        try:
            quic = Quic(*split_address(settings.quic), heartbeat=settings.heartbeat)
            self._quic = await quic.listen(make, *tls.files, handshake=within)
        except BaseException:
            self._server.close()
            raise
        tls.shown_by = self._quic.show
        self.quic_port = self._quic.port

    def close(self) -> None:
        """Take no more connections; those that are there go on."""
        if self._server is not None:
            self._server.close()
        if self._quic is not None:
            self._quic.close()

    def end(self) -> None:
        """Let go of what is left, when all connections have ended."""
        if self._quic is not None:
            self._quic.abort()
