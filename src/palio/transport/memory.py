"""Memory: both ends of a stream in one program, with the bounds of a socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from palio.transport.buffered import BufferedTransport
from palio.transport.interface import End

_HERE = "memory", 0


class Memory:
    """A place in this program. Whoever dials it is connected with who listens."""

    def __init__(self) -> None:
        self._make: Callable[[], asyncio.Protocol] | None = None

    async def listen(self, make: Callable[[], asyncio.Protocol]) -> Memory:
        """Take streams from now on."""
        self._make = make
        return self

    def close(self) -> None:
        """Take no more."""
        self._make = None

    async def wait_closed(self) -> None:
        """It is so at once."""

    async def dial(self, make: Callable[[], End]) -> End:
        """A stream to who listens here. Raises ConnectionRefusedError if nobody does."""
        if self._make is None:
            raise ConnectionRefusedError("nobody listens")
        near, far = make(), self._make()
        join(near, far)
        return near


def join(one: asyncio.Protocol, other: asyncio.Protocol) -> None:
    """Make two protocols the ends of one stream."""
    ends = _End(one), _End(other)
    for end, opposite in (ends, ends[::-1]):
        end.opposite = opposite
    for end in ends:
        end.protocol.connection_made(end.transport)


class _End:
    def __init__(self, protocol: asyncio.Protocol) -> None:
        self.protocol = protocol
        self.transport = BufferedTransport(protocol, self._written, self._ended, _HERE)
        self.opposite: _End
        self._waiting: deque[bytes] = deque()
        self._passing: asyncio.Task[None] | None = None

    def _written(self, data: bytes) -> None:
        self._waiting.append(data)
        if self._passing is None:
            self._passing = asyncio.get_running_loop().create_task(self._pass_on())

    async def _pass_on(self) -> None:
        while self._waiting:
            await self.opposite.transport.room()  # who does not read is not given more
            data = self._waiting.popleft()
            self.opposite.transport.receive(data)
            self.transport.took(len(data))
        self._passing = None

    def _ended(self) -> None:
        self.opposite.transport.gone()
