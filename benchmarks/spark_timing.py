"""How long bulk matching takes: to Spark's sink that keeps nothing, and on one thread without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow.parquet

import palio.spark
from benchmarks.spark_data import Data
from palio.cli.spark.output import quiet_session
from palio.spark.matching.bulk import match_in_memory

_BATCH = 10_000  # events, as Spark sends them


def new_session(cores: int) -> Any:
    return quiet_session(f"local[{cores}]", name="palio bench", settings={"spark.driver.memory": "4g"})


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


def timed_build(data: Data) -> tuple[float, Any]:
    """Seconds for parsing and building, and the shards."""
    started = time.perf_counter()
    shards = palio.spark.build_shards(data.subscriptions)
    return time.perf_counter() - started, shards


def single_thread(data: Data, runs: int) -> tuple[float, int]:
    """Seconds for the same events and pairs on one thread, all in memory; and how many pairs."""
    filters = pyarrow.parquet.read_table(data.filters_path)
    index = palio.MatchIndex(enumerate(filters.column("filter").to_pylist()))
    ids = filters.column("subscription_id").combine_chunks()
    batches = pyarrow.parquet.read_table(data.events_path).combine_chunks().to_batches(max_chunksize=_BATCH)
    pairs = 0

    def once() -> float:
        nonlocal pairs
        started = time.perf_counter()
        pairs = sum(batch.num_rows for batch in match_in_memory(index, ids, batches))
        return time.perf_counter() - started

    return best(runs, once), pairs
