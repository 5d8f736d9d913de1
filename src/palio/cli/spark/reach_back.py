"""`palio spark reach-back`: history from a lake, and a durable subscription that goes on where it ends."""

from __future__ import annotations

import sys
import time
from typing import Annotated

from palio.cli.events.sub import SubscribeWishes, follow
from palio.cli.input.inputs import Dialect
from palio.cli.output.formats import FormatText, format_of
from palio.cli.program.connecting import Server, run, with_client
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import help_epilog, plural, say
from palio.cli.spark.archive import DEFAULT_LAKE, LakeFolder
from palio.cli.spark.options import Master, Remote, Settings, opened
from palio.client import Event
from palio.language import PALIO, read_filter
from palio.model.moments import parse_since
from palio.spark import jobs
from palio.spark.lookback.reach_back import Work
from palio.store.lake.manifests import Lake

EPILOG = help_epilog(
    "palio spark reach-back 'price > 100' --durable desk-7 --since 30d",
    "palio spark reach-back 'price > 100' --durable desk-8 --output past",
    "palio spark reach-back 'price > 100' --durable desk-9 --follow",
    notes="Brokers with the setting `lake` need none of this: palio sub --since 30d reaches back by itself.",
)


def reach_back(
    filter_text: Annotated[str, argument("[FILTER]", "What is wanted; without it, everything.")] = "true",
    *,
    durable: Annotated[str, option("NAME", "The subscription that goes on; a new name.")],
    server: Server = None,
    dialect: Dialect = PALIO,
    lake: LakeFolder = DEFAULT_LAKE,
    since: Annotated[str, option("WHEN", "1h, 30d, a date, a time, @seconds, or all.")] = "all",
    format_text: FormatText = "json",
    output: Annotated[str | None, option("FOLDER", "Write the past as Parquet.", "--output", "-o")] = None,
    going_on: Annotated[bool, flag("--follow", "Go on with what is published, until Ctrl-C.")] = False,
    anew: Annotated[
        bool, flag("--anew", "End a subscription of that name first, with all that waits for it.")
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
    filter = read_filter(filter_text, dialect).require_satisfiable()
    parse_since(since, now=time.time())
    format = format_of(format_text)
    Lake(lake).state()  # what is wrong with it is better said before Spark starts
    asked = 0

    def ask(work: Work) -> None:
        nonlocal asked
        asked += 1
        with_client(server, work)

    def show(event: Event) -> None:
        sys.stdout.write(format(event) + "\n")

    with opened(master, remote, conf, "reach-back") as spark:
        try:
            done = jobs.reach_back(
                spark,
                lake,
                filter,
                durable=durable,
                broker=ask,
                since=since,
                output=output,
                each=show if output is None else None,
                anew=anew,
            )
        except KeyboardInterrupt:
            if asked > 1:
                say(f"Interrupted: the subscription {durable} was ended; the same command begins anew.")
            raise
    sys.stdout.flush()
    shown = f"What was, in {output}" if done.events is None else plural(done.events, "event")
    say(f"{shown}; the subscription {durable} goes on from there.")
    if going_on:
        wanted = filter.source or str(filter)
        run(follow(server, SubscribeWishes(wanted, None, None, durable, None, False), format, quiet=False))
