"""`palio/2` over WebSocket, at the broker: the same frames as on a socket of its own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from palio.broker.connection import BrokerConnection
from palio.broker.gateway.protocols import ABORT, PEER_CERTIFICATE
from palio.transport.tunnel import Tunnel

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

PATH = "/palio"
_NOT_BINARY = 1003
_CLOSED_WITHIN = 5.0  # seconds


class _GatewaySocket:
    """A WebSocket of the HTTP server."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def send(self, data: bytes) -> None:
        try:
            await self._socket.send_bytes(data)
        except (WebSocketDisconnect, RuntimeError):
            raise ConnectionResetError("The other end is gone") from None

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        data: bytes | None = message.get("bytes")
        if message["type"] == "websocket.receive" and data is None:
            await self._socket.close(_NOT_BINARY, "Frames are binary messages.")
        return data

    async def close(self) -> None:
        if WebSocketState.DISCONNECTED not in (self._socket.client_state, self._socket.application_state):
            # Who takes nothing does not take the end of it either; for who has gone, this does nothing.
            asyncio.get_running_loop().call_later(_CLOSED_WITHIN, self._socket.scope[ABORT])
            with suppress(WebSocketDisconnect, RuntimeError):
                await self._socket.close()


async def serve(broker: BrokerServer, socket: WebSocket) -> None:
    """Let a WebSocket be a connection of the broker, until either ends it."""
    await socket.accept()
    address = (socket.client.host, socket.client.port) if socket.client is not None else None
    certificate = socket.scope.get(PEER_CERTIFICATE)
    connection = BrokerConnection(broker)
    connection.binding = "websocket"
    await Tunnel(connection, _GatewaySocket(socket), address, certificate).run()
