"""Bulk matching on Spark beside Spark's own join: `python -m benchmarks.spark --workload stock`.

All in one session on this machine. Events lie in a Parquet file that both sides read; both write the pairs, two
longs each, to Spark's `noop` sink, and both count them and sum up their hashes on the way, which must give the
same. The join is what one would write in SQL: each subscription a row with the low and high end of every
attribute that it constrains, null elsewhere, and one predicate over all of them. Both take events as they lie
where that is even, and else spread them first, as `palio spark match` does.

The first table is about `--events`, as many as the join can do in less than a minute:

- `bulk`: events against shards that are there; building them (`build`) includes parsing the filters.
- `join`: the cross join. The bar is how many times as long it must take.

The second is about throughput, so about more events (`--many`) than the join could do, beside the few:

- `bulk`: the same without counting.
- `allowed`: what one thread takes for the same events and pairs in memory, by the number of cores, 3 µs for
  each event and 0.2 µs for each pair.
- the ceiling: a `mapInArrow` over the same events that emits as many pairs and does nothing else. Where output
  dominates, bulk matching must reach half of it.
- `a job` and `an event`: what a job takes whatever it does, and what each event adds, by the few and the many.

`--memory` measures instead what the Python workers of two cores hold together, building included, at a million
subscriptions; `--growth` how time goes with events, subscriptions and cores; `--archive` how fast a journal
becomes a lake. Times are the best of `--runs`; the join runs once.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import palio.spark
from benchmarks import spark_archive, spark_growth, spark_memory
from benchmarks.spark_data import Data, cross_join, emitting, prepared
from benchmarks.spark_timing import (
    best,
    new_session,
    single_thread,
    timed_build,
    write,
    write_counted,
)
from benchmarks.workloads import WORKLOADS, Workload
from palio.cli.bench.measuring import duration, machine, show_setup

EVENTS = 100_000
MANY = {"stock": 1_000_000, "ranges": 300_000, "equality": 1_000_000}
ARCHIVED = 1_000_000
SUBSCRIPTIONS = 10_000
MANY_SUBSCRIPTIONS = 1_000_000
BARS = {"stock": 10, "ranges": 5, "equality": 50}
CEILING_BAR = 0.5
_PER_EVENT, _PER_PAIR = 3e-6, 0.2e-6


@dataclass
class Joined:
    """Bulk matching and the join, in seconds."""

    data: Data
    pairs: int
    build: float
    bulk: float
    join: float

    @property
    def ratio(self) -> float:
        return self.join / self.bulk


@dataclass
class Alone:
    """Bulk matching, one thread, and emitting alone, in seconds."""

    data: Data
    pairs: int
    bulk: float
    thread: float
    ceiling: float
    cores: int

    @property
    def output_dominates(self) -> bool:
        """Whether more time is allowed for pairs than for events: else there is no bar of the ceiling."""
        return _PER_PAIR * self.pairs > _PER_EVENT * self.data.rows

    @property
    def allowed(self) -> float:
        return self.thread / self.cores + _PER_EVENT * self.data.rows + _PER_PAIR * self.pairs


def joined(data: Data, shards: Any, build: float, runs: int, cores: int) -> Joined:
    found = palio.spark.match(data.events, shards, partitions=data.partitions)
    write(found)
    bulk, seen = min(write_counted(found) for _ in range(runs))
    join, theirs = write_counted(cross_join(data, cores))
    assert seen == theirs, f"{data.workload.name}: bulk matching gives {seen}, the join {theirs}."
    return Joined(data, seen[0], build, bulk, join)


def alone(data: Data, shards: Any, runs: int, cores: int) -> Alone:
    found = palio.spark.match(data.events, shards, partitions=data.partitions)
    _, (pairs, _) = write_counted(found)
    bulk = best(runs, lambda: write(found))
    thread, theirs = single_thread(data, runs)
    assert pairs == theirs, f"{data.workload.name}: one thread gives {theirs} pairs, Spark {pairs}."
    emitted = emitting(data, pairs, cores)
    return Alone(data, pairs, bulk, thread, best(runs, lambda: write(emitted)), cores)


def tell_joined(console: Console, one: Joined) -> None:
    """While the rest is still being measured."""
    console.print(
        f"{one.data.workload.name}, {one.data.rows:,} events: {duration(one.bulk)}, "
        f"the join {duration(one.join)}: {one.ratio:,.0f} times as fast"
    )


def tell_alone(console: Console, one: Alone) -> None:
    console.print(
        f"{one.data.workload.name}, {one.data.rows:,} events: {duration(one.bulk)}, allowed "
        f"{duration(one.allowed)}; one thread {duration(one.thread)}, emitting alone {duration(one.ceiling)}"
    )


def show_joined(console: Console, results: Sequence[Joined]) -> None:
    shown = Table(
        title="Bulk matching and Spark's cross join, both to the noop sink; pairs and checksums are equal"
    )
    for name in (
        *("workload", "events", "filters", "pairs/event", "build", "bulk", "join", "times as fast (bar)"),
        *("with building", "the join's rate"),
    ):
        shown.add_column(name, justify="left" if name == "workload" else "right")
    for one in results:
        data = one.data
        shown.add_row(
            data.workload.name, f"{data.rows:,}", f"{data.size:,}", f"{one.pairs / data.rows:,.1f}",
            duration(one.build), duration(one.bulk), duration(one.join),
            _judged(f"{one.ratio:,.0f} ({BARS[data.workload.name]})", one.ratio >= BARS[data.workload.name]),
            f"{one.join / (one.bulk + one.build):,.0f}", f"{data.rows * data.size / one.join / 1e6:,.0f} M/s",
        )  # fmt: skip
    console.print(shown)


def show_alone(console: Console, results: Sequence[tuple[Alone, Alone]]) -> None:
    shown = Table(title="Bulk matching and what it may take, without counting")
    for name in (
        *("workload", "events", "one thread", "allowed", "bulk", "events/s", "pairs/s"),
        *("of the ceiling (bar)", "a job", "an event"),
    ):
        shown.add_column(name, justify="left" if name == "workload" else "right")
    for few, many in results:
        fixed, slope = spark_growth.line((few.data.rows, few.bulk), (many.data.rows, many.bulk))
        for one, said in ((few, ("", "")), (many, (duration(fixed), duration(slope)))):
            share = one.ceiling / one.bulk
            shown.add_row(
                one.data.workload.name, f"{one.data.rows:,}", duration(one.thread), duration(one.allowed),
                _judged(duration(one.bulk), one.bulk <= one.allowed), f"{one.data.rows / one.bulk:,.0f}",
                f"{one.pairs / one.bulk / 1e6:,.1f} M",
                _judged(f"{share:.0%} ({CEILING_BAR:.0%})", share >= CEILING_BAR)
                if one.output_dominates
                else f"{share:.0%}",
                *said,
            )  # fmt: skip
    console.print(shown)


def _judged(text: str, met: bool) -> str:
    return f"[green]{text} ✓[/]" if met else f"[red]{text} ✗[/]"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="palio bench spark",
        description="Measure bulk matching on Spark beside Spark's own cross join; some minutes in all.",
    )
    parser.add_argument("--workload", choices=WORKLOADS, action="append", help="one of them; all by default")
    parser.add_argument("--events", type=int, help=f"events for the join; {EVENTS:,} by default")
    parser.add_argument("--many", type=int, help="events for the rest; some hundred thousand by default")
    parser.add_argument(
        "--parts", nargs="+", choices=("join", "rest"), default=["join", "rest"], help="both tables by default"
    )
    parser.add_argument("--subscriptions", type=int, help=f"{SUBSCRIPTIONS:,} by default")
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--runs", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--folder", type=Path, help="where workloads are kept for the next time")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--memory", action="store_true", help="what the Python workers hold at a million")
    instead.add_argument("--growth", action="store_true", help="time by events, subscriptions and cores")
    instead.add_argument("--archive", action="store_true", help="how fast a journal becomes a lake")
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
            rows = chosen.events or EVENTS
            spark_growth.run(console, workload, folder, rows=rows, size=size, runs=chosen.runs)
        return
    with new_session(chosen.cores) as spark:
        if chosen.archive:
            spark_archive.run(console, spark, folder, chosen.events or ARCHIVED)
        elif chosen.memory:
            spark_memory.run(console, spark, folder, chosen.subscriptions or MANY_SUBSCRIPTIONS)
        else:
            _compare(console, spark, workloads, chosen, folder)


def _compare(
    console: Console, spark: Any, workloads: Sequence[Workload], chosen: argparse.Namespace, folder: Path
) -> None:
    few = chosen.events or EVENTS
    size = chosen.subscriptions or SUBSCRIPTIONS
    with_join: list[Joined] = []
    without: list[tuple[Alone, Alone]] = []
    for workload in workloads:
        many = chosen.many or (4 * few if chosen.events else MANY[workload.name])
        some, more = (prepared(spark, workload, folder, rows, size) for rows in (few, many))
        timed_build(some)  # the first time everything has to warm up
        build, shards = timed_build(some)
        runs, cores = chosen.runs, chosen.cores
        if "join" in chosen.parts:
            with_join.append(joined(some, shards, build, runs, cores))
            tell_joined(console, with_join[-1])
        if "rest" in chosen.parts:
            at_length = alone(more, shards, runs, cores)  # first, as Java gets faster with what it has done
            tell_alone(console, at_length)
            without.append((alone(some, shards, runs, cores), at_length))
    if with_join:
        show_joined(console, with_join)
    if without:
        show_alone(console, without)


def _version() -> str:
    import pyspark  # noqa: PLC0415

    return str(pyspark.__version__)


if __name__ == "__main__":
    main()
