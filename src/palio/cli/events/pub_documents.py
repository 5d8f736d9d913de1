"""`palio pub --xml`: publish files, each an XML document, one after the other as they are named."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path

import msgspec

from palio.cli.events.pub_sources import WINDOW
from palio.cli.input.lines import STANDARD_INPUT, UnreadableInput
from palio.cli.program.connecting import connected
from palio.cli.program.terminal import complaint, error_console, plural, write_json
from palio.client import Client, Confirmation
from palio.client.errors import ClientClosed, RequestTimeout
from palio.model.errors import PalioError
from palio.model.naming import event_name
from palio.model.values import MAX_PAYLOAD_BYTES


class DocumentWishes(msgspec.Struct, frozen=True):
    """What shall become of documents, beside their content."""

    id: str | None
    lifetime: float | None
    priority: int | None
    publisher: str | None
    answers: bool


class DocumentTally(msgspec.Struct):
    """What became of some files."""

    broker: str = ""
    published: int = 0
    refused: int = 0
    last: Confirmation | None = None

    def summary(self) -> str:
        refused = f", {self.refused} refused" if self.refused else ""
        text = f"{plural(self.published, 'document')} confirmed by {self.broker}"
        if self.published == 1 and self.last is not None and self.last.sequence:
            text += f" as {event_name(self.last.origin, self.last.sequence)}"
        return text + refused


async def publish_files(
    server: str | None, files: list[str], wanted: DocumentWishes, *, quiet: bool
) -> DocumentTally:
    """Publish documents, a few ahead of their confirmations; one that is refused is reported, and counted."""
    tally = DocumentTally()
    under_way: deque[tuple[str, asyncio.Task[Confirmation]]] = deque()

    async def settle() -> None:
        file, task = under_way.popleft()
        try:
            tally.last = await task
        except (ClientClosed, RequestTimeout):
            raise
        except PalioError as problem:
            tally.refused += 1
            error_console().print(complaint(problem, file), soft_wrap=True)
            return
        tally.published += 1
        if wanted.answers:
            write_json({"origin": tally.last.origin, "sequence": tally.last.sequence})

    async with connected(server, tell=not quiet, name=wanted.publisher) as client:
        tally.broker = client.broker
        try:
            for file in files:
                under_way.append((file, asyncio.create_task(_published(client, file, wanted))))
                while len(under_way) >= WINDOW:
                    await settle()
            while under_way:
                await settle()
        finally:
            for _, task in under_way:
                task.cancel()
    return tally


async def _published(client: Client, file: str, wanted: DocumentWishes) -> Confirmation:
    return await client.publish_document(
        _content(file), id=wanted.id, lifetime=wanted.lifetime, priority=wanted.priority, timeout=60.0
    )


def _content(file: str) -> bytes:
    """The bytes of a file; of one that is too large, enough to be refused for it."""
    try:
        if file == STANDARD_INPUT:
            return sys.stdin.buffer.read(MAX_PAYLOAD_BYTES + 1)
        with Path(file).open("rb") as opened:
            return opened.read(MAX_PAYLOAD_BYTES + 1)
    except OSError as problem:
        raise UnreadableInput(file, problem.strerror or str(problem)) from None
