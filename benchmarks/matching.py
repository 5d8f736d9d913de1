"""How fast the index finds who wants an event: `palio bench matching --filters 100000`.

Beside the index, in the same run and on one thread like it, the classic counting matcher in plain C, whose
number of matches must be the same; in the workload `texts` (`benchmarks/news.py`) it asks each condition about
a text by `memmem`. Filters are made from values, past the parser (`parse` says what that would
have taken). A batch is a table of `--events` rows, matched again and again; single events are notifications.
Both get their results as the caller would: two Arrow arrays, or a list of ids.

A single match may take twice the batch figure, 5 µs, and the cost of the ids returned (`allowed`). That cost is
what any engine pays that hands out the caller's objects. Three ways to take exactly these objects, by position
from a list of all, into a new list:

- `ids`: in one loop of C, one after the other. Measured between the single matches, each time for the ids of
  an event half the list away, so that they are as far from the caches as the match finds its own. The bar
  counts this.
- `fetched`: the same, but asking for each object some places ahead, as the index does itself.
- `warm`: a copy of the list just returned, whose objects are in the caches. Less is not possible.

`met` says with which of the three the bar is met: warm is the strictest, then fetched, then ids. Like the
batch, all events are matched several times, and the time is that of the best round.

`parse` is measured while all filters are alive, with the garbage collector off as for everything else here:
that it now and then walks through a million objects is a matter of the program that keeps them. It is the best
of three rounds.

`--texts` measures filters of other conditions (`benchmarks/texts.py`).

`--beside` measures conditions about texts and lists beside what they are measured by (`benchmarks/beside.py`).

`--threads` measures instead how much faster two threads match two tables than one thread does both, turn by
turn.

`--shares` measures instead how the time goes with the share of filters that match: five ranges a filter, all of
the one width that gives the share.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import palio
from benchmarks import beside, news
from benchmarks import texts as other_conditions
from benchmarks.counting import Yardstick
from benchmarks.workloads import WORKLOADS, FilterMaker, Workload, events, filter_text, subscriptions, table

try:
    from palio.matching.core import pick as _pick
except ImportError:  # without the compiled core there is nothing to ask ahead with

    def _pick(ids: list[Any], slots: Any) -> list[Any]:
        return [ids[slot] for slot in slots.tolist()]


SIZES = (10_000, 100_000, 1_000_000)
EVENTS = 256
RUNS = 7
SINGLE_EVENTS = 256
CHANGES = 10_000
PARSED = 2_000
SINGLE_EXTRA = 5.0  # µs that a single match may take beyond twice the batch figure and its ids
NAMES = (*WORKLOADS, "texts")
# What the yardstick looks at in a run: events times filters, and at the least so many events.
COUNTED_ROWS = 100_000_000
ASKED_LEAST = 8
SHARES = (0.0001, 0.001, 0.01, 0.1)
SHARE_SIZE = 100_000
THREAD_ROWS = 4_096  # long enough for handing a table to a thread not to count


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
    fetched_ids: float
    warm_ids: float
    build: float
    parse: float
    add: float
    remove: float
    bytes: float

    @property
    def ratio(self) -> float | None:
        return None if self.yardstick is None else self.yardstick / self.batch

    @property
    def allowed(self) -> float:
        """What a single match may take."""
        return 2 * self.batch + SINGLE_EXTRA + self.ids

    @property
    def met(self) -> str:
        own = self.single - (self.allowed - self.ids)
        costs = {"warm": self.warm_ids, "fetched": self.fetched_ids, "ids": self.ids}
        return next((name for name, cost in costs.items() if own <= cost), "no")


@dataclass
class Case:
    """A workload at one size: filters, events as a table, and what the yardstick does with so many of them."""

    name: str
    filters: list[palio.Filter]
    batch: Any
    counting: Callable[[int], tuple[int, float]] | None
    texts: list[str]


def measure(workload: Workload, sizes: Sequence[int], rows: int = EVENTS) -> list[Measured]:
    """One workload at each size. Raises AssertionError if the yardstick finds another number of matches."""
    largest = subscriptions(workload, max(sizes))
    levels = events(workload, rows)
    maker = FilterMaker(workload)

    def case(filters: list[palio.Filter], size: int) -> Case:
        drawn = subscriptions(workload, size)
        yardstick = _yardstick(lambda: Yardstick(workload, drawn))
        counting = None if yardstick is None else lambda rows: yardstick.match(levels[:rows])
        texts = [filter_text(workload, drawn, number) for number in range(min(size, PARSED))]
        return Case(workload.name, filters[:size], table(workload, levels), counting, texts)

    return _measure_all(workload.name, lambda number: maker.make(largest, number), case, sizes)


def measure_news(sizes: Sequence[int], rows: int = EVENTS) -> list[Measured]:
    """The workload `texts` at each size, as `measure` does it."""
    largest = list(news.subscriptions(max(sizes)))
    columns = news.events(rows)

    def case(filters: list[palio.Filter], size: int) -> Case:
        yardstick = _yardstick(lambda: news.AskingYardstick(largest[:size], columns))
        counting = None if yardstick is None else yardstick.match
        texts = [news.filter_text(one) for one in largest[: min(size, PARSED)]]
        return Case("texts", filters[:size], news.table(columns), counting, texts)

    return _measure_all("texts", lambda number: news.make(largest[number]), case, sizes)


def _measure_all(
    name: str,
    made: Callable[[int], palio.Filter],
    case: Callable[[list[palio.Filter], int], Case],
    sizes: Sequence[int],
) -> list[Measured]:
    gc.collect()
    gc.disable()  # a million filters are many objects, none of which is ever garbage
    try:
        filters = []
        for index in range(max(sizes)):
            if index % 10_000 == 0:
                _progress(f"{name}: {index:,} of {max(sizes):,} filters made")
            filters.append(made(index))
        return [_measure(case(filters, size)) for size in sizes]
    finally:
        _progress("")
        gc.enable()


def _progress(text: str) -> None:
    """Say what is being done on a line of its own, where somebody is looking."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _measure(case: Case) -> Measured:
    filters, batch, size = case.filters, case.batch, len(case.filters)
    _progress(f"{case.name}: building and measuring {size:,} filters")
    start = time.perf_counter()
    index = palio.MatchIndex(enumerate(filters))
    build = time.perf_counter() - start
    taken = index.statistics()

    asked = max(ASKED_LEAST, min(batch.num_rows, COUNTED_ROWS // size))
    times, counting_times = [], []
    for _ in range(RUNS):  # turn by turn, so that a busy machine is busy for both
        if case.counting is not None:
            counted, seconds = case.counting(asked)
            counting_times.append(seconds / asked)
        start = time.perf_counter()
        rows, _ids = index.match_batch(batch)
        times.append((time.perf_counter() - start) / batch.num_rows)
    if case.counting is not None:
        found = sum(row < asked for row in rows.to_pylist())
        assert found == counted, f"The index finds {found} matches, the yardstick {counted}."

    singles, ids, fetched, copied = _single(index, batch.slice(0, SINGLE_EVENTS))

    changed = range(0, size, max(1, size // CHANGES))
    start = time.perf_counter()
    for id in changed:
        index.remove(id)
    removing = time.perf_counter() - start
    start = time.perf_counter()
    for id in changed:
        index.add(id, filters[id])
    adding = time.perf_counter() - start

    texts = case.texts
    parsings = []
    for _ in range(3):
        start = time.perf_counter()
        for text in texts:
            palio.Filter.parse(text)
        parsings.append(time.perf_counter() - start)
    parsing = min(parsings)
    micro = 1e6
    return Measured(
        workload=case.name,
        filters=size,
        matches=len(rows) / batch.num_rows,
        yardstick=min(counting_times) * micro if counting_times else None,
        batch=min(times) * micro,
        single=statistics.fmean(singles) * micro,
        single_p50=singles[len(singles) // 2] * micro,
        single_p99=singles[int(len(singles) * 0.99)] * micro,
        ids=ids * micro,
        fetched_ids=fetched * micro,
        warm_ids=copied * micro,
        build=build,
        parse=parsing / len(texts) * micro,
        add=adding / len(changed) * micro,
        remove=removing / len(changed) * micro,
        bytes=taken.index_bytes / size if hasattr(taken, "index_bytes") else float("nan"),
    )


def _single(index: Any, batch: Any) -> tuple[list[float], float, float, float]:
    """Seconds for each single match, ascending; the means for taking the ids of one: plainly, fetched, warm."""
    notifications = [palio.Notification.of_values(row) for row in batch.to_pylist()]
    everything = list(index)  # ids by slot, which are the same numbers here
    objects = np.fromiter(everything, dtype=object, count=len(everything))
    found = [index.match(one) for one in notifications]
    slots = [np.array(one, dtype=np.int64) for one in found]
    short_slots = [np.array(one, dtype=np.uint32) for one in found]
    rounds, costs = [], []
    for _ in range(RUNS):
        singles, plain, fetched, warm = [], 0.0, 0.0, 0.0
        for number, one in enumerate(notifications):
            found_ids = picked = None  # giving the last results back is no part of these
            start = time.perf_counter()
            found_ids = index.match(one)
            singles.append(time.perf_counter() - start)
            start = time.perf_counter()
            copied = list(found_ids)
            warm += time.perf_counter() - start
            other = slots[(number + len(slots) // 2) % len(slots)]
            start = time.perf_counter()
            picked = objects[other]
            plain += time.perf_counter() - start
            assert len(picked) == len(other)
            picked = None
            other = short_slots[(number + len(slots) // 4) % len(slots)]
            start = time.perf_counter()
            picked = _pick(everything, other)
            fetched += time.perf_counter() - start
            assert len(picked) == len(other)
            del copied
        rounds.append(sorted(singles))
        costs.append([cost / len(singles) for cost in (plain, fetched, warm)])
    plain, fetched, warm = (min(cost) for cost in zip(*costs, strict=True))
    return min(rounds, key=sum), plain, fetched, warm


def _yardstick(made: Callable[[], Any]) -> Any:
    """The yardstick, or None where there is no compiler for it."""
    try:
        return made()
    except FileNotFoundError:
        return None


_COLUMNS = (
    "workload", "filters", "matches", "counting µs", "batch µs", "ratio", "single µs", "p50", "p99", "ids µs",
    "fetched", "warm", "allowed µs", "met", "build s", "parse µs", "add µs", "remove µs", "bytes",
)  # fmt: skip


_DEFINITIONS = """\
allowed: twice the batch figure, 5 µs, and ids.
ids: taking the same objects by position from a list of all, not in the caches, one after the other in C;
fetched: the same, asking for each some places ahead; warm: copying the list just returned.
met: the strictest of the three with which a single match stays within what is allowed."""


def run(
    workloads: Sequence[str] = NAMES,
    sizes: Sequence[int] = SIZES,
    rows: int = EVENTS,
    console: Console | None = None,
) -> list[Measured]:
    """Measure and print; returns what was measured."""
    console = console or Console(width=200)
    shown = Table(title="Matching: per event; one thread each; best of several runs")
    for name in _COLUMNS:
        shown.add_column(name, justify="left" if name == "workload" else "right")
    results: list[Measured] = []
    for name in workloads:
        for one in measure_news(sizes, rows) if name == "texts" else measure(WORKLOADS[name], sizes, rows):
            results.append(one)
            numbers = (
                one.single,
                one.single_p50,
                one.single_p99,
                one.ids,
                one.fetched_ids,
                one.warm_ids,
                one.allowed,
            )
            shown.add_row(
                one.workload, f"{one.filters:,}", f"{one.matches:,.1f}", *_beside(one),
                *(f"{number:.1f}" for number in numbers), one.met,
                f"{one.build:.2f}", f"{one.parse:.0f}",
                f"{one.add:.1f}", f"{one.remove:.1f}", f"{one.bytes:.0f}",
            )  # fmt: skip
    _machine(console, rows)
    console.print(shown)
    console.print(_DEFINITIONS)
    for name in workloads:
        sized = sorted((one for one in results if one.workload == name), key=lambda one: one.filters)
        first, last = sized[0], sized[-1]
        if first.filters < last.filters:
            console.print(
                f"{name}: from {first.filters:,} to {last.filters:,} filters, "
                f"{last.filters / first.filters:,.0f} times as many, "
                f"a batch takes {last.batch / first.batch:.1f} times as long, "
                f"a single match {last.single / first.single:.1f} times"
            )
    return results


def _beside(one: Measured) -> tuple[str, str, str]:
    """The yardstick, the index, and how many times as fast it is."""
    counting = "–" if one.yardstick is None else f"{one.yardstick:,.0f}"
    return counting, f"{one.batch:,.1f}", "–" if one.ratio is None else f"{one.ratio:.1f}"


def run_shares(
    shares: Sequence[float], size: int = SHARE_SIZE, rows: int = EVENTS, console: Console | None = None
) -> list[Measured]:
    """Measure with ranges so wide that these shares of the filters match, and print."""
    console = console or Console(width=180)
    shown = Table(title=f"Matching: ranges, {size:,} filters, by the share of them that match")
    for name in (
        "share", "found", "matches", "counting µs", "batch µs", "ratio", "ns a match",
        "single µs", "ns a match",
    ):  # fmt: skip
        shown.add_column(name, justify="right")
    ranges, results = WORKLOADS["ranges"], []
    for share in shares:
        width = share ** (1 / ranges.most)  # a value lies in each of the ranges with this probability
        (one,) = measure(replace(ranges, width=(width, width)), [size], rows)
        results.append(one)
        matches = max(one.matches, 1 / rows)
        shown.add_row(
            f"{share:.2%}", f"{one.matches / size:.3%}", f"{one.matches:,.1f}", *_beside(one),
            f"{one.batch / matches * 1000:,.1f}", f"{one.single:.1f}", f"{one.single / matches * 1000:,.1f}",
        )  # fmt: skip
    _machine(console, rows)
    console.print(shown)
    console.print("ratio: how many times as fast a batch is as the counting matcher in plain C.")
    return results


def run_threads(
    workloads: Sequence[str], size: int = SHARE_SIZE, rows: int = THREAD_ROWS, console: Console | None = None
) -> list[float]:
    """Measure two tables one after the other and by a thread each, and print; how many times as fast."""
    console = console or Console(width=120)
    shown = Table(title=f"Matching: two tables of {rows:,} events by two threads, {size:,} filters")
    for name in ("workload", "one thread µs", "two threads µs", "times as fast"):
        shown.add_column(name, justify="left" if name == "workload" else "right")
    found = []
    for name in workloads:
        index, tables = _for_threads(name, size, rows)
        together, apart = [], []
        with ThreadPoolExecutor(len(tables)) as threads:
            list(threads.map(index.match_batch, tables))  # so that both have their memory
            for _ in range(RUNS):
                start = time.perf_counter()
                matched = [len(index.match_batch(one)[0]) for one in tables]
                apart.append(time.perf_counter() - start)
                start = time.perf_counter()
                also = [len(one[0]) for one in threads.map(index.match_batch, tables)]
                together.append(time.perf_counter() - start)
                assert matched == also, f"One thread finds {matched} matches, two find {also}."
        found.append(min(apart) / min(together))
        micro = 1e6 / (rows * len(tables))
        shown.add_row(name, f"{min(apart) * micro:,.1f}", f"{min(together) * micro:,.1f}", f"{found[-1]:.2f}")
    _machine(console, rows)
    console.print(shown)
    return found


def _for_threads(name: str, size: int, rows: int) -> tuple[Any, list[Any]]:
    """An index and two tables of a workload."""
    if name == "texts":
        filters = [news.make(one) for one in news.subscriptions(size)]
        both = news.table(news.events(2 * rows))
    else:
        workload = WORKLOADS[name]
        drawn, maker = subscriptions(workload, size), FilterMaker(workload)
        filters = [maker.make(drawn, number) for number in range(size)]
        both = table(workload, events(workload, 2 * rows))
    return palio.MatchIndex(enumerate(filters)), [both.slice(0, rows), both.slice(rows)]


def _machine(console: Console, rows: int) -> None:
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"tables of {rows} events; "
        f"index: {palio.MatchIndex.__module__}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="palio bench matching", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--filters", type=int, nargs="+", help=f"default: {SIZES}, for --shares {SHARE_SIZE}")
    parser.add_argument(
        "--shares", type=float, nargs="*", help=f"shares of matching filters; default: {SHARES}"
    )
    parser.add_argument("--texts", action="store_true", help="filters about texts, types and times alone")
    parser.add_argument("--beside", action="store_true", help="texts and lists beside other ways and operators")
    parser.add_argument("--threads", action="store_true", help="two tables by two threads, and by one")
    parser.add_argument("--workload", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--events", type=int, default=EVENTS)
    chosen = parser.parse_args(arguments)
    if chosen.texts:
        console = Console(width=120)
        _machine(console, chosen.events)
        other_conditions.run(chosen.filters or other_conditions.SIZES, chosen.events, console)
        return
    if chosen.beside:
        console = Console(width=120)
        _machine(console, chosen.events)
        beside.run(chosen.filters or beside.SIZES, chosen.events, console)
        return
    if chosen.threads:
        for size in chosen.filters or [SHARE_SIZE]:
            run_threads(chosen.workload, size, chosen.events if chosen.events != EVENTS else THREAD_ROWS)
        return
    if chosen.shares is None:
        run(chosen.workload, chosen.filters or SIZES, chosen.events)
        return
    for size in chosen.filters or [SHARE_SIZE]:
        run_shares(chosen.shares or SHARES, size, chosen.events)


if __name__ == "__main__":
    main()
