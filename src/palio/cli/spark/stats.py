"""`palio spark stats`: what the data say, as a report, as numbers, and as hints for a broker's index."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from palio.cli.output.places import DEFAULT_REPORT
from palio.cli.program.terminal import error_console, help_epilog, plural, write_json
from palio.cli.spark.checkpoint import (
    LINES,
    Checkpoint,
    Times,
    asked_of,
    kept_in,
    moment_of,
    place_of,
    readable,
    settings_with,
    telling_that_nothing_is_kept,
    unreadable,
)
from palio.cli.spark.options import Master, Remote, Settings, opened
from palio.language import read_filter
from palio.spark.jobs.inputs import REASON, is_journal, is_lake, past_events, subscriptions_at
from palio.spark.jobs.parts import Through
from palio.spark.jobs.pieces import File, cut, files_at, require_unchanged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from palio.spark.stats.figures import Figures

EPILOG = help_epilog(
    "palio spark stats examples/events.jsonl -f examples/filters.jsonl",
    "palio spark stats palio-lake --filter 'price > 0' --since 30d --open",
    "palio spark stats palio-lake --json numbers.json --hints hints.json",
    notes="Then `palio up --hints hints.json`: the broker's index knows from the start what is rare.",
)


def stats(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A lake, palio://, sqlite:///…, Parquet or JSON lines.")
    ],
    *,
    subscriptions: Annotated[
        str | None,
        typer.Option("--filters", "-f", metavar="PLACE", help="Parquet or JSON lines: subscriptions' filters."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the report goes, one HTML file.")
    ] = DEFAULT_REPORT,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the numbers, too.")] = None,
    hints: Annotated[
        Path | None, typer.Option("--hints", metavar="FILE", help="Write hints for a broker's index, too.")
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option(
            "--lake", metavar="FOLDER", help="SOURCE are journals, and their older part is this lake."
        ),
    ] = None,
    filter_text: Annotated[
        str | None, typer.Option("--filter", metavar="FILTER", help="Only events that it selects.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="From then on: 7d, a date, a time, @seconds.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="WHEN", help="Up to then; else up to now.")
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="NAME", help="The attribute that says when an event was.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="NAME", help="Tell events apart by this one; class, or the publisher."),
    ] = None,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="What the report is called.")] = (
        "What the data say"
    ),
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
    from palio.spark.stats import gather, write_hints, write_numbers, write_report  # noqa: PLC0415 - numpy and pandas take their time
    from palio.spark.stats.sources import events_from  # noqa: PLC0415

    if filter_text is not None:
        read_filter(filter_text).require_satisfiable()
    times = moment_of(since), moment_of(until)
    options: dict[str, Any] = {"source": source, "time": time, "by": by}
    console = error_console()
    with opened(master, remote, settings_with(checkpoint, conf), "stats") as spark:
        wanted = None if subscriptions is None else subscriptions_at(spark, subscriptions)
        if checkpoint is not None:
            options |= {"lake": lake, "filter": filter_text, "since": since, "until": until}
            figures = _in_parts(spark, checkpoint, (subscriptions, wanted), times, options)
        else:
            with telling_that_nothing_is_kept():
                found = events_from(
                    spark, source, lake=lake, filter=filter_text, since=times[0], until=times[1]
                )
                figures = gather(
                    found.events,
                    wanted,
                    filter=None if found.is_filtered else filter_text,
                    since=times[0],
                    until=times[1],
                    unreadable=found.unreadable,
                    **options,
                )
    figures = msgspec.structs.replace(figures, filter=filter_text)
    place = write_report(figures, output, title=title)
    if json is not None:
        write_numbers(figures, json)
    if hints is not None:
        write_hints(figures, hints)
    write_json(
        {
            "events": figures.traffic.events,
            "attributes": len({one.name for one in figures.attributes}),
            "subscriptions": None if figures.hits is None else figures.hits.subscriptions,
            "report": str(place),
        }
    )
    if figures.traffic.unreadable:
        told = f"{plural(figures.traffic.unreadable, 'event')} could not be read, and are left out."
        console.print(told, style="yellow", soft_wrap=True)
    if figures.traffic.untimed and (time is not None or figures.traffic.first is not None):
        told = f"{plural(figures.traffic.untimed, 'event')} without a time: in no plot over time."
        console.print(told, style="yellow", soft_wrap=True)
    if show:
        webbrowser.open(place.resolve().as_uri())


def _in_parts(
    spark: SparkSession,
    checkpoint: str,
    wanted: tuple[str | None, DataFrame | None],
    times: Times,
    options: dict[str, Any],
) -> Figures:
    """The same figures, look by look and piece by piece, kept in a folder."""
    from palio.spark.stats import gather  # noqa: PLC0415
    from palio.spark.stats.gathering import LOOKS  # noqa: PLC0415
    from palio.spark.stats.preparing import prepared  # noqa: PLC0415

    source, lake, filter, time = (options[name] for name in ("source", "lake", "filter", "time"))
    filters, subscriptions = wanted
    place, url = (source, None) if lake is None else (lake, source)
    span: dict[str, Any] = dict(zip(("since", "until"), times, strict=True))
    chooses = is_journal(source) or is_lake(place)  # a store or a lake chooses by the filter itself
    choosing: dict[str, Any] = {} if chooses or filter is None else {"filter": read_filter(filter)}
    whole = past_events(spark, place, url, **(span if chooses else {}))
    prepared(readable(whole), time=time, **choosing, **span)  # what is wrong is found before anything is kept
    asked = asked_of("stats", filters=place_of(filters), **options)
    asked |= {"source": place_of(source), "lake": place_of(lake)}
    stages = [*([LINES] if REASON in whole.columns else ()), *LOOKS[: 2 if filters is None else 3]]
    with kept_in(
        checkpoint,
        spark,
        whole,
        asked,
        lambda: cut(spark, place, url, **(span if chooses else {})),
        stages=stages,
        read=lambda pieces, piece: pieces.read(spark, piece, filter=filter if chooses else None),
    ) as looks:
        if filters is not None:
            require_unchanged(
                filters,
                looks.kept("filters", lambda: files_at(spark, filters), tuple[File, ...]),
                files_at(spark, filters),
            )
        wrong = unreadable(looks) if LINES in stages else 0
        first = looks.kept("times", lambda: times, Times)
        return gather(
            Through(looks, readable),
            subscriptions,
            source=source,
            time=time,
            by=options["by"],
            since=first[0],
            until=first[1],
            unreadable=wrong,
            **choosing,
        )
