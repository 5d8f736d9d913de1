"""Watching a folder: files become events, or operations that are carried out.

1. Files are published in the order in which they were last changed, some ahead of their confirmations. A file
   is moved to those that are done once it is confirmed, so what a crash interrupts is published again, under
   the same id, and is there once.
2. An operation waits for the files before it, and those after it wait for its answer.
3. What is refused for what it is goes aside with the reason; what cannot be done now is tried again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from palio.client import Client
from palio.client.errors import BrokerTooOld, ClientClosed
from palio.client.publishing import Confirmation
from palio.folders.errors import FileChanging, PeerAway, UnusableFile
from palio.folders.operations import SimplePeer, operation_of, place_of
from palio.folders.receiving import FolderSubscriptions
from palio.folders.taking import InFolder, TakenFile
from palio.model.errors import PalioError

# Files that are read and not confirmed: enough that the broker is never without one, and some megabytes.
_AHEAD = 16
# What the broker says when it is not the file that is wrong.
_LATER = frozenset(
    (
        *("RequestTimeout", "ConnectionLost", "TooMuchUnsent", "NotNow", "NotStored", "TooFast", "Throttled"),
        "StageQueueFull",
    )
)


class FileOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a file: published, as what; an `operation`, carried out; or `rejected`, and why."""

    file: str
    origin: str | None = None
    sequence: int | None = None
    operation: str | None = None
    rejected: str | None = None


Tell: TypeAlias = Callable[[FileOutcome], None]


class FolderWatch:
    """Publishes what is put into a folder, every `interval` seconds.

    `peer` carries out operations; `subscriptions` has what is then written for them.
    """

    def __init__(
        self,
        client: Client,
        folder: InFolder,
        tell: Tell,
        *,
        interval: float,
        peer: SimplePeer | None = None,
        away: Callable[[PeerAway], None] = lambda _: None,
        subscriptions: FolderSubscriptions | None = None,
    ) -> None:
        self._client = client
        self._folder = folder
        self._tell = tell
        self._interval = interval
        self._peer = peer
        self._away = away
        self._subscriptions = subscriptions
        self._once = False
        self._under_way: deque[tuple[TakenFile, asyncio.Task[Confirmation]]] = deque()

    async def run(self, *, once: bool = False) -> None:
        """Go on until cancelled; or `once`, until nothing is there that could be taken.

        Raises `FolderUnusable`, and what ends a client; `once` also why something cannot be done now. What was
        taken is taken up by the next watcher, then.
        """
        self._once = once
        while True:
            taken = await asyncio.to_thread(self._folder.take)
            await self._handle(taken)
            if not taken or not once:
                if once and not self._folder.waiting:
                    return
                await asyncio.sleep(self._interval)

    async def _handle(self, files: list[TakenFile]) -> None:
        try:
            for place, file in enumerate(files):
                content = await self._read(file)
                if content is None:
                    continue
                if (operation := operation_of(content)) is not None:
                    await self._settle(0)
                    if not await self._carry_out(file, content, operation):
                        for one in files[place:]:
                            self._folder.again(one)
                        return
                    continue
                work = self._client.publish_document(content, id=file.token)
                self._under_way.append((file, asyncio.create_task(work)))
                await self._settle(_AHEAD - 1)
            await self._settle(0)
        finally:
            for _, task in self._under_way:
                task.cancel()

    async def _read(self, file: TakenFile) -> bytes | None:
        try:
            return await asyncio.to_thread(self._folder.read, file)
        except FileChanging:
            self._folder.again(file)
        except UnusableFile as problem:
            await self._reject(file, problem)
        return None

    async def _settle(self, most: int) -> None:
        """Waits until no more than so many files are under way."""
        while len(self._under_way) > most:
            file, task = self._under_way.popleft()
            try:
                confirmed = await task
            except (ClientClosed, BrokerTooOld):
                raise
            except PalioError as problem:
                if getattr(problem, "error", type(problem).__name__) in _LATER:
                    if self._once:
                        raise
                    self._folder.again(file)
                else:
                    await self._reject(file, problem)
                continue
            await asyncio.to_thread(self._folder.finish, file)
            self._tell(FileOutcome(file.shown, confirmed.origin, confirmed.sequence))

    async def _carry_out(self, file: TakenFile, content: bytes, operation: str) -> bool:
        """Returns whether it is done with; otherwise it, and what is behind it, has to wait."""
        try:
            answer = await self._answer(file, content, operation)
        except PeerAway as problem:
            if self._once:
                raise
            self._away(problem)
            return False
        except PalioError as problem:
            await self._reject(file, problem)
        else:
            await asyncio.to_thread(self._folder.finish, file, answer)
            self._tell(FileOutcome(file.shown, operation=operation))
        return True

    async def _answer(self, file: TakenFile, content: bytes, operation: str) -> bytes:
        """What is said to an operation. Raises `PeerAway`, and what is wrong with it."""
        if self._peer is None:
            said = f"it is the operation {operation}, which needs --soap with the HTTP address of the broker."
            raise UnusableFile(file.shown, said)
        place = place_of(content) if operation == "Subscribe" else None
        if place is not None:
            if self._subscriptions is None:
                raise UnusableFile(file.shown, "its consumer is a folder, which needs --out.")
            self._subscriptions.require(place)
        result = await asyncio.to_thread(self._peer.carry_out, content, file.shown, file.token)
        if result.problem is not None:
            raise UnusableFile(file.shown, result.problem)
        if self._subscriptions is not None:
            if place is not None:
                self._subscriptions.add(result.handle, place)
            elif operation == "Unsubscribe":
                self._subscriptions.remove(result.handle)
        return result.content

    async def _reject(self, file: TakenFile, problem: PalioError) -> None:
        await asyncio.to_thread(self._folder.reject, file, str(problem))
        self._tell(FileOutcome(file.shown, rejected=str(problem)))
