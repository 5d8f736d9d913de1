"""How long the poset takes: `python -m benchmarks.poset [--filters N] [--seed S]`.

For each workload, posets of 1 thousand, 10 thousand filters and so on up to N are built one by one. At each
size the table says how long one filter takes to insert, to look up (all that cover it) and to remove, each as
the mean over filters that come when the poset has that size already; the longest single insertion of the
whole run, in which a block of candidates is built; and the yardstick: inserting by comparing with every
filter, both ways. The yardstick is measured on a sample of the filters that are there and multiplied up to
all of them, without the cost of linking.

A share of the filters (10 %, by --covered) are drawn as narrower versions of earlier ones; more may be
covered by chance, and the table says how many are.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import time
from collections.abc import Callable, Iterator

import msgspec
from rich.console import Console
from rich.table import Table

from palio.matching.poset import Poset
from palio.model.conjunction import Conjunction
from palio.model.constraint import Constraint
from palio.model.expression import Condition, conjunction
from palio.model.filter import Filter

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
    # Each filter is taken without its memory of having been hashed, as one that comes from a client is.
    return [Filter(tuple(Conjunction(dict(b.sides)) for b in f.conjunctions)) for f in filters]


class Measurement(msgspec.Struct, frozen=True):
    """Microseconds for one filter, at one size of one workload."""

    filters: int
    covered: float
    relations: int
    insertion: float
    lookup: float
    removal: float
    naive: float
    compared: float


def mean(action: Callable[[Filter], object], filters: list[Filter]) -> float:
    started = time.perf_counter()
    for filter in filters:
        action(filter)
    return (time.perf_counter() - started) / len(filters) * 1e6


def naive_insertion(poset: Poset, newcomers: list[Filter], choose: random.Random) -> float:
    """Microseconds for comparing a filter with all of the poset's both ways, from a sample."""
    others = choose.sample([node.filter for node in poset], min(YARDSTICK_OTHERS, len(poset)))
    started = time.perf_counter()
    for filter in newcomers[:YARDSTICK_FILTERS]:
        for other in others:
            other.covers(filter)
            filter.covers(other)
    pairs = len(newcomers[:YARDSTICK_FILTERS]) * len(others)
    return (time.perf_counter() - started) / pairs * len(poset) * 1e6


def measure(
    workload: str, sizes: list[int], covered: float, seed: int
) -> tuple[list[Measurement], float, float]:
    """The measurements, the mean insertion from empty to the largest size, and the longest one (microseconds)."""
    choose = random.Random(seed)
    filters = draw(workload, sizes[-1] + MEASURED, covered, seed)
    # The newcomers of every size are the last of all, so that sizes differ in nothing else.
    filters, newcomers = filters[:-MEASURED], filters[-MEASURED:]
    gc.collect()
    gc.freeze()
    poset = Poset()
    found = []
    total = longest = 0.0
    for size in sizes:
        for filter in filters[len(poset) : size]:
            started = time.perf_counter()
            poset.insert(filter)
            took = time.perf_counter() - started
            total += took
            longest = max(longest, took)
        statistics = poset.statistics()
        unhashed = [Filter(filter.conjunctions) for filter in newcomers]
        lookup = mean(
            lambda filter: poset.covering(filter), [Filter(filter.conjunctions) for filter in unhashed]
        )
        insertion = mean(poset.insert, unhashed)
        compared = poset.statistics().comparisons - statistics.comparisons
        removal = mean(poset.remove, unhashed)
        found.append(
            Measurement(
                filters=statistics.filters,
                covered=1 - statistics.roots / statistics.filters,
                relations=statistics.relations,
                insertion=insertion,
                lookup=lookup,
                removal=removal,
                naive=naive_insertion(poset, unhashed, choose),
                compared=compared / len(unhashed),
            )
        )
    gc.unfreeze()
    return found, total / sizes[-1] * 1e6, longest * 1e6


def main() -> None:
    options = argparse.ArgumentParser(description="Time the poset against comparing with every filter.")
    options.add_argument("--filters", type=int, default=100_000, help="the largest poset")
    options.add_argument(
        "--covered", type=float, default=0.1, help="the share drawn as narrower versions of others"
    )
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--workload", choices=WORKLOADS, action="append", help="default: all")
    chosen = options.parse_args()
    sizes = [size for size in SIZES if size < chosen.filters] + [chosen.filters]
    console = Console(width=None if Console().is_terminal else 130)
    console.print(
        f"Python {platform.python_version()}, one thread; up to {chosen.filters:,} filters, "
        f"{chosen.covered:.0%} drawn as covered, seed {chosen.seed}.\n"
        f"Microseconds for one filter, mean over {MEASURED:,} filters that come at that size, hashing included.\n"
        f"Naive: comparing with every filter both ways, from {YARDSTICK_FILTERS} filters × {YARDSTICK_OTHERS} others, "
        "multiplied up to the size."
    )
    table = Table("workload")
    for title in (
        "filters", "covered", "relations", "insert", "look up", "remove", "compared", "naive", "naive / insert",
    ):  # fmt: skip
        table.add_column(title, justify="right")
    for workload in chosen.workload or WORKLOADS:
        found, average, longest = measure(workload, sizes, chosen.covered, chosen.seed)
        for row in found:
            table.add_row(
                workload,
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
        table.add_row(
            "", "", "", "mean, longest", f"{average:,.0f}, {longest:,.0f}", "", "", "", "", "", end_section=True
        )
    console.print(table)


if __name__ == "__main__":
    main()
