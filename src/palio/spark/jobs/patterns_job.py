"""`patterns`: what happened together, in everything that was published, or in a stream that goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession

from palio.model.moments import parse_span
from palio.model.patterns.pattern import Pattern
from palio.spark.errors import WrongOption
from palio.spark.frames import over_connect
from palio.spark.jobs.checkpoint import Progress, asked_of, looks_at, place_of
from palio.spark.patterns.finding import LOOKS, find_in, find_patterns
from palio.spark.patterns.hits import packed_texts
from palio.spark.runtime.queries import run_to_end
from palio.spark.source.writing import write
from palio.spark.tables.inputs import is_lake, stream_at, table_at
from palio.spark.tables.pieces import cut

# Events of a journal that are looked at together: what an interruption costs at the most.
_ROWS_PER_BATCH = 500_000
# The name under which a broker knows what it was told about matches.
SINK = "patterns"
NEEDS_A_PLACE = "Over Spark Connect, what a stream finds needs an --output or --to."


class PatternsFound(msgspec.Struct, frozen=True):
    """How many matches there were, what timed out beside them, and what was dropped, by the reason.

    Over Spark Connect a stream is counted at its server, and here not: `counted` is false.
    """

    matches: int = 0
    timed_out: int = 0
    dropped: dict[str, int] = {}
    counted: bool = True


def is_stream(source: str, checkpoint: str | None) -> bool:
    """Whether `patterns` takes a place for a stream: with a checkpoint, whatever is no lake."""
    return checkpoint is not None and not is_lake(source)


def patterns(
    spark: SparkSession,
    source: str,
    patterns: Mapping[str, Pattern | str],
    *,
    output: str | None = None,
    to: str | None = None,
    each: Callable[[Row], None] | None = None,
    time: str | None = None,
    position: str | None = None,
    id: str | None = None,
    close: bool = False,
    follow: bool = False,
    checkpoint: str | None = None,
    delay: str = "1m",
    skew: str = "1h",
    progress: Progress | None = None,
    told: Callable[[PatternsFound], None] | None = None,
) -> PatternsFound:
    """Find patterns, given by name, in the events of a place: Parquet, a lake, or journals.

    What is found is written as Parquet to `output/batch=…`, published at `to`, and handed to `each`, a row of
    `palio.spark.find_patterns` at a time. `time`, `position` and `id` name columns, if those are not called as
    usual; `close` decides what is still open. With `checkpoint` a lake is looked at in parts, which are kept
    there; journals, or a folder into which Parquet comes, are a stream: the same call goes on after an
    interrupt, or when there is more, and with `follow` it goes on for ever. In a stream an event may be older
    than the newest by `delay`, and ahead of the clock by `skew`. `told` hears what was found so far.

    A stream writes state for each shuffle partition in each batch; `spark.sql.shuffle.partitions` is better
    small. Raises `WrongOption`, `UnknownInput`, `WrongCheckpoint`, and what `find_patterns` raises.
    """
    columns: dict[str, Any] = {"time": time, "position": position, "id": id}
    if checkpoint is not None and is_stream(source, checkpoint):
        if close:
            raise WrongOption("close", "It is for all that is there at once; a stream never closes.")
        far = over_connect(spark)
        if far and output is None and to is None:
            raise WrongOption("output", NEEDS_A_PLACE)
        outcome = _PatternsOutcome(output, to, *((None, None) if far else (each, told)))
        bounds: dict[str, Any] = {"delay": _microseconds(delay), "skew": _microseconds(skew)}
        found = find_patterns(stream_at(spark, source, rows=_ROWS_PER_BATCH), patterns, **bounds, **columns)
        writer = found.writeStream.foreachBatch(outcome.take).option("checkpointLocation", checkpoint)
        run_to_end((writer if follow else writer.trigger(availableNow=True)).start)
        return msgspec.structs.replace(outcome.found(), counted=not far)
    if follow:
        raise WrongOption("follow", "It needs a stream, and a checkpoint to go on after an interrupt.")
    written = f"{len(patterns)} of {sha256(packed_texts(patterns)).hexdigest()[:16]}"
    asked = asked_of("patterns", source=place_of(source), patterns=written, close=close, **columns)
    stages = LOOKS[close:]  # what is closed needs no newest event
    whole = table_at(spark, source)
    looks = looks_at(whole, checkpoint, asked, partial(cut, spark, source), stages=stages, progress=progress)
    outcome = _PatternsOutcome(output, to, each, told)
    outcome.take(find_in(looks, patterns, close=close, **columns), 0)
    return outcome.found()


def _microseconds(span: str) -> int:
    return round(parse_span(span) * 1_000_000)


@dataclass
class _PatternsOutcome:
    """Where matches go, and what is counted on the way."""

    output: str | None
    to: str | None
    each: Callable[[Row], None] | None
    told: Callable[[PatternsFound], None] | None
    counts: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def found(self) -> PatternsFound:
        """What was found so far."""
        return PatternsFound(self.counts["matches"], self.counts["timed_out"], dict(self.dropped))

    def take(self, found: DataFrame, number: int) -> None:
        """What was found in a small batch, or in all there is. Done again, it changes nothing."""
        found = found.persist()
        matches = found.where("pattern is not null").drop("dropped")
        try:
            if self.output is not None:
                matches.write.mode("overwrite").parquet(f"{self.output}/batch={number}")
            if self.to is not None:
                write(matches.select("id", "payload"), self.to, sink=SINK, id="id")
            for row in found.toLocalIterator():
                self._row(row)
        finally:
            found.unpersist()
        if self.told is not None:
            self.told(self.found())

    def _row(self, row: Row) -> None:
        if row["pattern"] is None:
            self.dropped.update(row["dropped"])
            return
        self.counts["timed_out" if row["timed_out"] else "matches"] += 1
        if self.each is not None:
            self.each(row)
