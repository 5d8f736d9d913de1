"""A wire between two brokers that can be cut, made slow, or swallow everything."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

_PIECE = 65_536


class Proxy:
    """Listens, and passes on what comes to wherever `target` says, in both directions.

    `delay` holds each piece back for so many seconds.
    """

    def __init__(self, target: Callable[[], int]) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self.delay = 0.0
        self.port = 0
        self.connections = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End all connections, and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    async def mend(self) -> None:
        """Take new connections, and let everything pass."""
        self._passing.set()
        if self._server is None:
            await self.start()

    def swallow(self) -> None:
        """Let nothing pass any more, until it is mended. Neither side hears that the other is away."""
        self._passing.clear()

    async def close(self) -> None:
        await self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        try:
            onward_reader, onward = await asyncio.open_connection("127.0.0.1", self._target())
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(onward)
        try:
            await asyncio.gather(self._pass(reader, onward), self._pass(onward_reader, writer))
        finally:
            for one in (writer, onward):
                one.transport.abort()
                self._writers.discard(one)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        swallowed = False
        with contextlib.suppress(OSError):
            while data := await reader.read(_PIECE):
                if not self._passing.is_set():
                    swallowed = True
                if swallowed:
                    continue  # what was lost on this wire is lost: it is not used again after that
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()
        if not self._passing.is_set():
            await self._passing.wait()  # that one side has given up is not told either
        writer.transport.abort()
