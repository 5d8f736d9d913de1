"""`palio pub`: publish events, from arguments or from standard input."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, TypeAlias

import msgspec
import typer

from palio.cli.events.pub_documents import DocumentWishes, publish_files
from palio.cli.events.pub_sources import WINDOW, Lines, filled, paced, repeated
from palio.cli.input.events import Complaints
from palio.cli.input.lines import STANDARD_INPUT, LineFile
from palio.cli.input.templates import NotAnEvent, parse_event
from palio.cli.output.progress import Advance, progress_bar
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import (
    ExitCode,
    error_console,
    help_epilog,
    is_dressed,
    plural,
    printable,
    say,
    write_json,
)
from palio.client import Client, Confirmation
from palio.model.moments import parse_span
from palio.model.naming import event_name
from palio.model.notification import Notification

EPILOG = help_epilog(
    "palio pub symbol=ACME price=101.5",
    """palio pub '{"symbol": "ACME", "price": 101.5, "tags": ["a", "b"]}'""",
    "palio pub sensor=s-{random:1:9} value={random:0.0:40.0} --count 100",
    "palio pub < examples/events.jsonl",
    "palio pub --xml examples/xml/c1.xml examples/xml/c2.xml",
)
_MOST_NAMED = 20  # attributes that are named as not seen by filters
Batches: TypeAlias = AsyncIterator[list[Notification]]
Sent: TypeAlias = AsyncIterator[tuple[list[Confirmation], int]]  # what is confirmed of it, and how many


class PublishWishes(msgspec.Struct, frozen=True):
    """What shall become of events, beside their content."""

    id: str | None
    lifetime: float | None
    priority: int | None
    publisher: str | None
    confirm: bool
    answers: bool


def pub(
    event: Annotated[
        list[str] | None,
        argument(
            "[EVENT]",
            "A JSON object, or pairs: symbol=ACME price=101.5. - or nothing: JSON lines on standard input.",
        ),
    ] = None,
    *,
    server: Server = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Publish it so many times.")] = 1,
    rate: Annotated[
        float | None, option("NUMBER", "Events a second, at most.", "--rate", "-r", min=0.001)
    ] = None,
    id: Annotated[str | None, option("TEXT", "The event's id, such as order-{n}.")] = None,
    publisher: Annotated[
        str | None, option("NAME", "Who publishes: an id that this one has used counts once.", "--as")
    ] = None,
    lifetime: Annotated[str | None, option("SPAN", "When it need not be delivered any more: 30s, 1h.")] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=9, help="9 is delivered first.")] = None,
    xml: Annotated[
        bool, flag("--xml", "EVENT are files of XML documents; - or nothing: one on standard input.")
    ] = False,
    template: Annotated[
        bool | None, flag("--template/--raw", "Fill in {n} and so on. By default in arguments only.")
    ] = None,
    no_wait: Annotated[bool, flag("--no-wait", "Do not wait for confirmations.")] = False,
    as_json: Annotated[bool, flag("--json", "For each event a line: where it is in the journal.")] = False,
    quiet: Annotated[bool, flag("--quiet", "No progress and no summary.", "-q")] = False,
) -> None:
    """Publish events, and wait until the broker has confirmed them.

    The values of pairs are guessed as in JSON: 101.5 and true are what they
    look like, anything else is a text. Strings may contain {n} (1, 2, 3 …),
    {uuid}, {now} and {random:1:100}; a value that is nothing else becomes a
    number, or a time. A CloudEvent is published as one. What of an event no
    filter can select, such as a list of objects, is named on standard error.

    A line of standard input that is no event is reported; the rest goes on,
    and the exit code is 3. So it is with a document (--xml) that the broker
    refuses; what it reads of the others is what the paths of their family find.
    """
    seconds = None if lifetime is None else parse_span(lifetime)
    if xml:
        if count != 1 or rate is not None or template is not None or no_wait:
            raise typer.BadParameter("--count, --rate, --template, --raw and --no-wait are not for documents.")
        _publish_files(
            server,
            event or [STANDARD_INPUT],
            DocumentWishes(id, seconds, priority, publisher, as_json),
            quiet=quiet,
        )
        return
    wanted = PublishWishes(id, seconds, priority, publisher, not no_wait, as_json)
    if event and event != [STANDARD_INPUT]:
        source = repeated(parse_event(event), count, wanted.id, template=template is not False)
        tally = run(_publish(server, paced(source, rate), wanted, count, quiet=quiet))
        bad = 0
    else:
        if sys.stdin is not None and sys.stdin.isatty() and not event:
            raise NotAnEvent(
                "There is no event: name one, such as symbol=ACME price=101.5, or pipe JSON lines in."
            )
        if count != 1:
            raise typer.BadParameter("--count is for an event in the arguments, not for standard input.")
        complaints = Complaints()
        with LineFile(STANDARD_INPUT) as file:
            lines = Lines(filled(file, complaints, wanted.id, template=template is True))
            tally = run(_publish(server, paced(lines, rate), wanted, None, quiet=quiet))
        bad = complaints.count
    if not quiet:
        say(tally.summary(bad))
        if tally.unindexed:
            names = ", ".join(map(printable, sorted(tally.unindexed)))
            sentence = f"Filters do not see {names}: it is delivered, but cannot be filtered."
            say(sentence, "yellow")
    if bad:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _publish_files(server: str | None, files: list[str], wanted: DocumentWishes, *, quiet: bool) -> None:
    if wanted.id is not None and len(files) > 1:
        raise typer.BadParameter("An id is for one document; name one file.")
    tally = run(publish_files(server, files, wanted, quiet=quiet))
    if not quiet:
        say(tally.summary())
    if tally.refused:
        raise typer.Exit(ExitCode.BAD_INPUT)


class PublishTally(msgspec.Struct):
    broker: str = ""
    published: int = 0
    last: Confirmation | None = None
    seconds: float = 0.0
    confirm: bool = True
    unindexed: set[str] = msgspec.field(default_factory=set)  # names of content that filters do not see

    def summary(self, bad_lines: int) -> str:
        bad = f", {plural(bad_lines, 'bad line')}" if bad_lines else ""
        how = "confirmed by" if self.confirm else "sent to"
        text = f"{plural(self.published, 'event')} {how} {self.broker}"
        if self.published == 1 and self.last is not None:
            return f"{text} as {event_name(self.last.origin, self.last.sequence)}{bad}"
        rate = f", {self.published / self.seconds:,.0f} events/s" if self.seconds > 0.0 else ""
        return f"{text}{rate}{bad}"


async def _publish(
    server: str | None, batches: Batches, wanted: PublishWishes, total: int | None, *, quiet: bool
) -> PublishTally:
    tally = PublishTally(confirm=wanted.confirm)
    async with connected(server, tell=not quiet, name=wanted.publisher) as client:
        tally.broker = client.broker
        began = time.perf_counter()
        with _progress(total, shown=not quiet and total != 1) as advance:
            send = _confirmed if wanted.confirm else _unconfirmed
            async for confirmations, count in send(client, _noted(batches, tally), wanted):
                tally.published += count
                advance(tally.published)
                for confirmation in confirmations:
                    tally.last = confirmation
                    if wanted.answers:
                        write_json({"origin": confirmation.origin, "sequence": confirmation.sequence})
        tally.seconds = time.perf_counter() - began
    return tally


def _progress(total: int | None, *, shown: bool) -> AbstractContextManager[Advance]:
    if shown and is_dressed():
        return progress_bar(error_console(), "publishing", total)
    return nullcontext(lambda done: None)


async def _noted(batches: Batches, tally: PublishTally) -> Batches:
    """Events on their way, with what of them cannot be filtered noted."""
    async for batch in batches:
        for event in batch:
            if event.unindexed and len(tally.unindexed) < _MOST_NAMED:
                tally.unindexed.update(event.unindexed[: _MOST_NAMED - len(tally.unindexed)])
        yield batch


async def _confirmed(client: Client, batches: Batches, wanted: PublishWishes) -> Sent:
    """Publish batch after batch, a few ahead of their confirmations; tasks begin in their order."""
    under_way: deque[asyncio.Task[list[Confirmation]]] = deque()
    try:
        async for batch in batches:
            sent = client.publish(batch, lifetime=wanted.lifetime, priority=wanted.priority, timeout=60.0)
            under_way.append(asyncio.create_task(sent))
            while under_way and (len(under_way) >= WINDOW or under_way[0].done()):
                done = await under_way.popleft()
                yield done, len(done)
        while under_way:
            done = await under_way.popleft()
            yield done, len(done)
    finally:
        for task in under_way:
            task.cancel()


async def _unconfirmed(client: Client, batches: Batches, wanted: PublishWishes) -> Sent:
    async for batch in batches:
        for event in batch:
            client.publish_nowait(event, lifetime=wanted.lifetime, priority=wanted.priority)
        await client.flush()
        yield [], len(batch)
    await client.flush(arrived=True)
