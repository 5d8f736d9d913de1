"""`palio spark reach-back`: history from a lake, and a durable subscription that goes on where it ends."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palio.cli.events.sub import Wanted, follow
from palio.cli.output.formats import format_of
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.terminal import error_console, help_epilog, plural
from palio.cli.spark.archive import DEFAULT_LAKE, LakeFolder
from palio.cli.spark.options import Master, Remote, Settings, opened, write_table
from palio.client import Event
from palio.language import read_filter
from palio.model.body import Body
from palio.model.filter import Filter
from palio.model.moments import parse_since
from palio.spark.lake.table import read_lake
from palio.spark.lookback.reaching import follow_from, give_up
from palio.store.lake.manifests import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EPILOG = help_epilog(
    "palio spark reach-back 'price > 100' --durable desk-7 --since 30d",
    "palio spark reach-back 'price > 100' --durable desk-8 --output past",
    "palio spark reach-back 'price > 100' --durable desk-9 --follow",
    notes="Brokers with the setting `lake` need none of this: palio sub --since 30d reaches back by itself.",
)


def reach_back(
    filter_text: Annotated[
        str, typer.Argument(metavar="[FILTER]", help="What is wanted; without it, everything.")
    ] = "true",
    *,
    durable: Annotated[str, typer.Option(metavar="NAME", help="The subscription that goes on; a new name.")],
    server: Server = None,
    lake: LakeFolder = DEFAULT_LAKE,
    since: Annotated[
        str, typer.Option(metavar="WHEN", help="1h, 30d, a date, a time, @seconds, or all.")
    ] = "all",
    format_text: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="json, full, text, or a template: '{price}'."),
    ] = "json",
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FOLDER", help="Write the past as Parquet.")
    ] = None,
    going_on: Annotated[
        bool, typer.Option("--follow", help="Go on with what is published, until Ctrl-C.")
    ] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="End a subscription of that name first, with all that waits for it.")
    ] = False,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Show what a lake has of a filter, and keep all that follows in a new durable subscription.

    Every event is in one of the two, and in one only: the subscription begins
    exactly where the lake ends. Take from it with palio sub --durable, or go on
    at once with --follow. The past comes one journal after the other, each in
    its order; formats are those of palio sub.

    If this is interrupted before all of the past was shown, the subscription is
    ended, and the same command begins anew. If it was killed, the name is taken,
    and --anew begins anew.
    """
    filter = read_filter(filter_text)
    filter.require_satisfiable()
    moment = parse_since(since, now=time.time())
    begin = 0.0 if isinstance(moment, str) else moment
    format = format_of(format_text)
    place = Lake(lake)
    state = place.state()
    with opened(master, remote, conf, "reach-back") as spark:
        run(_begin(server, filter, durable, state.positions, begin, anew=anew))
        try:
            past = read_lake(spark, place, filter=filter, since=begin, state=state)
            if output is None:
                shown = plural(_show(past, format), "event")
            else:
                write_table(past, output)
                shown = f"What was, in {output}"
        except BaseException as problem:
            run(_end(server, durable))
            if isinstance(problem, KeyboardInterrupt):
                _tell(f"Interrupted: the subscription {durable} was ended; the same command begins anew.")
            raise
    _tell(f"{shown}; the subscription {durable} goes on from there.")
    if going_on:
        run(follow(server, Wanted(filter_text, None, None, durable, None, False), format, quiet=False))


async def _begin(server: str | None, filter: Filter, durable: str, *where: Any, anew: bool) -> None:
    async with connected(server) as client:
        if anew:
            await give_up(client, durable)
        await follow_from(client, filter, durable, *where)


async def _end(server: str | None, durable: str) -> None:
    async with connected(server) as client, asyncio.timeout(10.0):
        await give_up(client, durable)


def _show(past: DataFrame, format: Any) -> int:
    """One event a line; a part of them at a time comes here."""
    columns = ("journal", "sequence", "unix_micros(time) AS time", "id", "payload")
    shown = 0
    for row in past.orderBy("journal", "sequence").selectExpr(*columns).toLocalIterator():
        journal, body = row["journal"], Body(bytes(row["payload"]), row["id"])
        event = Event(journal, row["sequence"], row["time"] / 1e6, 0, journal, body)
        sys.stdout.write(format(event) + "\n")
        shown += 1
    sys.stdout.flush()
    return shown


def _tell(text: str) -> None:
    error_console().print(text, style="dim", soft_wrap=True)
