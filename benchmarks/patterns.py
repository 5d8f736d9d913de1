"""How long patterns take: `palio bench patterns [--events N] [--keys K] [--quick]`.

Events have a kind (one of twenty), a symbol (one of a million) and a price, and lie in Parquet files. A
pattern is `A[kind = …] then B[kind = … and price > …] within 5 min by symbol`; with more patterns, each has
limits of its own. Three ways to find them are measured on all cores:

- in a table (`find_patterns` on a DataFrame): events per second for 1, 100 and 10 thousand patterns in one
  pass,
- in a stream, with checkpoints: the same, file by file, without the first file, in which everything starts,
- the plain detector in one process, without Spark.

The yardstick is a self-join in Spark SQL, for one pattern: events of the first kind joined with those of the
second by symbol, with the window as a condition. It gives every pair, where a pattern has order, consumption
and windows. For more patterns it has to be done once for each; that is measured for a few and multiplied.

Nothing is written: results go to Spark's `noop`. Each way is done once before it is measured.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from rich.console import Console
from rich.table import Table

from palio.matching.patterns import Detector, PatternSet
from palio.model.notification import Notification
from palio.spark.patterns import find_patterns
from palio.spark.session import session

KINDS = 20
RATE = 20_000  # events a second of the time that they tell: a window has six million, so nothing expires
WINDOW = 300
PRICES = 100
JOINS = 3  # that stand for a hundred
MOST_PLAIN = 200_000


class Choice(msgspec.Struct, frozen=True):
    """What one pattern is about: two kinds, and prices between two limits.

    Several patterns share the kinds and divide the prices among them, so that an event is a hit of one at most.
    """

    first: str
    second: str
    low: float
    high: float

    @staticmethod
    def of(number: int, count: int) -> Choice:
        pair, place = number % (KINDS // 2), number // (KINDS // 2)
        width = PRICES / max(1, count // (KINDS // 2))
        return Choice(f"k{2 * pair}", f"k{2 * pair + 1}", place * width, (place + 1) * width)

    def pattern(self) -> str:
        price = f"price >= {self.low} and price < {self.high}"
        return (
            f'A[kind = "{self.first}" and {price}] then B[kind = "{self.second}" and {price}] '
            f"within {WINDOW} s by symbol"
        )

    def self_join(self, events: Any) -> Any:
        price = f"price >= {self.low} and price < {self.high}"
        a = events.where(f"kind = '{self.first}' and {price}").alias("a")
        b = events.where(f"kind = '{self.second}' and {price}").alias("b")
        after = (f.col("b.time") > f.col("a.time")) & (f.col("b.position") > f.col("a.position"))
        soon = f.col("b.time") <= f.col("a.time") + f.expr(f"interval {WINDOW} seconds")
        joined = a.join(b, (f.col("a.symbol") == f.col("b.symbol")) & after & soon)
        return joined.select(
            "a.symbol", f.col("a.position").alias("first"), f.col("b.position").alias("second")
        )


def patterns(count: int) -> dict[str, str]:
    return {f"p{number}": Choice.of(number, count).pattern() for number in range(count)}


def write_events(folder: Path, count: int, keys: int, files: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    folder.mkdir()
    size = count // files
    for number in range(files):
        at = np.arange(number * size, (number + 1) * size)
        table = pa.table(
            {
                "kind": pa.array([f"k{one}" for one in range(KINDS)]).take(
                    pa.array(chance.integers(0, KINDS, size))
                ),
                "symbol": pa.array(np.char.add("s", chance.integers(0, keys, size).astype(str))),
                "price": pa.array(chance.uniform(0, PRICES, size)),
                "time": pa.array(at * (1_000_000 // RATE), pa.int64()).cast(pa.timestamp("us", "UTC")),
                "position": pa.array(at),
            }
        )
        pq.write_table(table, folder / f"{number:04}.parquet")


def seconds(action: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def several_joins(events: Any, count: int) -> float:
    """Seconds for as many self-joins as patterns."""
    some = [Choice.of(number, count).self_join(events) for number in range(JOINS)]
    for one in some:
        discard(one)
    return seconds(lambda: [discard(one) for one in some], 1) * count / JOINS


def discard(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def streamed(spark: Any, source: Path, schema: Any, chosen: dict[str, str], buckets: int) -> tuple[float, int]:
    """Events a second behind the first file, and the bytes of state at the end."""
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    checkpoint = tempfile.mkdtemp()
    try:
        query = (
            find_patterns(events, chosen, buckets=buckets, skew=None)
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [one for one in query.recentProgress if one["numInputRows"]][1:]
        rows = sum(one["numInputRows"] for one in batches)
        spent = sum(one["durationMs"]["triggerExecution"] for one in batches) / 1_000
        state = batches[-1]["stateOperators"][0]["memoryUsedBytes"] if batches else 0
        return rows / spent if spent else 0.0, state
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)


def plain(ready: PatternSet, events: list[Notification]) -> float:
    detector = Detector(ready)
    step = 1_000_000 // RATE
    started = time.perf_counter()
    for position, event in enumerate(events):
        detector.take(event, time=position * step, position=position)
        if position % 10_000 == 0:
            detector.advance(position * step - 1)
    detector.close()
    return len(events) / (time.perf_counter() - started)


def plain_events(count: int, keys: int, seed: int) -> list[Notification]:
    chance = random.Random(seed)
    return [
        Notification.of_values(
            {
                "kind": f"k{chance.randrange(KINDS)}",
                "symbol": f"s{chance.randrange(keys)}",
                "price": chance.uniform(0, PRICES),
            }
        )
        for _ in range(count)
    ]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="palio bench patterns", description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=2_000_000, help="events in the table")
    parser.add_argument("--keys", type=int, default=1_000_000, help="symbols that they have")
    parser.add_argument("--patterns", type=int, nargs="+", default=[1, 100, 10_000], help="how many at once")
    parser.add_argument("--files", type=int, default=8, help="Parquet files, and small batches of the stream")
    parser.add_argument("--rounds", type=int, default=2, help="the best of so many is taken")
    parser.add_argument("--buckets", type=int, default=16, help="buckets of the stream's state")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", default=["plain", "table", "stream"], help="what to measure")
    parser.add_argument("--quick", action="store_true", help="a tenth of it all, to see that it runs")
    options = parser.parse_args(words)
    if options.quick:
        options.events, options.keys, options.patterns = 100_000, 50_000, [1, 20]
        options.files, options.rounds = 4, 1
    console = Console()
    console.print(
        f"{options.events:,} events, {options.keys:,} symbols, {KINDS} kinds, windows of {WINDOW} s; "
        f"seed {options.seed}"
    )
    table = Table("patterns", "way", "events/s", "against the self-join", title="Finding patterns")
    if "plain" in options.ways:
        for count in options.patterns:
            measure_plain(count, options, table)
    if {"table", "stream"} & {*options.ways}:
        measure_spark(options, table)
    console.print(table)


def measure_plain(count: int, options: argparse.Namespace, table: Table) -> None:
    events = plain_events(min(options.events, MOST_PLAIN), options.keys, options.seed)
    ready = PatternSet(patterns(count))
    ready.index.match(events[0])
    table.add_row(f"{count:,}", "plain detector", f"{plain(ready, events):,.0f}", "")


def measure_spark(options: argparse.Namespace, table: Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "events"
        write_events(source, options.events, options.keys, options.files, options.seed)
        settings = {
            "spark.sql.shuffle.partitions": "4",
            "spark.driver.memory": "4g",
            "spark.local.dir": folder,
            "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        }
        with session("local[*]", name="palio bench patterns", settings=settings) as spark:
            measure(spark, source, options, table)


def measure(spark: Any, source: Path, options: argparse.Namespace, table: Table) -> None:
    events = spark.read.parquet(str(source))
    if "table" in options.ways:
        alone = Choice.of(0, 1).self_join(events)
        discard(alone)
        joined = seconds(lambda: discard(alone), options.rounds)
        table.add_row("1", "self-join", f"{options.events / joined:,.0f}", "")
    for count in options.patterns:
        chosen = patterns(count)
        if "table" in options.ways:
            find = partial(find_patterns, events, chosen)
            discard(find())
            spent = seconds(lambda find=find: discard(find()), options.rounds)  # type: ignore[misc]
            yardstick = joined if count == 1 else several_joins(events, count)
            said = f"{yardstick / spent:.2f} times as fast"
            if count > 1:
                said += f" as {count:,} of them ({JOINS} measured)"
            table.add_row(f"{count:,}", "table", f"{options.events / spent:,.0f}", said)
        if "stream" in options.ways:
            rate, state = streamed(spark, source, events.schema, chosen, options.buckets)
            table.add_row(f"{count:,}", "stream", f"{rate:,.0f}", f"state {state / 1e6:,.1f} MB at the end")


if __name__ == "__main__":
    main()
