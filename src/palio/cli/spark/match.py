"""`palio spark match`: which subscriptions does each of many events satisfy? In bulk, and from day to day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from palio.cli.input.inputs import Dialect
from palio.cli.output.progress import MovingBar
from palio.cli.program.dressing import flag, option
from palio.cli.program.terminal import error_console, help_epilog, plural, say, write_json
from palio.cli.spark.checkpoint import Checkpoint, watched
from palio.cli.spark.gaps import say_gaps
from palio.cli.spark.options import Filters, Master, Remote, Settings, opened, told_if_interrupted
from palio.language import PALIO
from palio.spark import jobs
from palio.spark.frames import EVENT, SUBSCRIPTION
from palio.spark.matching.runs import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPILOG = help_epilog(
    "palio spark match -e examples/events.jsonl -f examples/filters.jsonl",
    notes="As Parquet: add -o pairs. From a lake, day by day: -e palio-lake -f filters.jsonl -o pairs --new",
)


def match(
    *,
    events: Annotated[
        str, option("PLACE", "Parquet, JSON lines, a lake, palio://, sqlite:///…", "--events", "-e")
    ],
    subscriptions: Annotated[str, Filters],
    output: Annotated[
        str | None, option("FOLDER", "Parquet; without it pairs are shown as JSON.", "--output", "-o")
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace what the output holds.")] = False,
    new: Annotated[
        bool, flag("--new", "Match only what is new since the last run, and add it to the output.")
    ] = False,
    dialect: Dialect = PALIO,
    event_id: Annotated[str | None, option("COLUMN", "The id's column; event_id by default.")] = None,
    quarantine: Annotated[
        str | None, option("FOLDER", "What cannot be read goes there, with the reason.")
    ] = None,
    storage: Annotated[str | None, option("FOLDER", "A folder that all executors share.")] = None,
    checkpoint: Checkpoint = None,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Match many events against many subscriptions: pairs (event_id, subscription_id).

    Parquet of events has a column for each attribute, or a payload; Parquet of
    subscriptions has subscription_id and filter. A line of an event is a JSON
    object or a CloudEvent, a line of a subscription {"id": …, "filter": "…"} or
    the bare filter. What does not say in which dialect it is (a column, a member
    of the object) is in that of --dialect.

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
    kept: dict[str, Any] = {"quarantine": quarantine, "storage": storage, "dialect": dialect}
    with opened(master, remote, conf, "match", own_bar=new or checkpoint is not None) as spark:
        if new:
            assert output is not None
            _add_new(spark, events, subscriptions, output, **kept)
            return
        with watched(checkpoint, "Matching") as progress:
            done = jobs.match(
                spark,
                events,
                subscriptions,
                output=output,
                overwrite=overwrite,
                event_id=event_id,
                checkpoint=checkpoint,
                progress=progress,
                **kept,
            )
            if output is None:
                _show(done)
                return
        say(f"{plural(done.pairs.count(), 'pair')} in {output}")


def _show(done: jobs.Matched) -> None:
    found_any = False
    for row in done.pairs.toLocalIterator():
        found_any = True
        write_json({EVENT: row[EVENT], SUBSCRIPTION: row[SUBSCRIPTION]})
    if not found_any:
        say("There are no pairs: no event satisfies a filter, or one of both has no rows.")


def _add_new(spark: SparkSession, events: str, filters: str, output: str, **options: Any) -> None:
    runs: list[Run] = []

    def told(run: Run, done: int, of: int) -> None:
        runs.append(run)
        bar.show("Matching", 100 if not of else 100 * done // of, 100)

    def interrupted() -> str:
        kept = f"{plural(len(runs), 'run')} with {plural(sum(run.found for run in runs), 'pair')}"
        return f"{kept} came to {output}, and the same command goes on from there."

    with told_if_interrupted(interrupted), MovingBar(error_console()) as bar:
        bar.show("Matching", 0, 100)
        done = jobs.match_new(spark, events, filters, output, told=told, **options)
    say_gaps(done.gaps)
    first, last = done.runs[0].number, done.runs[-1].number
    several = f"Run {last}" if first == last else f"Runs {first} to {last}"
    say(f"{several}: {plural(done.found, 'pair')} in {output}")
