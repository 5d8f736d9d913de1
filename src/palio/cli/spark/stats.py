"""`palio spark stats`: what the data say, as a report, as numbers, and as hints for a broker's index."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from palio.cli.input.inputs import Dialect
from palio.cli.output.places import DEFAULT_REPORT
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import help_epilog, plural, say, write_json
from palio.cli.spark.checkpoint import Checkpoint, Since, moment_of, watched
from palio.cli.spark.options import Filters, Master, Remote, Settings, opened
from palio.language import PALIO, read_filter
from palio.spark import jobs

EPILOG = help_epilog(
    "palio spark stats examples/events.jsonl -f examples/filters.jsonl",
    "palio spark stats palio-lake --filter 'price > 0' --since 30d --open",
    "palio spark stats palio-lake --json numbers.json --hints hints.json",
    notes="Then `palio up --hints hints.json`: the broker's index knows from the start what is rare.",
)


def stats(
    source: Annotated[str, argument("SOURCE", "A lake, palio://, sqlite:///…, Parquet or JSON lines.")],
    *,
    subscriptions: Annotated[str | None, Filters] = None,
    output: Annotated[
        Path, option("FILE", "Where the report goes, one HTML file.", "--output", "-o")
    ] = DEFAULT_REPORT,
    show: Annotated[bool, flag("--open", "Open the report in the browser.")] = False,
    json: Annotated[Path | None, option("FILE", "Write the numbers, too.")] = None,
    hints: Annotated[Path | None, option("FILE", "Write hints for a broker's index, too.")] = None,
    lake: Annotated[
        str | None, option("FOLDER", "SOURCE are journals, and their older part is this lake.")
    ] = None,
    filter_text: Annotated[str | None, option("FILTER", "Only events that it selects.", "--filter")] = None,
    dialect: Dialect = PALIO,
    since: Since = None,
    until: Annotated[str | None, option("WHEN", "Up to then; else up to now.")] = None,
    time: Annotated[str | None, option("NAME", "The attribute that says when an event was.")] = None,
    by: Annotated[str | None, option("NAME", "Tell events apart by this one; class, or the publisher.")] = None,
    title: Annotated[str, option("TEXT", "What the report is called.")] = ("What the data say"),
    checkpoint: Checkpoint = None,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Report on everything that was published: traffic, values, what subscriptions find and could save.

    The report is one HTML file that needs nothing else, with the numbers behind
    each plot. With --filters it says how often each subscription matches, which
    never do, how selective constraints are, and what covering and merging save.

    Events are looked at where they lie; only counts come here. With --checkpoint
    this is done in parts, which are kept in the folder, and the same command goes
    on after an interrupt, with the events that there were when it began.
    """
    if filter_text is not None:
        read_filter(filter_text, dialect).require_satisfiable()
    for text in (since, until):
        moment_of(text)
    with (
        opened(master, remote, conf, "stats", own_bar=checkpoint is not None) as spark,
        watched(checkpoint) as progress,
    ):
        figures = jobs.stats(
            spark,
            source,
            subscriptions=subscriptions,
            lake=lake,
            filter=filter_text,
            dialect=dialect,
            since=since,
            until=until,
            time=time,
            by=by,
            report=output,
            title=title,
            numbers=json,
            hints=hints,
            checkpoint=checkpoint,
            progress=progress,
        )
    write_json(
        {
            "events": figures.traffic.events,
            "attributes": len({one.name for one in figures.attributes}),
            "subscriptions": None if figures.hits is None else figures.hits.subscriptions,
            "report": str(output),
        }
    )
    if figures.traffic.unreadable:
        say(f"{plural(figures.traffic.unreadable, 'event')} could not be read, and are left out.", "yellow")
    if figures.traffic.untimed and (time is not None or figures.traffic.first is not None):
        say(f"{plural(figures.traffic.untimed, 'event')} without a time: in no plot over time.", "yellow")
    if show:
        webbrowser.open(output.resolve().as_uri())
