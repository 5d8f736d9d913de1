"""Watching a folder, and filling another one: files become events, events become files.

1. Files are published in the order in which they were last changed, some ahead of their confirmations. A file
   is moved to those that are done once it is confirmed, so what a crash interrupts is published again, under
   the same id, and is there once.
2. What the broker refuses for what it is goes aside with the reason; what it cannot take now is tried again.
3. An event is acknowledged once its file is complete."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from palio.client import Client
from palio.client.errors import BrokerTooOld, ClientClosed
from palio.client.publishing import Confirmation
from palio.folders.errors import FileChanging, UnusableFile
from palio.folders.taking import InFolder, TakenFile
from palio.folders.writing import OutFolder
from palio.model.errors import PalioError

# Files that are read and not confirmed: enough that the broker is never without one, and some megabytes.
_AHEAD = 16
# What the broker says when it is not the file that is wrong.
_LATER = frozenset(
    ("RequestTimeout", "ConnectionLost", "TooMuchUnsent", "NotNow", "NotStored", "TooFast", "Throttled")
)


class FileOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a file: published or `rejected`, with the reason; or `written`."""

    file: str
    origin: str | None = None
    sequence: int | None = None
    rejected: str | None = None
    written: bool = False


Tell = Callable[[FileOutcome], None]


class FolderWatch:
    """Publishes what is put into a folder, every `interval` seconds."""

    def __init__(self, client: Client, folder: InFolder, tell: Tell, *, interval: float) -> None:
        self._client = client
        self._folder = folder
        self._tell = tell
        self._interval = interval

    async def run(self, *, once: bool = False) -> None:
        """Go on until cancelled; or `once`, until nothing is there that could be taken.

        Raises `FolderUnusable`, and what ends a client.
        """
        while True:
            taken = await asyncio.to_thread(self._folder.take)
            await self._publish(taken)
            if not taken or not once:
                if once and not self._folder.waiting:
                    return
                await asyncio.sleep(self._interval)

    async def _publish(self, files: list[TakenFile]) -> None:
        under_way: deque[tuple[TakenFile, asyncio.Task[Confirmation]]] = deque()
        try:
            for file in files:
                content = await self._read(file)
                if content is None:
                    continue
                work = self._client.publish_document(content, id=file.token)
                under_way.append((file, asyncio.create_task(work)))
                if len(under_way) == _AHEAD:
                    await self._settle(*under_way.popleft())
            while under_way:
                await self._settle(*under_way.popleft())
        finally:
            for _, task in under_way:
                task.cancel()

    async def _read(self, file: TakenFile) -> bytes | None:
        try:
            return await asyncio.to_thread(self._folder.read, file)
        except FileChanging:
            self._folder.again(file)
        except UnusableFile as problem:
            await self._reject(file, problem)
        return None

    async def _settle(self, file: TakenFile, task: asyncio.Task[Confirmation]) -> None:
        try:
            confirmed = await task
        except (ClientClosed, BrokerTooOld):
            raise
        except PalioError as problem:
            if getattr(problem, "error", type(problem).__name__) in _LATER:
                self._folder.again(file)
            else:
                await self._reject(file, problem)
            return
        await asyncio.to_thread(self._folder.finish, file)
        self._tell(FileOutcome(file.shown, confirmed.origin, confirmed.sequence))

    async def _reject(self, file: TakenFile, problem: PalioError) -> None:
        await asyncio.to_thread(self._folder.reject, file, str(problem))
        self._tell(FileOutcome(file.shown, rejected=str(problem)))


async def write_events(
    client: Client, folder: OutFolder, tell: Tell, *, filter: str, name: str, quiet: float | None = None
) -> None:
    """Write what a durable subscription gets, until cancelled, or until nothing came for `quiet` seconds.

    Raises `FolderUnusable`, and what ends a subscription.
    """
    subscription = await client.subscribe(filter, durable=name)
    events = aiter(subscription)
    while True:
        try:
            async with asyncio.timeout(quiet):
                event = await anext(events)
        except (TimeoutError, StopAsyncIteration):
            return
        written = await asyncio.to_thread(folder.write, event)
        await event.ack()
        tell(FileOutcome(written, event.origin, event.sequence, written=True))
