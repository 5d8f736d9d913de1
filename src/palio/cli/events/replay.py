"""`palio replay`: history, one event a line."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from palio.cli.input.inputs import Dialect
from palio.cli.input.selections import FilterReader
from palio.cli.output.formats import Format, FormatText, format_of
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, help_epilog, plural, say
from palio.language import PALIO
from palio.model.filter import Filter
from palio.model.moments import parse_moment, parse_since

EPILOG = help_epilog(
    "palio replay 'price > 100' --since 1h",
    "palio replay --since all --format text",
    "palio replay 'shop/#?price>10' --dialect mqtt --since 1h",
    "palio replay 'exists(price)' --since 7d --until 1m",
)
# Journals may be long, and who looks through one does not hurry.
LOOK_BACK_WITHIN = 600.0
Since = Annotated[str, option("WHEN", "1h, 7d, a date, a time, @seconds, or all.")]
Until = Annotated[str | None, option("WHEN", "Up to this time; else up to now.")]


def replay(
    filter_text: Annotated[str, argument("[FILTER]", "What is wanted; without it, everything.")] = "true",
    *,
    server: Server = None,
    since: Since,
    until: Until = None,
    dialect: Dialect = PALIO,
    format_text: FormatText = "json",
    quiet: Annotated[bool, flag("--quiet", "No summary.", "-q")] = False,
) -> None:
    """Show what was published, from the journals of all brokers in reach.

    One journal after the other is shown, each in its order. A broker that did
    not answer is named on standard error. Formats are those of palio sub. Exits
    with 1 if there is nothing.
    """
    filter = FilterReader(None, server).read(filter_text, dialect).require_satisfiable()
    now = time.time()
    begin, end = parse_since(since, now=now), None if until is None else parse_moment(until, now=now)
    shown, missing = run(_replay(server, filter, begin, end, format_of(format_text)))
    if not quiet:
        say(f"{plural(shown, 'event')}.")
    tell_missing(missing)
    if not shown:
        raise typer.Exit(ExitCode.NO)


async def _replay(
    server: str | None, filter: Filter, since: float | str, until: float | None, format: Format
) -> tuple[int, tuple[str, ...]]:
    shown = 0
    async with connected(server) as client:
        begin = None if since == "all" else float(since)
        events = client.replay(filter, since=begin, until=until, timeout=LOOK_BACK_WITHIN)
        async for event in events:
            sys.stdout.write(format(event) + "\n")
            shown += 1
    sys.stdout.flush()  # before anything is said of them
    return shown, events.missing


def tell_missing(brokers: tuple[str, ...]) -> None:
    """Say whose journals are not in what is shown."""
    if brokers:
        say(f"Not all is known: {', '.join(brokers)} did not answer.", "yellow")
