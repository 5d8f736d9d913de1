"""How fast the index finds who wants an event: `python -m benchmarks.matching --filters 100000`.

Beside the index, in the same run and on one thread like it, the classic counting matcher in plain C, whose
number of matches must be the same. Filters are made from values, past the parser (`parse` says what that would
have taken). A batch is a table of `--events` rows, matched again and again; single events are notifications.
Both get their results as the caller would: two Arrow arrays, or a list of ids.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

import palio
from benchmarks.counting import Yardstick
from benchmarks.workloads import WORKLOADS, FilterMaker, Workload, events, filter_text, subscriptions, table

SIZES = (10_000, 100_000, 1_000_000)
EVENTS = 256
RUNS = 7
SINGLE_EVENTS = 256
CHANGES = 10_000
PARSED = 2_000


@dataclass
class Measured:
    """All times in microseconds, per event or per filter; build in seconds."""

    workload: str
    filters: int
    matches: float
    yardstick: float | None
    batch: float
    single: float
    single_p50: float
    single_p99: float
    ids: float
    build: float
    parse: float
    add: float
    remove: float
    bytes: float

    @property
    def ratio(self) -> float | None:
        return None if self.yardstick is None else self.yardstick / self.batch


def measure(workload: Workload, sizes: Sequence[int], rows: int = EVENTS) -> list[Measured]:
    """One workload at each size. Raises AssertionError if the yardstick finds another number of matches."""
    largest = subscriptions(workload, max(sizes))
    levels = events(workload, rows)
    maker = FilterMaker(workload)
    gc.collect()
    gc.disable()  # a million filters are many objects, none of which is ever garbage
    try:
        filters = [maker.make(largest, index) for index in range(max(sizes))]
        return [_measure(workload, filters[:size], size, levels) for size in sizes]
    finally:
        gc.enable()


def _measure(workload: Workload, filters: list[palio.Filter], size: int, levels: Any) -> Measured:
    drawn = subscriptions(workload, size)
    batch = table(workload, levels)
    start = time.perf_counter()
    index = palio.MatchIndex(enumerate(filters))
    build = time.perf_counter() - start
    taken = index.statistics()

    yardstick = _yardstick(workload, drawn)
    sample = levels[: max(8, min(len(levels), 100_000_000 // size))]
    times, counting_times = [], []
    for _ in range(RUNS):  # turn by turn, so that a busy machine is busy for both
        if yardstick is not None:
            counted, seconds = yardstick.match(sample)
            counting_times.append(seconds / len(sample))
        start = time.perf_counter()
        rows, _ids = index.match_batch(batch)
        times.append((time.perf_counter() - start) / len(levels))
    if yardstick is not None:
        found = sum(row < len(sample) for row in rows.to_pylist())
        assert found == counted, f"The index finds {found} matches, the yardstick {counted}."

    notifications = [palio.Notification.of_values(row) for row in batch.slice(0, SINGLE_EVENTS).to_pylist()]
    singles, listing = [], 0.0
    for one in notifications:
        start = time.perf_counter()
        ids = index.match(one)
        singles.append(time.perf_counter() - start)
        start = time.perf_counter()
        list(ids)  # what a list of so many ids costs by itself
        listing += time.perf_counter() - start
    singles.sort()

    changed = range(0, size, max(1, size // CHANGES))
    start = time.perf_counter()
    for id in changed:
        index.remove(id)
    removing = time.perf_counter() - start
    start = time.perf_counter()
    for id in changed:
        index.add(id, filters[id])
    adding = time.perf_counter() - start

    texts = [filter_text(workload, drawn, number) for number in range(min(size, PARSED))]
    start = time.perf_counter()
    for text in texts:
        palio.Filter.parse(text)
    parsing = time.perf_counter() - start
    micro = 1e6
    return Measured(
        workload=workload.name,
        filters=size,
        matches=len(rows) / len(levels),
        yardstick=min(counting_times) * micro if counting_times else None,
        batch=min(times) * micro,
        single=statistics.fmean(singles) * micro,
        single_p50=singles[len(singles) // 2] * micro,
        single_p99=singles[int(len(singles) * 0.99)] * micro,
        ids=listing / len(singles) * micro,
        build=build,
        parse=parsing / len(texts) * micro,
        add=adding / len(changed) * micro,
        remove=removing / len(changed) * micro,
        bytes=taken.index_bytes / size if hasattr(taken, "index_bytes") else float("nan"),
    )


def _yardstick(workload: Workload, drawn: Any) -> Yardstick | None:
    try:
        return Yardstick(workload, drawn)
    except FileNotFoundError:
        return None


_COLUMNS = (
    "workload", "filters", "matches", "counting µs", "batch µs", "ratio", "single µs", "p50", "p99", "ids µs",
    "build s", "parse µs", "add µs", "remove µs", "bytes",
)  # fmt: skip


def run(
    workloads: Sequence[str] = tuple(WORKLOADS),
    sizes: Sequence[int] = SIZES,
    rows: int = EVENTS,
    console: Console | None = None,
) -> list[Measured]:
    """Measure and print; returns what was measured."""
    console = console or Console(width=150)
    shown = Table(title="Matching: per event; one thread each; best of several runs")
    for name in _COLUMNS:
        shown.add_column(name, justify="left" if name == "workload" else "right")
    results: list[Measured] = []
    for name in workloads:
        for one in measure(WORKLOADS[name], sizes, rows):
            results.append(one)
            counting = "–" if one.yardstick is None else f"{one.yardstick:,.0f}"
            ratio = "–" if one.ratio is None else f"{one.ratio:.1f}"
            numbers = (one.single, one.single_p50, one.single_p99, one.ids)
            shown.add_row(
                one.workload, f"{one.filters:,}", f"{one.matches:,.1f}", counting, f"{one.batch:.1f}", ratio,
                *(f"{number:.1f}" for number in numbers), f"{one.build:.2f}", f"{one.parse:.0f}",
                f"{one.add:.1f}", f"{one.remove:.1f}", f"{one.bytes:.0f}",
            )  # fmt: skip
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"tables of {rows} events; "
        f"index: {palio.MatchIndex.__module__}"
    )
    console.print(shown)
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filters", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--workload", nargs="+", choices=[*WORKLOADS], default=list(WORKLOADS))
    parser.add_argument("--events", type=int, default=EVENTS)
    chosen = parser.parse_args(arguments)
    run(chosen.workload, chosen.filters, chosen.events)


if __name__ == "__main__":
    main()
