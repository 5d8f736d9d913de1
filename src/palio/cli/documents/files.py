"""`palio files`: folders as a way in and out."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from palio.cli.input.inputs import Dialect
from palio.cli.output.formats import format_of
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import flag, option
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, plural, printable, say, write_json
from palio.folders import FileOutcome, FolderWatch, InFolder, OutFolder, SameFolder
from palio.folders.watching import write_events
from palio.language import PALIO, read_filter
from palio.model.moments import parse_span

EPILOG = help_epilog(
    "palio files --in orders",
    "palio files --in orders --once --delete",
    """palio files --out received --filter 'xml.family = "card"'""",
    "palio files --in orders --out received --name desk-7 --interval 5s",
)
_SHORTEST = 0.05  # seconds between two looks


class FolderWishes(msgspec.Struct, frozen=True):
    """What is watched, what is written, and for how long."""

    inside: Path | None
    outside: Path | None
    filter: str
    name: str
    interval: float
    once: bool
    delete: bool
    metadata: bool
    json: bool
    quiet: bool


class FolderTally(msgspec.Struct):
    """What became of the files so far."""

    published: int = 0
    rejected: int = 0
    written: int = 0

    def count(self, outcome: FileOutcome) -> None:
        if outcome.written:
            self.written += 1
        elif outcome.rejected is None:
            self.published += 1
        else:
            self.rejected += 1

    def summary(self) -> str:
        counts = (self.published, "published"), (self.written, "written"), (self.rejected, "rejected")
        told = [f"{plural(count, 'file')} {what}" for count, what in counts if count]
        return ", ".join(told) or "There was nothing to do"


def files(
    *,
    inside: Annotated[
        Path | None, option("FOLDER", "Publish the XML documents that are put into this folder.", "--in")
    ] = None,
    outside: Annotated[
        Path | None, option("FOLDER", "Write what a durable subscription gets into this folder.", "--out")
    ] = None,
    filter_text: Annotated[
        str, option("FILTER", "With --out: what is wanted; without it, every document.", "--filter")
    ] = "exists(xml.family)",
    dialect: Dialect = PALIO,
    name: Annotated[str, option("NAME", "With --out: the name of the durable subscription.")] = "files",
    interval: Annotated[str, option("SPAN", "The pause between two looks into --in.")] = "1s",
    once: Annotated[bool, flag("--once", "End when nothing is left to take or to write.")] = False,
    delete: Annotated[bool, flag("--delete", "Delete what was published; done/ stays empty.")] = False,
    metadata: Annotated[
        bool, flag("--metadata", "Beside each document, write its attributes as JSON.")
    ] = False,
    json: Annotated[bool, flag("--json", "What became of each file, as JSON lines.")] = False,
    quiet: Annotated[bool, flag("--quiet", "Nothing on standard error but errors.", "-q")] = False,
    server: Server = None,
) -> None:
    """Publish files that are put into a folder, and write events as files.

    A file is taken when it stayed the same between two looks, published, and
    moved to done/ in the folder once the broker has confirmed it. What the
    broker refuses goes to rejected/, with the reason in a file beside it. Each
    file is published once, also if this is killed in between and started again.
    Folders in the folder, and names that begin with a dot, are left alone.

    --out gets one file for each event, under a name such as
    siena-000000000042.xml, complete or not at all: the document as it was
    published, or the event as JSON if it is none. What is written is
    acknowledged; the subscription stays when this ends.

    A folder has one watcher at a time. Ctrl-C ends the watching.

    Exits with 1 if --once is over and files were rejected.
    """
    if inside is None and outside is None:
        raise typer.BadParameter("Name a folder to watch (--in), one to write to (--out), or both.")
    seconds = parse_span(interval)
    if seconds < _SHORTEST:
        raise typer.BadParameter(f"--interval has to be {_SHORTEST} seconds or more; it is {interval}.")
    if inside is not None and outside is not None and inside.resolve() == outside.resolve():
        raise SameFolder(str(inside))
    filter = read_filter(filter_text, dialect).require_satisfiable()
    text = str(filter) if filter.source is None else filter.source
    wishes = FolderWishes(inside, outside, text, name, seconds, once, delete, metadata, json, quiet)
    tally = run(exchange(server, wishes))
    if not quiet:
        say(f"{tally.summary()}.")
    if once and tally.rejected:
        raise typer.Exit(ExitCode.NO)


async def exchange(server: str | None, wishes: FolderWishes) -> FolderTally:
    """Watch and write, until all is done or this is cancelled."""
    tally = FolderTally()

    def tell(outcome: FileOutcome) -> None:
        tally.count(outcome)
        if wishes.json:
            write_json(msgspec.to_builtins(outcome))
        if outcome.rejected is not None and not wishes.quiet:
            sentence = printable(f"{outcome.file}: {outcome.rejected}")
            error_console().print(sentence, style="red", soft_wrap=True, markup=False)

    with ExitStack() as held:
        inside = outside = None
        if wishes.inside is not None:
            inside = InFolder(wishes.inside, delete=wishes.delete)
            held.callback(inside.close)
        if wishes.outside is not None:
            outside = OutFolder(wishes.outside, format_of("full"), metadata=wishes.metadata)
            held.callback(outside.close)
        publisher = "" if inside is None else inside.publisher
        async with connected(server, tell=not wishes.quiet, publisher=publisher) as client:
            works = []
            if inside is not None:
                watch = FolderWatch(client, inside, tell, interval=wishes.interval)
                works.append(watch.run(once=wishes.once))
            if outside is not None:
                pause = max(1.0, wishes.interval) if wishes.once else None
                works.append(
                    write_events(client, outside, tell, filter=wishes.filter, name=wishes.name, quiet=pause)
                )
            await _all(works)
            await client.drain(5.0)
    return tally


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all of it; what fails ends the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
