"""`palio spark patterns`: what happened together, in everything that was published?"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.filters.patterns import Close, Delay, PatternFile, patterns_of
from palio.cli.input.events import Complaints
from palio.cli.output.pattern_lines import Shown, match_line
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, plural, say, write_json
from palio.cli.spark.checkpoint import Checkpoint, watched
from palio.cli.spark.options import Master, Remote, Settings, opened, told_if_interrupted
from palio.model.moments import parse_span
from palio.model.notification import Notification
from palio.spark import jobs
from palio.spark.frames import over_connect
from palio.spark.jobs.patterns_job import NEEDS_A_PLACE, is_stream

if TYPE_CHECKING:
    from pyspark.sql import Row

EPILOG = help_epilog(
    "palio spark patterns palio-lake -p examples/patterns.jsonl",
    "palio spark patterns palio-lake -p examples/patterns.jsonl -o found --close",
    "palio spark patterns palio-lake -p examples/patterns.jsonl --checkpoint s",
    "palio spark patterns palio://127.0.0.1:7070 -p jump.txt --checkpoint state",
    notes="docs/filters.md has the language: jump.txt has a pattern a line. Without Spark: palio patterns",
)
# State is written for each partition in each small batch; a few a core are enough.
_STREAM_SETTINGS = ["spark.sql.shuffle.partitions=4"]


def patterns(
    *,
    source: Annotated[str, argument("SOURCE", "Parquet, a lake, palio://, sqlite:///…")],
    patterns: PatternFile,
    output: Annotated[str | None, option("FOLDER", "Write what is found as Parquet.", "--output", "-o")] = None,
    to: Annotated[str | None, option("ADDRESS", "Publish what is found at palio://….")] = None,
    time: Annotated[str | None, option("COLUMN", "An event's time.")] = None,
    position: Annotated[str | None, option("COLUMN", "Its place in the order of arrival.")] = None,
    id: Annotated[str | None, option("COLUMN", "Its id.")] = None,
    close: Close = False,
    follow: Annotated[bool, flag("--follow", "Go on with what comes, until Ctrl-C.")] = False,
    checkpoint: Checkpoint = None,
    delay: Delay = "1m",
    skew: Annotated[str, option("SPAN", "How far ahead of the clock one may be.")] = "1h",
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Find patterns in all events of a source, and say of which events each match consists.

    The columns with an event's time, position and id are found by their usual
    names, or named. What is found goes to standard output as JSON lines, into
    a folder, or is published as notifications that name their events.

    With --checkpoint a lake is looked at in parts, which are kept in the folder, and
    the same command goes on after an interrupt, with the events of the first run.

    A journal, or a folder into which Parquet comes, is a stream with --checkpoint:
    the same command goes on after an interrupt, or when there is more; with
    --follow it goes on for ever. A journal is read in small batches, each of which
    is done for good; several journals, or Parquet, in one batch of all that is
    there. Then --delay and --skew say which events come too late or cannot be
    true.
    """
    streams = is_stream(source, checkpoint)
    if follow and checkpoint is None:
        raise typer.BadParameter("--follow needs a --checkpoint, to go on after an interrupt.")
    if follow and not streams:
        raise typer.BadParameter("--follow needs a stream: name the journals that the lake is made from.")
    if close and streams:
        raise typer.BadParameter("--close is for all that is there at once; a stream never closes.")
    complaints = Complaints(error_console())
    chosen = patterns_of(patterns, complaints)
    if complaints.count:
        raise typer.Exit(ExitCode.BAD_INPUT)
    for text in (delay, skew):
        parse_span(text)
    settings = [*(_STREAM_SETTINGS if streams else ()), *(conf or ())]
    place, found = output or to, jobs.PatternsFound()

    def told(so_far: jobs.PatternsFound) -> None:
        nonlocal found
        found = so_far

    with opened(master, remote, settings, "patterns", own_bar=checkpoint is not None and not streams) as spark:
        far = streams and over_connect(spark)
        if far and place is None:
            raise typer.BadParameter(NEEDS_A_PLACE)
        found = jobs.PatternsFound(counted=not far)
        interrupted = told_if_interrupted(lambda: f"{_summary(found, place)} so far; the same command goes on.")
        with interrupted if streams else watched(checkpoint, "Looking") as progress:
            found = jobs.patterns(
                spark,
                source,
                chosen,
                output=output,
                to=to,
                each=_show if place is None else None,
                time=time,
                position=position,
                id=id,
                close=close,
                follow=follow,
                checkpoint=checkpoint,
                delay=delay,
                skew=skew,
                progress=progress,
                told=told,
            )
    say(_summary(found, place))


def _show(row: Row) -> None:
    said = Notification.decode(bytes(row["payload"]))
    events = (Shown(one["step"], one["id"], one["time"].astimezone(UTC)) for one in row["events"])
    write_json(match_line(said, row["id"], events))


def _summary(found: jobs.PatternsFound, place: str | None) -> str:
    if not found.counted:
        return f"What was found is in {place}."
    timed_out = [f"{found.timed_out:,} timed out"] if found.timed_out else []
    dropped = (f"{count:,} {why}" for why, count in found.dropped.items())
    return ", ".join([plural(found.matches, "match"), *timed_out, *dropped])
