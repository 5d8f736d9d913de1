"""`LinkProxy`: stands before a broker, and decides what passes between it and each of those who connect to it.

Who connects is known from the first thing that is said. A connection that is *cut* ends at both ends, and new
ones do, too. One that is *held* does what TCP does while packets do not arrive: neither end hears anything, not
even that the other one has given up, and what was said arrives when the wire is open again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum

from palio.model.errors import PalioError
from palio.protocol.encoding import decode
from palio.protocol.frames import GREETING_FRAME, Frames
from palio.protocol.greeting import Greet, Role

_PIECE = 65_536


class Passage(Enum):
    OPEN = "open"
    HELD = "held"
    CUT = "cut"


def caller_of(first: bytes) -> str:
    """The broker whose greeting this is; empty if it is none of a broker."""
    with contextlib.suppress(PalioError):
        for payload in Frames(GREETING_FRAME).feed(first):
            greet = decode(payload)
            return greet.name if isinstance(greet, Greet) and greet.role is Role.PEER else ""
    return ""


class ProxyWire:
    """One connection through a proxy, by its two ends."""

    def __init__(self, caller: str, ends: list[asyncio.StreamWriter]) -> None:
        self.caller = caller
        self.ends = ends
        self.passing = asyncio.Event()
        self.is_cut = False

    def set(self, passage: Passage) -> None:
        if passage is Passage.HELD:
            self.passing.clear()
            return
        if passage is Passage.CUT:
            self.is_cut = True
            for end in self.ends:
                end.transport.abort()
        self.passing.set()


class LinkProxy:
    """Listens at a port of its own, and passes on to the port that `target` says, in both directions.

    `passage` says for each caller whether its wires are open; whoever changes that calls `look_again`. `delay`
    holds each piece back for so many seconds.
    """

    def __init__(
        self, target: Callable[[], int], passage: Callable[[str], Passage] = lambda caller: Passage.OPEN
    ) -> None:
        self._target = target
        self._passage = passage
        self._server: asyncio.Server | None = None
        self._wires: set[ProxyWire] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._whole = Passage.OPEN  # for all callers
        self.delay = 0.0
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def look_again(self) -> None:
        """Let passages that have changed count for the wires that there are."""
        for wire in list(self._wires):
            wire.set(self._passage_of(wire.caller))

    async def cut(self) -> None:
        """End all connections, and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._whole = Passage.CUT
        self.look_again()

    def hold(self) -> None:
        """Let nothing pass any more, until it is mended. Neither side hears that the other is away."""
        self._whole = Passage.HELD
        self.look_again()

    async def mend(self) -> None:
        """Take new connections, and let everything pass."""
        self._whole = Passage.OPEN
        self.look_again()
        if self._server is None:
            await self.start()

    async def close(self) -> None:
        await self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _passage_of(self, caller: str) -> Passage:
        return self._passage(caller) if self._whole is Passage.OPEN else self._whole

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        wire = ProxyWire("", [writer])
        self._wires.add(wire)
        try:
            with contextlib.suppress(OSError):
                first = await reader.read(_PIECE)
                wire.caller = caller_of(first)
                wire.set(self._passage_of(wire.caller))
                await wire.passing.wait()
                if not first or wire.is_cut or reader.at_eof():
                    return  # nobody waits for an answer any more
                onward_reader, onward = await asyncio.open_connection("127.0.0.1", self._target())
                wire.ends.append(onward)
                wire.set(self._passage_of(wire.caller))
                onward.write(first)
                await asyncio.gather(self._pass(wire, reader, onward), self._pass(wire, onward_reader, writer))
        finally:
            for end in wire.ends:
                end.transport.abort()
            self._wires.discard(wire)

    async def _pass(self, wire: ProxyWire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # it may have ended meanwhile
            while data := await reader.read(_PIECE):
                await wire.passing.wait()
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()
        await wire.passing.wait()  # that one side has given up is not told either
        if not wire.is_cut:
            with contextlib.suppress(OSError, RuntimeError):
                writer.write_eof()
