"""How long patterns take: `palio bench patterns [--events N] [--keys K] [--quick]`.

Events have a kind (one of twenty), a symbol (one of a million) and a price, and lie in Parquet files. A
pattern is `A[kind = …] then B[kind = … and price > …] within 5 min by symbol`; with more patterns, each has
limits of its own. Three ways to find them are measured on all cores:

- in a table (`find_patterns` on a DataFrame): events per second for 1, 100 and 10 thousand patterns in one
  pass,
- in a stream, with checkpoints: the same, file by file, without the first file, in which everything starts,
- the plain detector in one process, without Spark.

With `--ways keys long` a stream that remembers a million keys, and one that goes on for many windows
(`patterns_state`); with `--growth` tables of fewer and more events and symbols.

The yardstick is a self-join in Spark SQL, for one pattern: events of the first kind joined with those of the
second by symbol, with the window as a condition. It gives every pair, where a pattern has order, consumption
and windows. For more patterns it has to be done once for each; that is measured for a few and multiplied.
That of the plain detector, which has no Spark, is to match the events and no more.

Nothing is written: results go to Spark's `noop`. Everything is done once before it is measured, joins, too.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.patterns_data import KINDS, PRICES, RATE, WINDOW, Choice, write_events
from benchmarks.patterns_state import long_run, many_keys, rate, run_stream
from palio.cli.spark.output import quiet_session
from palio.matching.patterns import Detector, PatternSet
from palio.model.notification import Notification
from palio.spark.patterns.finding import find_patterns

WAYS = ("plain", "table", "stream", "keys", "long")
JOINS = 3  # that stand for a hundred
MOST_PLAIN = 200_000


def patterns(count: int) -> dict[str, str]:
    return {f"p{number}": Choice.of(number, count).pattern() for number in range(count)}


def seconds(action: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def several_joins(events: Any, count: int, rounds: int) -> float:
    """Seconds for as many self-joins as patterns, of which some are done."""
    some = [Choice.of(number, count).self_join(events) for number in range(JOINS)]
    for one in some:
        discard(one)
    return seconds(lambda: [discard(one) for one in some], rounds) * count / JOINS


def discard(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


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


def matching_alone(ready: PatternSet, events: list[Notification]) -> float:
    """Events per second of what every detector begins with: which steps an event is a hit of."""
    started = time.perf_counter()
    for event in events:
        ready.index.match(event)
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
    parser.add_argument(
        "--ways", nargs="+", default=["plain", "table", "stream", "keys"], choices=WAYS, help="what to measure"
    )
    parser.add_argument("--long", type=int, default=10_000_000, help="events of the way `long`")
    parser.add_argument("--growth", action="store_true", help="tables of fewer and more events and symbols")
    parser.add_argument("--quick", action="store_true", help="a tenth of it all, to see that it runs")
    options = parser.parse_args(words)
    if options.quick:
        options.events, options.keys, options.patterns = 100_000, 50_000, [1, 20]
        options.files, options.rounds, options.long = 4, 1, 300_000
    console = Console(width=120)
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"{options.events:,} events, {options.keys:,} symbols, {KINDS} kinds, windows of {WINDOW} s; "
        f"seed {options.seed}"
    )
    table = Table("patterns", "way", "events/s", "beside", title="Finding patterns")
    if "plain" in options.ways:
        for count in options.patterns:
            measure_plain(count, options, table)
    if {*WAYS[1:]} & {*options.ways} or options.growth:
        measure_spark(console, options, table)
    if table.row_count:
        console.print(table)


def measure_plain(count: int, options: argparse.Namespace, table: Table) -> None:
    events = plain_events(min(options.events, MOST_PLAIN), options.keys, options.seed)
    ready = PatternSet(patterns(count))
    ready.index.match(events[0])
    found, matched = plain(ready, events), matching_alone(ready, events)
    said = f"{found / matched:.2f} times as fast as matching alone: {matched:,.0f}"
    table.add_row(f"{count:,}", "plain detector", f"{found:,.0f}", said)


def measure_spark(console: Console, options: argparse.Namespace, table: Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "spark.sql.shuffle.partitions": "4",
            "spark.driver.memory": "4g",
            "spark.local.dir": folder,
            "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        }
        with quiet_session("local[*]", name="palio bench patterns", settings=settings) as spark:
            more = {"keys": options.keys, "buckets": options.buckets, "seed": options.seed}
            if options.growth:
                growth(console, spark, Path(folder), options)
                return
            if {"table", "stream"} & {*options.ways}:
                source = Path(folder) / "events"
                write_events(source, options.events, options.keys, options.files, options.seed)
                measure(spark, source, options, table)
            if "keys" in options.ways:
                many_keys(console, spark, Path(folder), count=options.events, **more)
            if "long" in options.ways:
                long_run(console, spark, Path(folder), count=options.long, **more)


def growth(console: Console, spark: Any, folder: Path, options: argparse.Namespace) -> None:
    """One pattern in a table, beside the self-join, by events and by symbols."""
    table = Table("events", "symbols", "pattern", "self-join", "times as fast", title="Growth: one pattern")
    for number, (events, keys) in enumerate(
        (
            (options.events // 4, options.keys),
            (options.events, options.keys),
            (options.events * 2, options.keys),
            (options.events, options.keys // 100),
        )
    ):
        source = folder / f"growth-{number}"
        write_events(source, events, keys, options.files, options.seed)
        frame = spark.read.parquet(str(source))
        spent = both(frame, Choice.of(0, 1), options.rounds)
        table.add_row(
            f"{events:,}", f"{keys:,}", *(f"{events / one:,.0f} events/s" for one in spent),
            f"{spent[1] / spent[0]:.2f}",
        )  # fmt: skip
    console.print(table)


def both(events: Any, choice: Choice, rounds: int) -> list[float]:
    """Seconds for one pattern in a table, and for the self-join."""
    spent = []
    for way in (partial(find_patterns, events, {"p": choice.pattern()}), partial(choice.self_join, events)):
        discard(way())
        spent.append(seconds(lambda way=way: discard(way()), rounds))  # type: ignore[misc]
    return spent


def measure(spark: Any, source: Path, options: argparse.Namespace, table: Table) -> None:
    events = spark.read.parquet(str(source))
    if "table" in options.ways and 1 in options.patterns:
        for name, choice in (("table", Choice.of(0, 1)), ("table, ranges alone", Choice.of_prices())):
            ours, joined = both(events, choice, options.rounds)
            said = f"{joined / ours:.2f} times as fast as the self-join: {options.events / joined:,.0f}"
            table.add_row("1", name, f"{options.events / ours:,.0f}", said)
    for count in options.patterns:
        chosen = patterns(count)
        if "table" in options.ways and count > 1:
            find = partial(find_patterns, events, chosen)
            discard(find())
            spent = seconds(lambda find=find: discard(find()), options.rounds)  # type: ignore[misc]
            joined = several_joins(events, count, options.rounds)
            said = f"{joined / spent:.2f} times as fast as {count:,} self-joins ({JOINS} measured)"
            table.add_row(f"{count:,}", "table", f"{options.events / spent:,.0f}", said)
        if "stream" in options.ways:
            steps = run_stream(spark, source, chosen, buckets=options.buckets, counted=True)
            said = f"{steps[-1].keys:,} keys remembered at the end, {steps[-1].size / 1e6:,.1f} MB"
            table.add_row(f"{count:,}", "stream", f"{rate(steps[1:]):,.0f}", said)


if __name__ == "__main__":
    main()
