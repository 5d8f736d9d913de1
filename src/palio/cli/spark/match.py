"""`palio spark match`: which subscriptions does each of many events satisfy? In bulk, and from day to day."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

import palio.spark
from palio.cli.output.progress import progress_bar
from palio.cli.program.terminal import error_console, help_epilog, plural, write_json
from palio.cli.spark.checkpoint import Checkpoint, asked_of, kept_in, place_of, readable
from palio.cli.spark.options import Master, Remote, Settings, opened, told_if_interrupted, write_table
from palio.spark.errors import BadEvent, UnknownInput
from palio.spark.frames import EVENT, SUBSCRIPTION
from palio.spark.jobs.inputs import (
    REASON,
    events_at,
    has_lines,
    identified,
    partitions_of,
    positioned_at,
    subscriptions_at,
)
from palio.spark.jobs.pieces import Cut, File, Piece, cut, files_at, require_unchanged
from palio.spark.jobs.positions import JOURNAL, SEQUENCE, Positioned
from palio.spark.matching.runs import Run
from palio.spark.runtime.session import cores_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EPILOG = help_epilog(
    "palio spark match -e examples/events.jsonl -f examples/filters.jsonl",
    notes="As Parquet: add -o pairs. From a lake, day by day: -e palio-lake -f filters.jsonl -o pairs --new",
)
# Events for each core that one run of --new matches: what an interruption costs at the most.
ROWS_PER_RUN = 1_000_000
# The looks that are taken at events.
_PAIRS, _UNREADABLE = "pairs", "unreadable"


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
    checkpoint: Checkpoint = None,
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
    all subscriptions, old ones against those that are new or have changed. Much
    that is new is matched in several runs; an interrupt leaves those that are
    done, and the next one costs what is left.

    With --checkpoint all is matched in parts, which are kept in the folder, and the
    same command goes on after an interrupt, with the events that there were when
    it began.

    What cannot be read ends the job with the reason, unless --quarantine says
    where to put it.
    """
    if new and output is None:
        raise typer.BadParameter("--new adds to what is there: it needs --output.")
    if new and checkpoint is not None:
        raise typer.BadParameter("--new goes on by itself, and needs no --checkpoint.")
    invalid = "error" if quarantine is None else "skip"
    own_bar = new or checkpoint is not None
    with opened(master, remote, conf, "match", own_bar=own_bar) as spark:
        filters = subscriptions_at(spark, subscriptions)
        if quarantine is not None:
            palio.spark.unreadable(filters).write.mode("overwrite").parquet(f"{quarantine}/subscriptions")
        if new:
            assert output is not None
            positioned = positioned_at(spark, events)
            if positioned is None:
                raise UnknownInput(events, "--new needs events of a lake or a journal, which have positions.")
            if quarantine is not None:
                _set_aside(events_at(spark, events), quarantine)
            _add_new(positioned, filters, output, invalid=invalid, storage=storage)
            return
        whole = events_at(spark, events, id=event_id)
        if quarantine is None:
            _require_readable(whole)
        asked = asked_of(
            "match",
            events=place_of(events),
            filters=place_of(subscriptions),
            event_id=event_id,
            quarantine=quarantine is not None,
        )

        def piece(cut: Cut, one: Piece) -> DataFrame:
            some = cut.read(spark, one)
            return some if has_lines(events) else identified(some, events, id=event_id)

        stages = [_PAIRS, *([] if quarantine is None else [_UNREADABLE])]
        cutting = partial(cut, spark, events)
        with kept_in(
            checkpoint, spark, whole, asked, cutting, stages=stages, read=piece, what="Matching"
        ) as looks:
            if checkpoint is not None:
                known = files_at(spark, subscriptions)
                require_unchanged(subscriptions, looks.kept("filters", lambda: known, tuple[File, ...]), known)
            shards = palio.spark.build_shards(filters, invalid=invalid, storage=storage)

            def match_some(some: DataFrame) -> DataFrame:
                parts, wanted = partitions_of(spark, events, some), readable(some).drop(JOURNAL, SEQUENCE)
                return palio.spark.match(wanted, shards, invalid=invalid, partitions=parts)

            pairs = looks.look(_PAIRS, match_some)
            if quarantine is not None:
                bad = looks.look(_UNREADABLE, _unreadable_of)
                bad.write.mode("overwrite").parquet(f"{quarantine}/events")
            if output is None:
                found_any = False
                for row in pairs.toLocalIterator():
                    found_any = True
                    write_json({EVENT: row[EVENT], SUBSCRIPTION: row[SUBSCRIPTION]})
                if not found_any:
                    _tell("There are no pairs: no event satisfies a filter, or one of both has no rows.")
                return
            write_table(pairs, output, overwrite=overwrite)
        _tell(f"{plural(spark.read.parquet(output).count(), 'pair')} in {output}")


def _add_new(events: Positioned, filters: DataFrame, output: str, **options: Any) -> None:
    runs: list[Run] = []

    def told(run: Run, done: int, of: int) -> None:
        runs.append(run)
        advance(100 if not of else 100 * done // of)

    def interrupted() -> str:
        kept = f"{plural(len(runs), 'run')} with {plural(sum(run.found for run in runs), 'pair')}"
        return f"{kept} came to {output}, and the same command goes on from there."

    rows = ROWS_PER_RUN * cores_of(events.spark)
    with told_if_interrupted(interrupted), progress_bar(error_console(), "Matching", 100) as advance:
        palio.spark.match_new(events, filters, output, rows=rows, told=told, **options)
    found = plural(sum(run.found for run in runs), "pair")
    first, last = runs[0].number, runs[-1].number
    _tell(f"{f'Run {last}' if first == last else f'Runs {first} to {last}'}: {found} in {output}")


def _unreadable_of(events: DataFrame) -> DataFrame:
    """What is no event, with the reason; columns of a table always are."""
    if REASON in events.columns:
        return events.where(f"{REASON} is not null")
    if "payload" in events.columns:
        return palio.spark.unreadable(events)
    return events.select(EVENT).limit(0)


def _set_aside(events: DataFrame, quarantine: str) -> None:
    _unreadable_of(events).write.mode("overwrite").parquet(f"{quarantine}/events")


def _require_readable(events: DataFrame) -> None:
    """Raises `BadEvent` for the first line that is none."""
    if REASON in events.columns:
        first = events.where(f"{REASON} is not null").first()
        if first is not None:
            raise BadEvent(first[EVENT], str(first[REASON]), "--quarantine says where such are to go.")


def _tell(text: str) -> None:
    error_console().print(text, style="dim", soft_wrap=True)
