"""Transports for a protocol that is not on a socket of its own: in memory, within a WebSocket, or by QUIC.

What the connection has written and the other side has not taken yet is counted. Beyond the high-water mark the
connection is told to pause, as by any transport, and so its own bounds and policy for slow readers apply.
What comes from the other side waits while the connection does not want to read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

DEFAULT_HIGH = 64 * 1024


class BufferedTransport(asyncio.Transport):
    """A transport whose other side takes what was written by itself, and says how much.

    `written` is called with what the protocol writes; `ended` once, when nothing more comes or goes; `resumed`
    when the protocol wants to read again. Up to `under_way` bytes of what was written do not make it full.
    """

    def __init__(
        self,
        protocol: asyncio.Protocol,
        written: Callable[[bytes], None],
        ended: Callable[[], None],
        address: tuple[str, int] | None,
        *,
        under_way: int = 0,
        resumed: Callable[[], None] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__({"peername": address, **extra})
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._written = written
        self._ended = ended
        self._resumed = resumed
        self._size = 0
        self._under_way = under_way
        self.set_write_buffer_limits()
        self._full = False
        self._closing = False
        self._closed = False
        self._waiting: deque[bytes] = deque()
        self._last: tuple[Exception | None] | None = None  # nothing more comes, and why
        self._reading = True
        self._room = asyncio.Event()
        self._room.set()

    # For the protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        high = DEFAULT_HIGH if high is None else high
        self._high = high + self._under_way
        self._low = (high // 4 if low is None else low) + self._under_way

    def get_write_buffer_size(self) -> int:
        return self._size

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        self._size += len(data)
        self._written(bytes(data))
        if self._size > self._high and not self._full:
            self._full = True
            self._protocol.pause_writing()

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False
        self._room.clear()

    def resume_reading(self) -> None:
        self._reading = True
        self._loop.call_soon(self._feed)

    def close(self) -> None:
        """Nothing more is written; what was is still taken."""
        if not self._closing:
            self._closing = True
            if not self._size:
                self._loop.call_soon(self._finish)

    def abort(self) -> None:
        self._closing = True
        self._size = 0
        self._loop.call_soon(self._finish)

    # For the other side

    def took(self, size: int) -> None:
        """So many bytes of what was written are done with."""
        self._size = max(0, self._size - size)
        if self._full and self._size <= self._low and not self._closed:
            self._full = False
            self._protocol.resume_writing()
        if self._closing and not self._size:
            self._loop.call_soon(self._finish)

    def receive(self, data: bytes) -> None:
        """Bytes for the protocol, in one of the next turns of the loop."""
        self._waiting.append(data)
        self._loop.call_soon(self._feed)

    async def room(self) -> None:
        """Wait until the protocol wants to read, or the end."""
        await self._room.wait()

    def no_more(self, problem: Exception | None = None) -> None:
        """Nothing more comes: the protocol reads what has come, and then that is the end."""
        self._size = 0
        self._closing = True
        self._last = (problem,)
        self._loop.call_soon(self._feed)

    def gone(self, problem: Exception | None = None) -> None:
        """The other side is not there any more."""
        self._size = 0
        self._closing = True
        self._finish(problem)

    def _feed(self) -> None:
        while self._waiting and self._reading and not self._closed:
            self._protocol.data_received(self._waiting.popleft())
        if self._reading or self._closed:
            self._room.set()
        if self._last is not None and not self._waiting:
            self._finish(*self._last)
        elif self._resumed is not None and self._reading and not self._closed:
            self._resumed()

    def _finish(self, problem: Exception | None = None) -> None:
        if not self._closed:
            self._closed = True
            self._waiting.clear()
            self._room.set()
            self._protocol.connection_lost(problem)
            self._ended()
