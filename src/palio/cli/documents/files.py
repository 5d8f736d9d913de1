"""`palio files`: folders as a way in and out."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from palio.cli.input.inputs import Dialect
from palio.cli.output.formats import format_of
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import flag, option
from palio.cli.program.saved_contexts import chosen
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, plural, printable, say, write_json
from palio.client import Event
from palio.folders import (
    FileOutcome,
    FolderSubscriptions,
    FolderWatch,
    InFolder,
    OutFolder,
    PeerAway,
    SameFolder,
    SimplePeer,
)
from palio.language import PALIO, read_filter
from palio.model.moments import parse_span

EPILOG = help_epilog(
    "palio files --in orders",
    "palio files --in orders --once --delete",
    """palio files --out received --filter 'xml.family = "card"'""",
    "palio files --in orders --out received --name desk-7 --interval 5s",
    "palio files --in orders --out received --soap http://127.0.0.1:7080",
)
_SHORTEST = 0.05  # seconds between two looks
QUIET = 1.0  # seconds in which what waits already comes
_DOCUMENTS = "exists(xml.family)"


class FolderWishes(msgspec.Struct, frozen=True):
    """What is watched, what is written, and for how long."""

    inside: Path | None
    outside: Path | None
    soap: str | None
    filter: str | None
    name: str
    interval: float
    once: bool
    delete: bool
    metadata: bool
    json: bool
    quiet: bool


class FolderTally:
    """What became of the files so far, told as it happens."""

    def __init__(self, *, json: bool, quiet: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._json = json
        self._quiet = quiet

    def came(self, outcome: FileOutcome) -> None:
        """Handles what became of a file in the folder for what comes in."""
        what = "rejected" if outcome.rejected else "carried out" if outcome.operation else "published"
        self.counts[what] += 1
        if self._json:
            write_json(msgspec.to_builtins(outcome))
        if outcome.rejected is not None and not self._quiet:
            sentence = printable(f"{outcome.file}: {outcome.rejected}")
            error_console().print(sentence, style="red", soft_wrap=True, markup=False)

    def went(self, file: str, event: Event) -> None:
        """Handles that an event was written."""
        self.counts["written"] += 1
        if self._json:
            write_json({"file": file, "origin": event.origin, "sequence": event.sequence, "written": True})

    def away(self, problem: PeerAway) -> None:
        """Handles that an operation has to wait."""
        if not self._quiet:
            say(str(problem), "yellow")

    def summary(self) -> str:
        order = ("published", "carried out", "written", "rejected")
        told = [f"{plural(self.counts[what], 'file')} {what}" for what in order if self.counts[what]]
        return ", ".join(told) or "There was nothing to do"


def files(
    *,
    inside: Annotated[
        Path | None, option("FOLDER", "Publish the XML documents that are put into this folder.", "--in")
    ] = None,
    outside: Annotated[
        Path | None, option("FOLDER", "Write what a durable subscription gets into this folder.", "--out")
    ] = None,
    soap: Annotated[
        str | None,
        option("URL", "The broker's HTTP port: carry out operations that are put into --in.", "--soap"),
    ] = None,
    filter_text: Annotated[
        str | None,
        option("FILTER", "With --out: what is wanted; without it (and --soap), every document.", "--filter"),
    ] = None,
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

    With --soap, files whose root element is one of the simple protocol
    (Subscribe, Notify, RegisterPublisher and so on) are carried out, and the
    answer is left in done/. A subscription whose consumer is file:NAME is
    written into the folder NAME in --out.

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
    if filter_text is not None:
        filter = read_filter(filter_text, dialect).require_satisfiable()
        filter_text = str(filter) if filter.source is None else filter.source
    elif soap is None:
        filter_text = _DOCUMENTS
    wishes = FolderWishes(
        inside, outside, soap, filter_text, name, seconds, once, delete, metadata, json, quiet
    )
    tally = run(exchange(server, wishes))
    if not quiet:
        say(f"{tally.summary()}.")
    if once and tally.counts["rejected"]:
        raise typer.Exit(ExitCode.NO)


async def exchange(server: str | None, wishes: FolderWishes) -> FolderTally:
    """Watch and write, until all is done or this is cancelled."""
    tally = FolderTally(json=wishes.json, quiet=wishes.quiet)
    peer = None if wishes.soap is None else SimplePeer(wishes.soap, chosen(server).token)
    with ExitStack() as held:
        inside = None
        if wishes.inside is not None:
            inside = InFolder(wishes.inside, delete=wishes.delete)
            held.callback(inside.close)

        def opened(folder: Path) -> OutFolder:
            outside = OutFolder(folder, format_of("full"), metadata=wishes.metadata)
            held.callback(outside.close)
            return outside

        outside = None if wishes.outside is None else opened(wishes.outside)
        publisher = "" if inside is None else inside.publisher
        async with connected(server, tell=not wishes.quiet, publisher=publisher) as client:
            subscriptions = None
            if outside is not None and wishes.outside is not None:
                subscriptions = FolderSubscriptions(client, wishes.outside, outside, opened, tally.went)
            watch = None
            if inside is not None:
                watch = FolderWatch(
                    client,
                    inside,
                    tally.came,
                    interval=wishes.interval,
                    peer=peer,
                    away=tally.away,
                    subscriptions=subscriptions,
                )
            await _work(watch, subscriptions, wishes)
            await client.drain(5.0)
    return tally


async def _work(
    watch: FolderWatch | None, subscriptions: FolderSubscriptions | None, wishes: FolderWishes
) -> None:
    """Both at a time; or once, one after the other, so that what was asked for is written, too."""
    if wishes.once:
        if watch is not None:
            await watch.run(once=True)
        if subscriptions is not None:
            await subscriptions.run(wishes.filter, wishes.name, quiet=max(QUIET, wishes.interval))
        return
    works = [] if watch is None else [watch.run()]
    works += [] if subscriptions is None else [subscriptions.run(wishes.filter, wishes.name)]
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
