"""TCP, and TLS over it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from palio.transport.interface import End

_BACKLOG = 1_024  # connections that wait to be taken: those of a network that comes back at once


class Tcp:
    """A host and a port; with a context, TLS is spoken there. A handshake may take `handshake` seconds."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None = None, *, handshake: float | None = None
    ) -> None:
        self._place = host, port
        self._tls = tls
        self._handshake = handshake if tls is not None else None

    async def dial(self, make: Callable[[], End]) -> End:
        """A connection. Raises OSError."""
        loop = asyncio.get_running_loop()
        _, end = await loop.create_connection(
            make, *self._place, ssl=self._tls, ssl_handshake_timeout=self._handshake
        )
        return end

    async def listen(self, make: Callable[[], asyncio.Protocol]) -> asyncio.Server:
        """Take connections from now on. Raises OSError."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(
            make, *self._place, backlog=_BACKLOG, ssl=self._tls, ssl_handshake_timeout=self._handshake
        )
