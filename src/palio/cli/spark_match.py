"""`palio spark match`: which subscriptions does each of many events satisfy? In bulk, and from day to day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

import palio.spark
from palio.cli.spark_options import Master, Remote, Settings, opened
from palio.cli.terminal import error_console, help_epilog, plural, write_json
from palio.spark.errors import BadEvent, UnknownInput
from palio.spark.frames import EVENT, SUBSCRIPTION
from palio.spark.inputs import REASON, events_at, partitions_of, subscriptions_at
from palio.spark.runs import JOURNAL, SEQUENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EPILOG = help_epilog(
    "palio spark match -e examples/events.jsonl -f examples/filters.jsonl",
    notes="As Parquet: add -o pairs. From a lake, day by day: -e palio-lake -f filters.jsonl -o pairs --new",
)


def match(
    *,
    events: Annotated[
        str,
        typer.Option(
            "--events", "-e", metavar="PLACE", help="Parquet, JSON lines, a lake, palio://, sqlite:///…"
        ),
    ],
    subscriptions: Annotated[
        str,
        typer.Option("--filters", "-f", metavar="PLACE", help="Parquet or JSON lines: subscriptions' filters."),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Parquet; without it pairs are shown as JSON."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the output holds.")] = False,
    new: Annotated[
        bool, typer.Option("--new", help="Match only what is new since the last run, and add it to the output.")
    ] = False,
    event_id: Annotated[
        str | None, typer.Option("--event-id", metavar="COLUMN", help="The id's column; event_id by default.")
    ] = None,
    quarantine: Annotated[
        str | None,
        typer.Option("--quarantine", metavar="FOLDER", help="What cannot be read goes there, with the reason."),
    ] = None,
    storage: Annotated[
        str | None, typer.Option("--storage", metavar="FOLDER", help="A folder that all executors share.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Match many events against many subscriptions: pairs (event_id, subscription_id).

    Parquet of events has a column for each attribute, or a payload; Parquet of
    subscriptions has subscription_id and filter. A line of an event is a JSON
    object or a CloudEvent, a line of a subscription {"id": …, "filter": "…"} or
    the bare filter.

    --new is for events from a lake or a journal: new events are matched against
    all subscriptions, old ones against those that are new or have changed. An
    interrupted run leaves nothing behind, and the next one costs what is new.

    What cannot be read ends the job with the reason, unless --quarantine says
    where to put it.
    """
    if new and output is None:
        raise typer.BadParameter("--new adds to what is there: it needs --output.")
    with opened(master, remote, conf, "match") as spark:
        found = events_at(spark, events, id=event_id)
        filters = subscriptions_at(spark, subscriptions)
        found = _readable(found, filters, quarantine)
        invalid = "error" if quarantine is None else "skip"
        options: dict[str, Any] = {"invalid": invalid, "storage": storage}
        if new:
            assert output is not None
            if JOURNAL not in found.columns:
                raise UnknownInput(events, "--new needs events of a lake or a journal, which have positions.")
            run = palio.spark.match_new(found, filters, output, **options)
            _tell(f"Run {run.number}: {plural(run.found, 'pair')} in {output}")
            return
        parts = partitions_of(spark, events, found)
        pairs = palio.spark.match(found.drop(JOURNAL, SEQUENCE), filters, partitions=parts, **options)
        if output is None:
            found_any = False
            for row in pairs.toLocalIterator():
                found_any = True
                write_json({EVENT: row[EVENT], SUBSCRIPTION: row[SUBSCRIPTION]})
            if not found_any:
                _tell("There are no pairs: no event satisfies a filter, or one of both has no rows.")
            return
        pairs.write.mode("overwrite" if overwrite else "errorifexists").parquet(output)
        _tell(f"{plural(spark.read.parquet(output).count(), 'pair')} in {output}")


def _readable(events: DataFrame, filters: DataFrame, quarantine: str | None) -> DataFrame:
    """Events without lines that are none; with a quarantine, all that cannot be read goes there."""
    good = events.where(f"{REASON} is null").drop(REASON) if REASON in events.columns else events
    if quarantine is not None:
        palio.spark.unreadable(filters).write.mode("overwrite").parquet(f"{quarantine}/subscriptions")
        if REASON in events.columns:
            events.where(f"{REASON} is not null").write.mode("overwrite").parquet(f"{quarantine}/events")
        elif "payload" in events.columns:
            palio.spark.unreadable(events).write.mode("overwrite").parquet(f"{quarantine}/events")
    elif REASON in events.columns:
        first = events.where(f"{REASON} is not null").first()
        if first is not None:
            raise BadEvent(first[EVENT], str(first[REASON]), "--quarantine says where such are to go.")
    return good


def _tell(text: str) -> None:
    error_console().print(text, style="dim", soft_wrap=True)
