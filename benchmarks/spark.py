"""Bulk matching on Spark beside Spark's own join: `python -m benchmarks.spark --events 30000`.

All in one session on this machine. Events lie in a Parquet file that both sides read; both write the pairs, two
longs each, to Spark's `noop` sink, and both count them and sum up their hashes on the way, which must give the
same. The join is what one would write in SQL: each subscription a row with the low and high end of every
attribute that it constrains, null elsewhere, and one predicate over all of them.

- `bulk`: events against shards that are there; building them (`build`) includes parsing the filters.
- `join`: the cross join. The bar is how many times as long it must take.
- `allowed`: what one thread takes for the same events and pairs in memory, by the number of cores, 3 µs for
  each event and 0.2 µs for each pair; beside it what bulk matching takes when nothing is counted (`plain`).
- the ceiling: a `mapInArrow` over the same events that emits as many pairs and does nothing else. Where output
  dominates, bulk matching must reach half of it.

`--memory` measures instead what the Python workers of two cores hold together, building included, at a million
subscriptions; `--growth` how time goes with events, subscriptions and cores; `--archive` how fast a journal
becomes a lake. Times are the best of `--runs`; the join runs once.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
from rich.console import Console
from rich.table import Table

import palio.spark
from benchmarks import spark_archive, spark_memory
from benchmarks.spark_data import Data, cross_join, emitting, prepared
from benchmarks.workloads import WORKLOADS, Workload
from palio.cli.measuring import duration, machine, show_setup
from palio.spark.matching import match_in_memory
from palio.spark.session import session

EVENTS = 30_000
SUBSCRIPTIONS = 10_000
MANY_SUBSCRIPTIONS = 1_000_000
BARS = {"stock": 10, "ranges": 5, "equality": 50}
_PER_EVENT, _PER_PAIR = 3e-6, 0.2e-6
_PARTITIONS_A_CORE = 4


def write(frame: Any) -> float:
    """Seconds until everything is in the sink that keeps nothing."""
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def write_counted(frame: Any) -> tuple[float, tuple[int, int]]:
    """The same, with the number of pairs and the sum of their hashes."""
    from pyspark.sql import Observation, functions  # noqa: PLC0415

    seen = Observation()
    hashed = functions.xxhash64("event_id", "subscription_id") % 1_000_003
    counts = functions.count("*").alias("pairs"), functions.sum(hashed).alias("sum")
    seconds = write(frame.observe(seen, *counts))
    return seconds, (int(seen.get["pairs"]), int(seen.get["sum"] or 0))


def best(runs: int, work: Callable[[], float]) -> float:
    return min(work() for _ in range(runs))


def single_thread(data: Data, runs: int) -> tuple[float, int]:
    """Seconds for the same events and pairs on one thread, all in memory; and how many pairs."""
    filters = pyarrow.parquet.read_table(data.filters_path)
    index = palio.MatchIndex(enumerate(filters.column("filter").to_pylist()))
    ids = filters.column("subscription_id").combine_chunks()
    batches = pyarrow.parquet.read_table(data.events_path).to_batches(max_chunksize=10_000)
    pairs = 0

    def once() -> float:
        nonlocal pairs
        started = time.perf_counter()
        pairs = sum(batch.num_rows for batch in match_in_memory(index, ids, batches))
        return time.perf_counter() - started

    return best(runs, once), pairs


@dataclass
class Compared:
    """All times of a workload, in seconds."""

    data: Data
    pairs: int
    build: float
    bulk: float
    plain: float
    join: float
    alone: float
    ceiling: float
    cores: int

    @property
    def allowed(self) -> float:
        return self.alone / self.cores + _PER_EVENT * self.data.rows + _PER_PAIR * self.pairs


def compared(data: Data, runs: int, cores: int) -> Compared:
    palio.spark.build_shards(data.subscriptions)  # the first time everything has to warm up
    started = time.perf_counter()
    shards = palio.spark.build_shards(data.subscriptions)
    build = time.perf_counter() - started
    partitions = _PARTITIONS_A_CORE * cores
    found = palio.spark.match(data.events, shards, partitions=partitions)
    write(found)
    bulk, seen = min(write_counted(found) for _ in range(runs))
    plain = best(runs, lambda: write(found))
    join, theirs = write_counted(cross_join(data, partitions))
    assert seen == theirs, f"{data.workload.name}: bulk matching gives {seen}, the join {theirs}."
    alone, pairs = single_thread(data, runs)
    assert pairs == seen[0], f"{data.workload.name}: one thread gives {pairs} pairs, Spark {seen[0]}."
    emitted = emitting(data.events, pairs, partitions)
    ceiling = best(runs, lambda: write(emitted))
    return Compared(data, pairs, build, bulk, plain, join, alone, ceiling, cores)


def show(console: Console, results: Sequence[Compared]) -> None:
    shown = Table(
        title="Bulk matching and Spark's cross join, both to the noop sink; pairs and checksums are equal"
    )
    for name in (
        *("workload", "events", "filters", "pairs/event", "build", "bulk", "join", "ratio (bar)"),
        *("plain", "allowed", "pairs/s", "of the ceiling"),
    ):
        shown.add_column(name, justify="left" if name == "workload" else "right")
    for one in results:
        data = one.data
        shown.add_row(
            data.workload.name, f"{data.rows:,}", f"{data.size:,}", f"{one.pairs / data.rows:,.1f}",
            duration(one.build), duration(one.bulk), duration(one.join),
            f"{one.join / one.bulk:,.0f} ({BARS[data.workload.name]})",
            duration(one.plain), duration(one.allowed), f"{one.pairs / one.plain / 1e6:,.1f} M",
            f"{one.ceiling / one.plain:.0%}",
        )  # fmt: skip
    console.print(shown)


def tell(console: Console, one: Compared) -> None:
    """What does not fit into the table."""
    looked_at = one.data.rows * one.data.size / one.join / 1e6
    console.print(
        f"{one.data.workload.name}: {duration(one.bulk)}, {one.join / one.bulk:,.0f} times as fast as "
        f"the join, which looks at {looked_at:,.0f} M pairs/s; building included "
        f"{one.join / (one.bulk + one.build):,.0f} times; one thread takes {duration(one.alone)}, "
        f"emitting alone {duration(one.ceiling)}"
    )


def growth(console: Console, workload: Workload, folder: Path, *, rows: int, size: int, runs: int) -> None:
    """Time by events, by subscriptions and by cores, each with the others as they are."""
    shown = Table(title=f"Growth: {workload.name}")
    for name in ("cores", "events", "subscriptions", "build", "bulk", "µs/event", "pairs/event", "ns/pair"):
        shown.add_column(name, justify="right")
    for cores, many, filters in (
        (2, rows // 4, size),
        (2, rows, size),
        (1, rows, size),
        (2, rows // 4, size // 10),
        (2, rows // 4, size * 10),
    ):
        with _session(cores) as spark:
            data = prepared(spark, workload, folder, many, filters)
            build, bulk, pairs = _built_and_matched(data, runs, cores)
        shown.add_row(
            str(cores), f"{many:,}", f"{filters:,}", duration(build), duration(bulk),
            f"{bulk / many * 1e6:,.1f}", f"{pairs / many:,.1f}", f"{bulk / max(pairs, 1) * 1e9:,.0f}",
        )  # fmt: skip
    console.print(shown)


def _built_and_matched(data: Data, runs: int, cores: int) -> tuple[float, float, int]:
    started = time.perf_counter()
    shards = palio.spark.build_shards(data.subscriptions)
    build = time.perf_counter() - started
    found = palio.spark.match(data.events, shards, partitions=_PARTITIONS_A_CORE * cores)
    _, (pairs, _) = write_counted(found)
    return build, best(runs, lambda: write(found)), pairs


def _session(cores: int) -> Any:
    return session(f"local[{cores}]", name="palio bench", settings={"spark.driver.memory": "4g"})


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="palio bench spark", description="Measure bulk matching on Spark beside Spark's own cross join."
    )
    parser.add_argument("--workload", choices=WORKLOADS, action="append", help="one of them; all by default")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--subscriptions", type=int, help=f"{SUBSCRIPTIONS:,} by default")
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--runs", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--folder", type=Path, help="where workloads are kept for the next time")
    parser.add_argument("--memory", action="store_true", help="what the Python workers hold at a million")
    parser.add_argument("--growth", action="store_true", help="time by events, subscriptions and cores")
    parser.add_argument("--archive", action="store_true", help="how fast a journal becomes a lake")
    chosen = parser.parse_args(words)
    console = Console(width=150)
    show_setup(console, machine() | {"spark": _version(), "tasks": f"{chosen.cores} at a time"})
    with tempfile.TemporaryDirectory(prefix="palio-bench-") as own:
        folder = chosen.folder or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        _measure(console, chosen, folder)


def _measure(console: Console, chosen: argparse.Namespace, folder: Path) -> None:
    workloads = [WORKLOADS[name] for name in chosen.workload or WORKLOADS]
    size = chosen.subscriptions or SUBSCRIPTIONS
    if chosen.growth:
        for workload in workloads:
            growth(console, workload, folder, rows=chosen.events, size=size, runs=chosen.runs)
        return
    with _session(chosen.cores) as spark:
        if chosen.archive:
            spark_archive.run(console, spark, folder, chosen.events)
        elif chosen.memory:
            spark_memory.run(console, spark, folder, chosen.subscriptions or MANY_SUBSCRIPTIONS)
        else:
            results = []
            for one in workloads:
                data = prepared(spark, one, folder, chosen.events, size)
                results.append(compared(data, chosen.runs, chosen.cores))
                tell(console, results[-1])
            show(console, results)


def _version() -> str:
    import pyspark  # noqa: PLC0415

    return str(pyspark.__version__)


if __name__ == "__main__":
    main()
