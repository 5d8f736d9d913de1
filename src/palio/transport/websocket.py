"""`ws://` and `wss://`: the same frames within a WebSocket, for networks that let only HTTP through."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from palio.model.errors import MissingDependency
from palio.protocol.greeting import PROTOCOL
from palio.protocol.strangers import MISDIRECTED, NotPalio
from palio.transport.interface import End
from palio.transport.tunnel import MAX_MESSAGE, Tunnel

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

SCHEMES = ("ws://", "wss://")
PATH = "/palio"


def complete(url: str) -> str:
    """A URL with a path: the one of a broker, if none is given. Raises `ValueError` with a sentence."""
    parts = urlsplit(url)
    if not parts.hostname or parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"{url!r} is not of the form ws://host:port or wss://host:port.")
    if parts.port == 0:
        raise ValueError("There is no port 0.")
    return url if parts.path.strip("/") else url.rstrip("/") + PATH


class _LibrarySocket:
    """A WebSocket of the `websockets` library."""

    def __init__(self, socket: ClientConnection) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 (it is there, or there is no socket)

        self._socket = socket
        self._closed = ConnectionClosed

    async def send(self, data: bytes) -> None:
        try:
            await self._socket.send(data)
        except self._closed as problem:
            raise ConnectionResetError(str(problem)) from None

    async def receive(self) -> bytes | None:
        try:
            data = await self._socket.recv()
        except self._closed:
            return None
        return data if isinstance(data, bytes) else None

    async def close(self) -> None:
        await self._socket.close()


class WebSocketDialler:
    """A URL of a broker's, with a path."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._url = url
        self._tls = tls if url.startswith("wss://") else None

    async def dial(self, make: Callable[[], End]) -> End:
        """A stream within a WebSocket. Raises OSError, and `MissingDependency`."""
        try:
            from websockets.asyncio.client import connect as open_socket  # noqa: PLC0415 (an extra)
            from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI  # noqa: PLC0415
        except ImportError:
            raise MissingDependency("websockets", "websocket") from None
        try:
            socket = await open_socket(
                self._url, ssl=self._tls, compression=None, max_size=MAX_MESSAGE, proxy=None
            )
        except InvalidStatus as problem:
            if problem.response.status_code == MISDIRECTED:  # the port for palio/2, which says so
                raise NotPalio(PROTOCOL) from None
            raise ConnectionError(f"no WebSocket of a broker: {problem}") from None
        except (InvalidHandshake, InvalidURI) as problem:
            raise ConnectionError(f"no WebSocket of a broker: {problem}") from None
        end = make()
        address = socket.remote_address
        Tunnel(end, _LibrarySocket(socket), address[:2] if address else None).start()
        await asyncio.sleep(0)
        return end
