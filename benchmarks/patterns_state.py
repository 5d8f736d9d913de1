"""What a stream of patterns keeps, over time: `palio bench patterns --ways keys long`.

`keys` first makes each of more than a million symbols the beginning of a match, so that all of them have to be
remembered, and then measures ordinary traffic on top of that; the bar is 50 thousand events a second. `long`
has short windows and goes on for many of them, to show that state comes to an end: what is kept depends on the
window, and not on how long the query has been running.

How many keys there are is read from the checkpoint itself, as it was after each batch.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.patterns_data import RATE, Choice, events_table
from palio.matching.patterns import Detector, PatternSet
from palio.spark.patterns.finding import find_patterns

BAR = 50_000
_SPARE = 1.25  # keys that are remembered at first, for each that the bar asks for: matches use some up
_FILE = 250_000
_DELAY = 1_000_000
_LONG_WINDOW = 10


class Step(msgspec.Struct):
    """One batch of a stream: events, seconds, and after it the keys that are remembered and the bytes of it."""

    number: int
    events: int
    seconds: float
    keys: int = 0
    size: int = 0


def run_stream(spark: Any, source: Path, chosen: dict[str, str], *, buckets: int, counted: bool) -> list[Step]:
    """Find patterns in files, one a batch, with checkpoints; `counted` looks at the state of every batch."""
    schema = spark.read.parquet(str(source)).schema
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    checkpoint = tempfile.mkdtemp()
    try:
        query = (
            find_patterns(events, chosen, buckets=buckets, skew=None, delay=_DELAY)
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        steps = [
            Step(one["batchId"], one["numInputRows"], one["durationMs"]["triggerExecution"] / 1_000)
            for one in query.recentProgress
            if one["numInputRows"]
        ]
        if counted:
            patterns = PatternSet(chosen)
            for step in steps:
                step.keys, step.size = _kept(spark, checkpoint, patterns, step.number)
        return steps
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)


def _kept(spark: Any, checkpoint: str, patterns: PatternSet, batch: int) -> tuple[int, int]:
    """The keys that are remembered after a batch, and the bytes of all buckets."""
    state = spark.read.format("statestore").option("stateVarName", "detector").option("batchId", batch)
    keys = size = 0
    for row in state.load(checkpoint).select("value.detector").toLocalIterator():
        raw = bytes(row["detector"])
        keys += Detector.decode(patterns, raw).statistics().partitions
        size += len(raw)
    return keys, size


def rate(steps: list[Step]) -> float:
    return sum(step.events for step in steps) / max(1e-9, sum(step.seconds for step in steps))


def many_keys(
    console: Console, spark: Any, folder: Path, *, count: int, keys: int, buckets: int, seed: int
) -> None:
    """Ordinary traffic while a million keys are remembered."""
    chance = np.random.default_rng(seed)
    source = folder / "keys"
    source.mkdir()
    all_keys = int(keys * _SPARE)
    for number, start in enumerate(range(0, all_keys, _FILE)):
        size = min(_FILE, all_keys - start)
        table = events_table(chance, start, size, all_keys)
        symbols = np.char.add("s", np.arange(start, start + size).astype(str))
        first = table.set_column(0, "kind", pa.repeat("k0", size))
        pq.write_table(first.set_column(1, "symbol", pa.array(symbols)), source / f"0-{number:04}.parquet")
    beginnings = number + 1
    for number, start in enumerate(range(0, count, _FILE)):
        table = events_table(chance, all_keys + start, min(_FILE, count - start), all_keys)
        pq.write_table(table, source / f"1-{number:04}.parquet")
    steps = run_stream(spark, source, {"p": Choice.of(0, 1).pattern()}, buckets=buckets, counted=True)
    traffic = steps[beginnings:]
    least = min(step.keys for step in traffic)
    console.print(
        f"{sum(step.events for step in traffic):,} events in batches of {_FILE:,}, at least {least:,} keys "
        f"remembered after each of them ({traffic[-1].size / 1e6:,.0f} MB in checkpoints): "
        f"{rate(traffic):,.0f} events/s (bar {BAR:,}); slowest batch "
        f"{min(step.events / step.seconds for step in traffic):,.0f}"
    )


def long_run(
    console: Console, spark: Any, folder: Path, *, count: int, keys: int, buckets: int, seed: int
) -> None:
    """State over many short windows."""
    chance = np.random.default_rng(seed)
    source = folder / "long"
    source.mkdir()
    for number, start in enumerate(range(0, count, _FILE)):
        pq.write_table(
            events_table(chance, start, min(_FILE, count - start), keys), source / f"{number:04}.parquet"
        )
    pattern = Choice.of(0, 1).pattern(_LONG_WINDOW)
    steps = run_stream(spark, source, {"p": pattern}, buckets=buckets, counted=True)
    shown = Table(
        "windows", "events", "keys remembered", "state", "events/s",
        title=f"A stream over {count / RATE / _LONG_WINDOW:,.0f} windows of {_LONG_WINDOW} s",
    )  # fmt: skip
    done = 0
    for number, step in enumerate(steps):
        done += step.events
        if number % max(1, len(steps) // 10) == 0 or step is steps[-1]:
            shown.add_row(
                f"{done / RATE / _LONG_WINDOW:,.1f}", f"{done:,}", f"{step.keys:,}",
                f"{step.size / 1e6:,.2f} MB", f"{step.events / step.seconds:,.0f}",
            )  # fmt: skip
    console.print(shown)
    console.print(
        f"{rate(steps[1:]):,.0f} events/s behind the first batch, {sum(s.seconds for s in steps):,.0f} s"
    )
