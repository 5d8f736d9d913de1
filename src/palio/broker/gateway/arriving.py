"""`ArrivingBody`: what has come of the body of a request: in memory, and from some size on in a file.

1. Whoever sends slowly holds a file, and of memory no more than `body_in_memory` bytes and one piece.
2. The file has no name, so it is gone with whoever has it open, however that ends: after a crash there is
   nothing to sweep.
3. When a body has come to its end it is brought back into memory, once there is room for it; who waits for that
   gets it in the order of coming.
4. Files are written and read in threads. What a thread is at is let end before its file is closed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

from palio.model.errors import PalioError

Result = TypeVar("Result")
_ROOM_WITHIN, _MOMENT = 10.0, 2.0  # seconds


class NotNow(PalioError):
    """The broker has enough to do with other requests."""

    def __init__(self) -> None:
        super().__init__("The broker is busy with other requests; try again in a second.")


class BodyRoom:
    """How many bytes all bodies may have in memory, and in files."""

    def __init__(self, most_held: int, most_filed: int) -> None:
        self._most_held = most_held
        self._most_filed = most_filed
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.held = 0
        self.filed = 0

    async def hold(self, size: int) -> None:
        """So many bytes more are in memory. Raises `NotNow` if there is no room, nor in a moment, when others
        have gone to files.
        """
        await self.wait(size, _MOMENT)

    def file(self, size: int) -> None:
        """So many bytes go from memory to a file. Raises `NotNow`."""
        if self.filed + size > self._most_filed:
            raise NotNow
        self.filed += size

    async def wait(self, size: int, seconds: float | None = None) -> None:
        """Holds so many bytes, once there is room for them (3). Raises `NotNow` if there is none in time."""
        if not self._waiting and self.held + size <= self._most_held:
            self.held += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            async with asyncio.timeout(_ROOM_WITHIN if seconds is None else seconds):
                await turn
        except (TimeoutError, asyncio.CancelledError) as problem:
            if not turn.cancelled():  # its turn has come at the last moment
                self.held -= size
            self._let_in()
            if isinstance(problem, TimeoutError):
                raise NotNow from None
            raise

    def free(self, held: int, filed: int) -> None:
        """So many bytes are needed no more."""
        self.held -= held
        self.filed -= filed
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            size, turn = self._waiting[0]
            if not turn.done():
                if self.held + size > self._most_held:
                    return
                self.held += size
                turn.set_result(None)
            self._waiting.popleft()


class ArrivingBody:
    """One body. Whatever becomes of it, it is to be released."""

    def __init__(self, room: BodyRoom, most: int, folder: Path) -> None:
        """No more than about `most` bytes stay in memory; the rest goes to a file in `folder`."""
        self._room = room
        self._most = most
        self._folder = folder
        self._parts: list[bytes] = []
        self._held = 0
        self._filed = 0
        self._file: IO[bytes] | None = None
        self._working: asyncio.Future[Any] | None = None

    @property
    def size(self) -> int:
        return self._held + self._filed

    async def add(self, part: bytes) -> None:
        """The next bytes. Raises `NotNow` and `OSError`."""
        await self._room.hold(len(part))
        self._held += len(part)
        self._parts.append(part)
        if self._held > self._most:
            await self._spool()

    async def whole(self) -> bytes:
        """All of it, in memory, once nothing more comes. Raises `NotNow` and `OSError`."""
        if self._file is None:
            content = b"".join(self._parts)
            self._parts.clear()
            return content
        await self._spool()
        size = self._filed
        await self._room.wait(size)
        self._held += size
        content = await self._in_thread(self._read)
        self._filed = 0
        self._room.free(0, size)
        return content

    async def _spool(self) -> None:
        """Brings what is in memory into the file."""
        size, parts = self._held, self._parts
        self._room.file(size)
        self._filed, self._parts = self._filed + size, []
        await self._in_thread(self._write, parts)
        self._held -= size
        self._room.free(size, 0)

    def _write(self, parts: list[bytes]) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 (until `release`)
        for part in parts:
            left = memoryview(part)
            while left:
                left = left[self._file.write(left) :]

    def _read(self) -> bytes:
        assert self._file is not None
        with self._file as opened:
            opened.seek(0)
            content = opened.read()
        if len(content) != self._filed:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return content

    async def _in_thread(self, work: Callable[..., Result], *arguments: Any) -> Result:
        self._working = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
        return await asyncio.shield(self._working)

    def release(self) -> None:
        """It is needed no more."""
        self._parts = []
        self._room.free(self._held, self._filed)
        self._held = self._filed = 0
        if self._working is not None and not self._working.done():
            self._working.add_done_callback(self._close)
        else:
            self._close(self._working)

    def _close(self, working: asyncio.Future[Any] | None) -> None:
        if working is not None and not working.cancelled():
            working.exception()  # whoever it was for is gone
        if self._file is not None:
            self._file.close()
