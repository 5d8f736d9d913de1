"""How long the poset takes: `python -m benchmarks.poset [--filters N] [--seed S]`.

For each workload a poset is built filter by filter, and measured at 1 thousand, 10 thousand filters and so on
up to N. The table says what one filter takes at that size: to look up all that cover it and to insert it (the
mean over filters that are the same at each size), and to remove one of those that are there. Below stand the
mean over all insertions from the first filter to the last, and the longest one, in which a block of
candidates is built (without Python's garbage collector, whose full collections grow with all that the process
holds; all means include it).

The yardstick is insertion by comparing with every filter, both ways. It is measured on a sample of the
filters that are there and multiplied up to all of them, and leaves out the linking.

A share of the filters (10 %, see --covered) are drawn as narrower versions of earlier ones. More may be
covered by chance, and the table says how many are.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from palio.matching.poset import Poset
from palio.model.conjunction import Conjunction
from palio.model.constraint import Constraint
from palio.model.expression import Condition, conjunction
from palio.model.filter import Filter
from palio.model.valueset import ValueSet

SIZES = (1_000, 10_000, 100_000, 1_000_000)
# How many filters are measured at each size, and with how many others the yardstick compares each of how many.
MEASURED = 1_000
YARDSTICK_FILTERS = 20
YARDSTICK_OTHERS = 500

Conditions = dict[str, Constraint]


def zipf(choose: random.Random, count: int) -> Callable[[], int]:
    """Draws ranks, the first ones the more often: rank r in proportion to 1 / (r + 1)."""
    total = 0.0
    weights = [total := total + 1 / (rank + 1) for rank in range(count)]
    return lambda: choose.choices(range(count), cum_weights=weights)[0]


def interval(choose: random.Random, width: tuple[float, float], span: float = 1_000.0) -> Constraint:
    size = choose.uniform(*width) * span
    low = choose.uniform(0, span - size)
    return Constraint("between", (round(low, 3), round(low + size, 3)))


def stock(choose: random.Random) -> Iterator[Conditions]:
    """A symbol of 500, some far more popular, and 1 to 3 ranges of 8 numbers."""
    symbol = zipf(choose, 500)
    numbers = ("price", "change", "volume", "open", "high", "low", "pe", "yield")
    while True:
        chosen = choose.sample(numbers, choose.randint(1, 3))
        yield {
            "symbol": Constraint("=", f"S{symbol():03}"),
            **{name: interval(choose, (0.1, 0.5)) for name in chosen},
        }


def ranges(choose: random.Random) -> Iterator[Conditions]:
    """5 ranges of 20 numbers."""
    names = [f"a{index:02}" for index in range(20)]
    while True:
        yield {name: interval(choose, (0.3, 0.6)) for name in choose.sample(names, 5)}


def same(choose: random.Random) -> Iterator[Conditions]:
    """3 narrow ranges of always the same 3 numbers: nothing but the ranges tells filters apart."""
    while True:
        yield {name: interval(choose, (0.001, 0.02)) for name in ("x", "y", "z")}


def equality(choose: random.Random) -> Iterator[Conditions]:
    """3 to 5 equalities of 30 attributes with 100 values each, some far more popular."""
    names = [f"s{index:02}" for index in range(30)]
    value = zipf(choose, 100)
    while True:
        yield {name: Constraint("=", f"v{value():02}") for name in choose.sample(names, choose.randint(3, 5))}


def prefixes(choose: random.Random) -> Iterator[Conditions]:
    """Prefixes of a path of 5 letters out of 16 and a number below a limit."""
    while True:
        path = "/".join(choose.choices("abcdefghijklmnop", k=5))
        yield {
            "path": Constraint("starts with", path),
            "level": Constraint("<", choose.randint(1, 1_000)),
        }


def mixed(choose: random.Random) -> Iterator[Conditions]:
    """All of these in turn, over the same names, and one in 100 asks what its text contains."""
    sources = [kind(choose) for kind in (stock, ranges, equality, prefixes)]
    while True:
        for source in sources:
            conditions = next(source)
            if choose.random() < 0.01:
                word = "".join(choose.choices("abcdefgh", k=4))
                conditions = {**conditions, "note": Constraint("contains", word)}
            yield conditions


WORKLOADS = {
    "stock": stock,
    "ranges": ranges,
    "same": same,
    "equality": equality,
    "prefixes": prefixes,
    "mixed": mixed,
}


def as_filter(conditions: Conditions) -> Filter:
    return Filter.from_expression(conjunction(Condition(name, c) for name, c in conditions.items()))


def narrower(choose: random.Random, conditions: Conditions) -> Conditions:
    """Conditions that the given ones cover: with narrower ranges, longer prefixes, and one condition more."""
    result = {}
    for name, constraint in conditions.items():
        if constraint.operator == "between":
            low, high = constraint.operand
            quarter = (high - low) / 4
            ends = (low + choose.uniform(0, quarter), high - choose.uniform(0, quarter))
            constraint = Constraint("between", ends)
        elif constraint.operator == "starts with":
            constraint = Constraint("starts with", constraint.operand + "/" + choose.choice("abcdefgh"))
        result[name] = constraint
    result["grade"] = Constraint("<", choose.randint(1, 1_000_000))
    return result


def draw(workload: str, count: int, covered: float, seed: int) -> list[Filter]:
    """Filters, none equal to another."""
    choose = random.Random(f"{workload} {seed}")
    source = WORKLOADS[workload](choose)
    drawn: list[Conditions] = []
    filters: dict[Filter, None] = {}
    while len(filters) < count:
        if drawn and choose.random() < covered:
            filters[as_filter(narrower(choose, choose.choice(drawn)))] = None
        else:
            conditions = next(source)
            drawn.append(conditions)
            filters[as_filter(conditions)] = None
    return fresh(filters)


def fresh(filters: Iterable[Filter]) -> list[Filter]:
    """The filters without what they remember of having been hashed, as if they came from a client."""
    return [
        Filter(
            tuple(
                Conjunction({name: ValueSet(s.absent, s.parts) for name, s in b.sides.items()})
                for b in f.conjunctions
            )
        )
        for f in filters
    ]


class Measurement(msgspec.Struct, frozen=True):
    """Microseconds for one filter, at one size of one workload; and how often it was compared on insertion."""

    filters: int
    covered: float
    relations: int
    insertion: float
    lookup: float
    removal: float
    compared: float
    naive: float


class Building(msgspec.Struct, frozen=True):
    """A poset of one workload built: measurements by size, and over all insertions mean and longest."""

    measurements: list[Measurement]
    mean: float
    longest: float


class CollectorClock:
    """Adds up what the garbage collector takes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._started = 0.0

    def __call__(self, phase: str, _details: dict[str, int]) -> None:
        if phase == "start":
            self._started = time.process_time()
        else:
            self.seconds += time.process_time() - self._started


def mean(action: Callable[[Filter], object], filters: list[Filter]) -> float:
    started = time.process_time()
    for filter in filters:
        action(filter)
    return (time.process_time() - started) / len(filters) * 1e6


def naive_insertion(poset: Poset, newcomers: list[Filter], choose: random.Random) -> float:
    """Microseconds for comparing a filter with all of the poset's both ways, from a sample."""
    others = choose.sample([node.item for node in poset], min(YARDSTICK_OTHERS, len(poset)))
    started = time.process_time()
    for filter in newcomers[:YARDSTICK_FILTERS]:
        for other in others:
            other.covers(filter)
            filter.covers(other)
    pairs = len(newcomers[:YARDSTICK_FILTERS]) * len(others)
    return (time.process_time() - started) / pairs * len(poset) * 1e6


def measure(poset: Poset, newcomers: list[Filter], choose: random.Random) -> Measurement:
    """Measure a poset and leave it as it was."""
    before = poset.statistics()
    lookup = mean(poset.covering, fresh(newcomers))
    coming = fresh(newcomers)
    insertion = mean(poset.insert, coming)
    compared = (poset.statistics().comparisons - before.comparisons) / len(coming)
    for filter in coming:
        poset.remove(filter)
    leaving = choose.sample([node.item for node in poset], min(MEASURED, len(poset) // 2))
    removal = mean(poset.remove, leaving)
    for filter in leaving:
        poset.insert(filter)
    return Measurement(
        filters=before.filters,
        covered=1 - before.roots / before.filters,
        relations=before.relations,
        insertion=insertion,
        lookup=lookup,
        removal=removal,
        compared=compared,
        naive=naive_insertion(poset, newcomers, choose),
    )


def build(workload: str, sizes: list[int], covered: float, seed: int) -> Building:
    choose = random.Random(seed)
    filters = draw(workload, sizes[-1] + MEASURED, covered, seed)
    filters, newcomers = filters[:-MEASURED], filters[-MEASURED:]
    collector = CollectorClock()
    gc.callbacks.append(collector)
    poset = Poset()
    measurements = []
    total = longest = 0.0
    for size in sizes:
        for filter in filters[len(poset) : size]:
            collected = collector.seconds
            started = time.process_time()
            poset.insert(filter)
            took = time.process_time() - started
            total += took
            longest = max(longest, took - (collector.seconds - collected))
        measurements.append(measure(poset, newcomers, choose))
    gc.callbacks.remove(collector)
    return Building(measurements, total / sizes[-1] * 1e6, longest * 1e6)


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(
        prog="palio bench poset", description="Time the poset against comparing with every filter."
    )
    options.add_argument("--filters", type=int, default=100_000, help="the largest poset")
    options.add_argument(
        "--covered", type=float, default=0.1, help="the share drawn as narrower versions of others"
    )
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--workload", choices=WORKLOADS, action="append", help="default: all")
    chosen = options.parse_args(arguments)
    sizes = [size for size in SIZES if size < chosen.filters] + [chosen.filters]
    console = Console(width=None if Console().is_terminal else 130)
    console.print(
        f"Python {platform.python_version()}, one thread; up to {chosen.filters:,} filters, "
        f"{chosen.covered:.0%} drawn as covered, seed {chosen.seed}.\n"
        f"Microseconds of CPU time for one filter, the mean over {MEASURED:,}; hashing it is included.\n"
        f"Naive: comparing with every filter both ways; measured with {YARDSTICK_FILTERS} × {YARDSTICK_OTHERS} "
        "filters and multiplied up."
    )
    for workload in chosen.workload or WORKLOADS:
        console.print(as_table(workload, build(workload, sizes, chosen.covered, chosen.seed)))


def as_table(workload: str, building: Building) -> Table:
    table = Table(
        title=f"{workload}: {WORKLOADS[workload].__doc__}",
        caption=f"All insertions: mean {building.mean:,.0f}, longest {building.longest:,.0f}",
        title_justify="left",
        caption_justify="left",
    )
    for title in (
        "filters", "covered", "relations", "insert", "look up", "remove", "compared", "naive", "naive / insert",
    ):  # fmt: skip
        table.add_column(title, justify="right")
    for row in building.measurements:
        table.add_row(
            f"{row.filters:,}",
            f"{row.covered:.0%}",
            f"{row.relations:,}",
            f"{row.insertion:,.0f}",
            f"{row.lookup:,.0f}",
            f"{row.removal:,.0f}",
            f"{row.compared:.1f}",
            f"{row.naive:,.0f}",
            f"{row.naive / row.insertion:,.0f}",
        )
    return table


if __name__ == "__main__":
    main()
