"""`Registry`: the connections of a broker, and whose they are: sessions of clients, links to neighbours.

It knows who is there; `admission` decides who comes in and goes. What is put on connections in one turn of the
event loop is written together at its end. Clients may not be read from for a while, all of them (backpressure).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from palio.protocol.heartbeat import LOOKS

if TYPE_CHECKING:
    from palio.broker.connection import BrokerConnection

# Seconds that connections have to end in order.
_LAST_WORDS = 2.0


class Registry:
    """Who is connected.

    `flushed` is called when what was put on connections is about to be written, `beaten` after each heartbeat.
    """

    def __init__(self) -> None:
        self.connections: dict[BrokerConnection, None] = {}
        self.sessions: dict[str, BrokerConnection] = {}
        self.links: dict[str, BrokerConnection] = {}
        self.reading = True  # from clients
        self.flushed: Callable[[], None] = lambda: None
        self.beaten: Callable[[], None] = lambda: None
        self._to_flush: dict[BrokerConnection, None] = {}

    # Writing

    def will_flush(self, connection: BrokerConnection) -> None:
        """Something was put on a connection: it is written at the end of this turn of the loop."""
        if not self._to_flush:
            asyncio.get_running_loop().call_soon(self.flush)
        self._to_flush[connection] = None

    def flush(self) -> bool:
        """Write what was put on connections. Returns whether there was anything."""
        if not self._to_flush:
            return False
        connections, self._to_flush = self._to_flush, {}
        self.flushed()
        for connection in connections:
            connection.flush()
        return True

    # Reading

    def read(self, reading: bool) -> None:
        """Backpressure: read what clients send, or let it wait."""
        if reading != self.reading:
            self.reading = reading
            for connection in self.sessions.values():
                connection.read(reading)

    # All of them

    def remove(self, connection: BrokerConnection) -> bool:
        """Forget a connection that is gone. Returns whether it was known."""
        self._to_flush.pop(connection, None)
        if connection not in self.connections:
            return False
        del self.connections[connection]
        return True

    async def beat(self, heartbeat: float) -> None:
        """Send heartbeats and look for silence, for as long as this runs."""
        loop = asyncio.get_running_loop()
        pause = heartbeat / LOOKS
        now = loop.time()
        while True:
            await asyncio.sleep(pause)
            before, now = now, loop.time()
            for connection in list(self.connections):
                connection.beat(now, max(0.0, now - before - pause))
            self.beaten()

    async def close(self, reason: str) -> None:
        """Say goodbye on all connections, and end those that do not end in time."""
        open_ones = list(self.connections)
        for connection in open_ones:
            connection.end(reason)
        if open_ones:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS):
                    await asyncio.gather(*[connection.closed for connection in open_ones])
        for connection in list(self.connections):
            connection.abort(reason)
