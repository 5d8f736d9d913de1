"""Filling a folder: what durable subscriptions get is written as files.

One subscription is of whoever runs this, and writes into the folder itself. Others were made by operations that
came as files; which ones is kept in the folder, so they go on after a restart. Each writes into the folder, or
into one within it.

1. An event is acknowledged once its file is complete.
2. A subscription that is not there any more is not written for any more."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from palio.client import Client
from palio.client.event import Event
from palio.folders.errors import FolderUnusable, WrongFolderName
from palio.folders.rooms import OWN, room
from palio.folders.writing import OutFolder
from palio.model.errors import NoSuchSubscription

HERE: Final = "."
_PLACE = re.compile(r"[A-Za-z0-9_-]{1,100}")
_HANDLE = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_MOST = 1_000  # subscriptions of one folder, each of which is a task and waits at the broker

# The name of a file, and the event that is in it.
Written = Callable[[str, Event], None]


class FolderSubscriptions:
    """Writes what subscriptions get into a folder, and those within it."""

    def __init__(
        self,
        client: Client,
        folder: Path,
        outside: OutFolder,
        open_folder: Callable[[Path], OutFolder],
        tell: Written,
    ) -> None:
        """`outside` is the folder itself, `open_folder` opens one within it."""
        self._client = client
        self._folder = folder
        self._folders = {HERE: outside}
        self._open = open_folder
        self._tell = tell
        self._kept = room(folder, OWN, "subscriptions")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._quiet: float | None = None
        self._running = False

    def require(self, place: str) -> None:
        """Raises `WrongFolderName`, and `FolderUnusable` if there is no room for another subscription."""
        if place != HERE and _PLACE.fullmatch(place) is None:
            raise WrongFolderName(place[:200])
        if len(self._tasks) >= _MOST:
            raise FolderUnusable(str(self._folder), f"{_MOST:,} subscriptions write into it, as many as may")

    def add(self, handle: str, place: str) -> None:
        """From now on, and after each restart, write what a subscription gets."""
        if _HANDLE.fullmatch(handle) is None or handle in self._tasks:
            return
        half = self._kept / f".{handle}"
        half.write_text(place, encoding="ascii")
        half.rename(self._kept / handle)
        if self._running:
            self._begin(handle, None, place)

    def remove(self, handle: str) -> None:
        """A subscription has ended."""
        if _HANDLE.fullmatch(handle) is None:
            return
        (self._kept / handle).unlink(missing_ok=True)
        if (task := self._tasks.pop(handle, None)) is not None:
            task.cancel()

    async def run(self, filter: str | None, name: str, *, quiet: float | None = None) -> None:
        """Write until cancelled; or until nothing came for `quiet` seconds. With a `filter`, for a durable
        subscription of that `name`, too. Raises `FolderUnusable`, and what ends a subscription.
        """
        self._quiet, self._running = quiet, True
        if filter is not None:
            self._begin(name, filter, HERE)
        for kept in sorted(self._kept.iterdir()):
            if _HANDLE.fullmatch(kept.name) is not None and not kept.name.startswith("."):
                self._begin(kept.name, None, kept.read_text(encoding="ascii"))
        try:
            while self._tasks or quiet is None:
                self._changed.clear()
                waiting = asyncio.create_task(self._changed.wait())
                done, _ = await asyncio.wait(
                    [waiting, *self._tasks.values()], return_when=asyncio.FIRST_COMPLETED
                )
                waiting.cancel()
                self._tasks = {handle: task for handle, task in self._tasks.items() if task not in done}
                for task in done - {waiting}:
                    if not task.cancelled():
                        task.result()
        finally:
            self._running = False
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _begin(self, handle: str, filter: str | None, place: str) -> None:
        self._tasks[handle] = asyncio.create_task(self._write(handle, filter, place))
        self._changed.set()

    async def _write(self, handle: str, filter: str | None, place: str) -> None:
        if place not in self._folders:
            self._folders[place] = self._open(room(self._folder, place))
        folder = self._folders[place]
        try:
            # What an operation has made may have been asked to begin with the current documents.
            subscription: Any = await self._client.subscribe(filter, durable=handle, retroactive=filter is None)
        except NoSuchSubscription:
            (self._kept / handle).unlink(missing_ok=True)
            return
        events = aiter(subscription)
        while True:
            try:
                async with asyncio.timeout(self._quiet):
                    event = await anext(events)
            except (TimeoutError, StopAsyncIteration):
                return
            written = await asyncio.to_thread(folder.write, event)
            await event.ack()
            self._tell(written, event)
