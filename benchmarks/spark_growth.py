"""How bulk matching grows with events, subscriptions and cores: `palio bench spark --growth`.

One of the three is changed at a time. A line through the times for few and for many events says what a job
costs whatever it does, and what each event costs beside that.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

import palio.spark
from benchmarks.spark_data import prepared
from benchmarks.spark_timing import best, new_session, timed_build, write, write_counted
from benchmarks.workloads import Workload
from palio.cli.bench.measuring import duration


def run(console: Console, workload: Workload, folder: Path, *, rows: int, size: int, runs: int) -> None:
    shown = Table(title=f"Growth: {workload.name}")
    for name in ("cores", "events", "subscriptions", "build", "bulk", "µs/event", "pairs/event", "ns/pair"):
        shown.add_column(name, justify="right")
    taken: dict[tuple[int, int, int], float] = {}
    for cores, many, filters in (
        (2, rows // 4, size),
        (2, rows, size),
        (2, rows * 4, size),
        (2, rows, size // 10),
        (2, rows, size * 10),
        (1, rows, size),
        (1, rows * 4, size),
    ):
        with new_session(cores) as spark:
            data = prepared(spark, workload, folder, many, filters)
            timed_build(data)  # the first time everything has to warm up
            build, shards = timed_build(data)
            found = palio.spark.match(data.events, shards, partitions=data.partitions)
            _, (pairs, _) = write_counted(found)
            bulk = best(runs, lambda found=found: write(found))  # type: ignore[misc]
        taken[cores, many, filters] = bulk
        shown.add_row(
            str(cores), f"{many:,}", f"{filters:,}", duration(build), duration(bulk),
            f"{bulk / many * 1e6:,.1f}", f"{pairs / many:,.1f}", f"{bulk / max(pairs, 1) * 1e9:,.0f}",
        )  # fmt: skip
    console.print(shown)
    for cores in (2, 1):
        fixed, slope = line((rows, taken[cores, rows, size]), (rows * 4, taken[cores, rows * 4, size]))
        console.print(f"{cores} at a time: {duration(fixed)} a job, and {duration(slope)} an event")


def line(few: tuple[int, float], many: tuple[int, float]) -> tuple[float, float]:
    """The seconds of a job without events, and of each event, from those for few and for many."""
    slope = (many[1] - few[1]) / (many[0] - few[0])
    return max(0.0, few[1] - slope * few[0]), slope
