"""`palio/1` over WebSocket: binary messages are pieces of the same stream of frames as on a socket."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from palio.broker.connection import Connection
from palio.broker.gateway.transports import BufferedTransport

if TYPE_CHECKING:
    from palio.broker.broker import Broker

PATH = "/palio"
# What one WebSocket message carries at the most, each way: a frame may need several.
PIECE = 256 * 1024
MAX_MESSAGE = 4 * PIECE

_NOT_BINARY = 1003


class _Tunnel:
    """A connection of the broker within a WebSocket."""

    def __init__(self, broker: Broker, socket: WebSocket) -> None:
        self._socket = socket
        self._to_send: deque[bytes] = deque()
        self._something = asyncio.Event()
        self._over = False
        address = (socket.client.host, socket.client.port) if socket.client is not None else None
        self._connection = Connection(broker)
        self._transport = BufferedTransport(self._connection, self._written, self._ended, address)

    async def run(self) -> None:
        self._connection.connection_made(self._transport)
        hearing = asyncio.ensure_future(self._hear())
        try:
            await self._say()
            if self._socket.client_state is WebSocketState.CONNECTED:
                await self._socket.close(1000, self._connection.reason[:100])
        except (WebSocketDisconnect, RuntimeError, OSError):
            pass  # the other end is gone
        finally:
            hearing.cancel()
            self._transport.gone()

    def _written(self, data: bytes) -> None:
        self._to_send.append(data)
        self._something.set()

    def _ended(self) -> None:
        self._over = True
        self._something.set()

    async def _say(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            while self._to_send:
                data = self._to_send.popleft()
                for at in range(0, len(data), PIECE):
                    piece = data[at : at + PIECE]
                    await self._socket.send_bytes(piece)
                    self._transport.took(len(piece))
            if self._over:
                return

    async def _hear(self) -> None:
        while True:
            await self._transport.room()
            message = await self._socket.receive()
            data = message.get("bytes")
            if message["type"] != "websocket.receive" or data is None:
                if message["type"] == "websocket.receive":
                    await self._socket.close(_NOT_BINARY, "Frames are binary messages.")
                self._transport.gone()
                return
            self._transport.receive(data)


async def serve(broker: Broker, socket: WebSocket) -> None:
    """Let a WebSocket be a connection of the broker, until either ends it."""
    await socket.accept()
    await _Tunnel(broker, socket).run()
