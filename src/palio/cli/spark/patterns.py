"""`palio spark patterns`: what happened together, in everything that was published?"""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

import typer

import palio.spark
from palio.cli.filters.patterns import Close, Delay, PatternFile, microseconds, patterns_of
from palio.cli.input.inputs import Complaints
from palio.cli.output.pattern_lines import Shown, match_line
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, plural, write_json
from palio.cli.spark.checkpoint import Checkpoint, asked_of, kept_in, place_of
from palio.cli.spark.options import Master, Remote, Settings, opened, told_if_interrupted
from palio.model.notification import Notification
from palio.spark.frames import over_connect
from palio.spark.jobs.inputs import is_lake, stream_at, table_at
from palio.spark.jobs.pieces import cut
from palio.spark.patterns.finding import LOOKS, find_in, packed_texts
from palio.spark.runtime.queries import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPILOG = help_epilog(
    "palio spark patterns palio-lake -p examples/patterns.jsonl",
    "palio spark patterns palio-lake -p examples/patterns.jsonl -o found --close",
    "palio spark patterns palio-lake -p examples/patterns.jsonl --checkpoint s",
    "palio spark patterns palio://127.0.0.1:7070 -p jump.txt --checkpoint state",
    notes="docs/filters.md has the language: jump.txt has a pattern a line. Without Spark: palio patterns",
)
# State is written for each partition in each small batch; a few a core are enough.
_STREAM_PARTITIONS = "4"
# Events of a journal that are looked at together: what an interruption costs at the most.
_ROWS_PER_BATCH = 500_000
# The name under which a broker knows what it was told about matches.
SINK = "patterns"


def patterns(
    *,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Parquet, a lake, palio://, sqlite:///…")],
    patterns: PatternFile,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FOLDER", help="Write what is found as Parquet.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="ADDRESS", help="Publish what is found at palio://….")
    ] = None,
    time: Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="An event's time.")] = None,
    position: Annotated[
        str | None, typer.Option("--position", metavar="COLUMN", help="Its place in the order of arrival.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Its id.")] = None,
    close: Close = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C.")] = False,
    checkpoint: Checkpoint = None,
    delay: Delay = "1m",
    skew: Annotated[
        str, typer.Option("--skew", metavar="SPAN", help="How far ahead of the clock one may be.")
    ] = "1h",
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
    streams = checkpoint is not None and not is_lake(source)
    if follow and checkpoint is None:
        raise typer.BadParameter("--follow needs a --checkpoint, to go on after an interrupt.")
    if follow and not streams:
        raise typer.BadParameter("--follow needs a stream: name the journals that the lake is made from.")
    if close and streams:
        raise typer.BadParameter("--close is for all that is there at once; a stream never closes.")
    console = error_console()
    complaints = Complaints(console)
    chosen = patterns_of(patterns, complaints)
    if complaints.count:
        raise typer.Exit(ExitCode.BAD_INPUT)
    outcome = _Outcome(output, to)
    columns: dict[str, Any] = {"time": time, "position": position, "id": id}
    settings = [*(conf or ())]
    if streams:
        settings = [f"spark.sql.shuffle.partitions={_STREAM_PARTITIONS}", *settings]
    own_bar = checkpoint is not None and not streams
    with opened(master, remote, settings, "patterns", own_bar=own_bar) as spark:
        if checkpoint is not None and streams:
            outcome.require_a_place(spark)
            bounds: dict[str, Any] = {"delay": microseconds(delay), "skew": microseconds(skew)}
            stream = stream_at(spark, source, rows=_ROWS_PER_BATCH)
            found = palio.spark.find_patterns(stream, chosen, **bounds, **columns)
            with told_if_interrupted(lambda: f"{outcome.summary()} so far; the same command goes on."):
                _stream(found, outcome, checkpoint, follow=follow)
        else:
            written = f"{len(chosen)} of {sha256(packed_texts(chosen)).hexdigest()[:16]}"
            asked = asked_of("patterns", source=place_of(source), patterns=written, close=close, **columns)
            stages = LOOKS[close:]  # what is closed needs no newest event
            cutting = partial(cut, spark, source)
            whole = table_at(spark, source)
            with kept_in(checkpoint, spark, whole, asked, cutting, stages=stages, what="Looking") as looks:
                outcome.take(find_in(looks, chosen, close=close, **columns), 0)
    console.print(outcome.summary(), style="dim", soft_wrap=True)


def _stream(found: DataFrame, outcome: _Outcome, checkpoint: str, *, follow: bool) -> None:
    writer = found.writeStream.foreachBatch(outcome.take).option("checkpointLocation", checkpoint)
    run_to_end((writer if follow else writer.trigger(availableNow=True)).start)


class _Outcome:
    """Where matches go, and what is counted on the way."""

    def __init__(self, output: str | None, to: str | None) -> None:
        self._output = output
        self._to = to
        self._matches = 0
        self._timed_out = 0
        self._dropped: Counter[str] = Counter()
        self._far = False

    def require_a_place(self, spark: SparkSession) -> None:
        """Over Spark Connect a stream's batches are taken at the server, where nobody sees what is shown."""
        self._far = over_connect(spark)
        if self._far and self._output is None and self._to is None:
            raise typer.BadParameter("Over Spark Connect, what a stream finds needs an --output or --to.")

    def take(self, found: DataFrame, number: int) -> None:
        """What was found in a small batch, or in all there is. Done again, it changes nothing."""
        found = found.persist()
        matches = found.where("pattern is not null").drop("dropped")
        try:
            if self._output is not None:
                matches.write.mode("overwrite").parquet(f"{self._output}/batch={number}")
            if self._to is not None:
                palio.spark.write(matches.select("id", "payload"), self._to, sink=SINK, id="id")
            for row in found.toLocalIterator():
                self._row(row)
        finally:
            found.unpersist()

    def _row(self, row: Any) -> None:
        if row["pattern"] is None:
            self._dropped.update(row["dropped"])
            return
        if row["timed_out"]:
            self._timed_out += 1
        else:
            self._matches += 1
        if self._output is None and self._to is None:
            said = Notification.decode(bytes(row["payload"]))
            events = (Shown(one["step"], one["id"], one["time"].astimezone(UTC)) for one in row["events"])
            write_json(match_line(said, row["id"], events))

    def summary(self) -> str:
        if self._far:
            return f"What was found is in {self._output or self._to}."
        timed_out = [f"{self._timed_out:,} timed out"] if self._timed_out else []
        parts = [
            plural(self._matches, "match"),
            *timed_out,
            *(f"{count:,} {why}" for why, count in self._dropped.items()),
        ]
        return ", ".join(parts)
