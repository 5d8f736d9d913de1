"""Conditions about texts and lists, each beside what it is measured by: `palio bench matching --beside`.

| filters | beside | at most |
|---|---|---|
| `contains`: two words or a piece of them, in 200 characters | pyahocorasick, ids listed by both | 1.5 times |
| `matches "*p*"`, the same parts | `contains` | 3 times |
| `matches "*p*a*"`, the same parts and a letter | `contains` | 3 times |
| `ends with`, the last 12 to 20 characters of a name | `=`, the whole name | 3 times |
| `has "…"`, names in lists of 1 to 4 | `=`, the first of each list | 3 times |

Both sides take turns, in one run and on one thread; the time is that of the best round. Where filters mean the
same, they have to find the same. pyahocorasick is measured where it is installed (`pip install pyahocorasick`):
it lists an id once for each place at which its text is, which is less work than naming it once, as the index
does."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow
from rich.console import Console
from rich.table import Table

import palio
from benchmarks.news import events as news_events
from benchmarks.news import vocabulary
from palio.model.conjunction import Conjunction
from palio.model.constraint import Constraint
from palio.model.filter import Filter

SIZES = (100_000, 1_000_000)
ROWS = 256
RUNS = 7
MOST_AHOCORASICK, MOST_OTHERS = 1.5, 3.0
GLOBS_MOST = 100_000  # more are not asked for
LETTERS = "abcdefghijklmnopqrstuvwxyz"

# What is measured: done once it says how many matches there were.
Side = Callable[[], int]


@dataclass
class Beside:
    """Microseconds an event of both sides, and how many matches each had."""

    name: str
    filters: int
    taken: float
    found: float
    by: str
    by_taken: float
    by_found: float
    most: float

    @property
    def times(self) -> float:
        return self.taken / self.by_taken


def compare(one: tuple[str, Side], other: tuple[str, Side], most: float, filters: int, rows: int) -> Beside:
    """Turn by turn, the best of several rounds."""
    times: tuple[list[float], list[float]] = ([], [])
    found = [0, 0]
    for _ in range(RUNS):
        for at, (_, side) in enumerate((one, other)):
            start = time.perf_counter()
            found[at] = side()
            times[at].append(time.perf_counter() - start)
    taken, by_taken = (min(each) / rows * 1e6 for each in times)
    return Beside(one[0], filters, taken, found[0] / rows, other[0], by_taken, found[1] / rows, most)


def _asked(operator: str, constant: str) -> Constraint:
    return Constraint("has", Constraint("=", constant)) if operator == "has" else Constraint(operator, constant)


def _index(attribute: str, operator: str, constants: Sequence[str]) -> palio.MatchIndex:
    return palio.MatchIndex(
        (number, Filter((Conjunction({attribute: _asked(operator, constant).values()}),)))
        for number, constant in enumerate(constants)
    )


def _matching(index: palio.MatchIndex, table: Any) -> Side:
    return lambda: len(index.match_batch(table)[0])


def phrases(count: int) -> list[str]:
    """Two words as news have them, the frequent ones more often, or a piece of these."""
    draw, words = random.Random(1), vocabulary()
    found = []
    for _ in range(count):
        both = " ".join(words[int(len(words) ** draw.random()) - 1] for _ in range(2))
        found.append(both[: max(5, len(both) - draw.randrange(6))])
    return found


def _ahocorasick(parts: Sequence[str], texts: Sequence[str]) -> Side | None:
    try:
        import ahocorasick  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415  (a measure, no dependency)
    except ImportError:
        return None
    asking: dict[str, list[int]] = {}
    for number, part in enumerate(parts):
        asking.setdefault(part, []).append(number)
    automaton = ahocorasick.Automaton()
    for part, numbers in asking.items():
        automaton.add_word(part, numbers)
    automaton.make_automaton()

    def match() -> int:
        total = 0
        for text in texts:
            ids: list[int] = []
            for _, numbers in automaton.iter(text):
                ids += numbers
            total += len(ids)
        return total

    return match


def _substrings(size: int, rows: int) -> list[Beside]:
    parts, bodies = phrases(size), news_events(rows)["body"]
    table = pyarrow.table({"body": bodies})
    contains = _matching(_index("body", "contains", parts), table)
    found = []
    other = _ahocorasick(parts, bodies)
    if other is not None:
        sides = ("contains", contains), ("pyahocorasick", other)
        found.append(compare(*sides, MOST_AHOCORASICK, size, rows))
        del other, sides
    if size > GLOBS_MOST:
        return found
    draw = random.Random(2)
    around = _matching(_index("body", "matches", [f"*{part}*" for part in parts]), table)
    more = [f"*{part}*{draw.choice(LETTERS)}*" for part in parts]
    behind = _matching(_index("body", "matches", more), table)
    assert around() == contains()
    found.append(compare(('matches "*p*"', around), ("contains", contains), MOST_OTHERS, size, rows))
    found.append(compare(('matches "*p*a*"', behind), ("contains", contains), MOST_OTHERS, size, rows))
    return found


def _names(size: int, rows: int) -> list[Beside]:
    draw = random.Random(3)
    names = ["".join(draw.choices(LETTERS, k=draw.randrange(20, 33))) for _ in range(size)]
    wanted = [draw.choice(names) for _ in range(rows)]
    lists = [[name, *draw.choices(names, k=draw.randrange(4))] for name in wanted]
    table = pyarrow.table({"name": wanted, "names": lists})
    equal = _matching(_index("name", "=", names), table)
    ends = _matching(_index("name", "ends with", [name[-draw.randrange(12, 21) :] for name in names]), table)
    has = _matching(_index("names", "has", names), table)
    assert equal() == ends() == rows
    assert has() == sum(len(set(one)) for one in lists)
    return [
        compare(("ends with", ends), ("=", equal), MOST_OTHERS, size, rows),
        compare(('has "…"', has), ("=", equal), MOST_OTHERS, size, rows),
    ]


def run(sizes: Sequence[int] = SIZES, rows: int = ROWS, console: Console | None = None) -> list[Beside]:
    """Measure and print."""
    console = console or Console(width=120)
    shown = Table(title="Matching: conditions about texts and lists, beside what they are measured by")
    for name in ("filters of", "", "matches", "µs", "beside", "matches", "µs", "times", "at most"):
        shown.add_column(name, justify="left" if name in ("filters of", "beside") else "right")
    found = [one for size in sizes for measure in (_substrings, _names) for one in measure(size, rows)]
    for one in found:
        shown.add_row(
            one.name, f"{one.filters:,}", f"{one.found:,.1f}", f"{one.taken:,.2f}",
            one.by, f"{one.by_found:,.1f}", f"{one.by_taken:,.2f}", f"{one.times:.2f}", f"{one.most:g}",
        )  # fmt: skip
    console.print(shown)
    return found
