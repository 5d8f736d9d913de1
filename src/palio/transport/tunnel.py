"""`Tunnel`: a stream of bytes within messages, for both ends of a WebSocket.

Where a message ends means nothing: a frame may need several, and one may have several frames.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

from palio.transport.buffered import BufferedTransport

# What one message carries at the most: others need not wait long for it.
PIECE = 256 * 1024
# What one message may have that comes from others.
MAX_MESSAGE = 4 * PIECE


class MessageSocket(Protocol):
    """What carries messages."""

    async def send(self, data: bytes) -> None:
        """Send a message, and wait while there is no room for it. Raises OSError when the other end is gone."""

    async def receive(self) -> bytes | None:
        """The next message; None at the end."""

    async def close(self) -> None:
        """End it in order."""


class Tunnel:
    """Lets an asyncio protocol use a socket of messages as if it were one of bytes."""

    def __init__(
        self,
        protocol: asyncio.Protocol,
        socket: MessageSocket,
        address: tuple[str, int] | None,
        certificate: Mapping[str, Any] | None = None,
    ) -> None:
        self._protocol = protocol
        self._socket = socket
        self._to_send: deque[bytes] = deque()
        self._something = asyncio.Event()
        self._over = asyncio.get_running_loop().create_future()
        self._transport = BufferedTransport(protocol, self._written, self._ended, address, peercert=certificate)

    def start(self) -> None:
        """Run in a task of its own, which lasts as long as the protocol has its transport."""
        self._running = asyncio.get_running_loop().create_task(self.run())

    async def run(self) -> None:
        """Carry bytes both ways until either end has enough."""
        self._protocol.connection_made(self._transport)
        hearing, saying = asyncio.ensure_future(self._hear()), asyncio.ensure_future(self._say())
        try:
            # Whoever does not take what is said to it is not waited for once the end has come.
            await asyncio.wait((hearing, saying, self._over), return_when=asyncio.FIRST_COMPLETED)
            if saying.done():
                saying.result()
            await self._socket.close()
        except OSError as problem:
            self._transport.gone(problem)
        finally:
            for task in (hearing, saying):
                task.cancel()
            await asyncio.gather(hearing, saying, return_exceptions=True)
            self._transport.gone()

    def _written(self, data: bytes) -> None:
        self._to_send.append(data)
        self._something.set()

    def _ended(self) -> None:
        self._to_send.clear()
        if not self._over.done():
            self._over.set_result(None)

    async def _say(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            while self._to_send:
                data = self._to_send.popleft()
                for at in range(0, len(data), PIECE):
                    piece = data[at : at + PIECE]
                    await self._socket.send(piece)
                    self._transport.took(len(piece))

    async def _hear(self) -> None:
        while True:
            await self._transport.room()
            data = await self._socket.receive()
            if data is None:
                self._transport.gone()
                return
            self._transport.receive(data)
