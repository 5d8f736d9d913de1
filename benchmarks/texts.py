"""Filters that are about texts, types and times alone: `palio bench matching --texts --filters 100000`.

Three of the workloads have an equality or ranges of plain numbers in every filter, the fourth has a mix. Here
is one line for each other sort of condition, with nothing else in the filter to find it by: what the index
looks up (how texts begin and end, what is in them, also where they ignore case or are patterns, elements of
lists), what it sweeps (numbers of a demanded type, times, numbers in lists), and what it can only ask one by
one (a glob without three letters in a row). The yardstick is to ask every filter, which has to find the same.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow
from rich.console import Console
from rich.table import Table

import palio
from benchmarks.news import events as news_events
from benchmarks.news import vocabulary
from palio.model.conjunction import Conjunction
from palio.model.expression import And
from palio.model.filter import Filter
from palio.model.parser import parse

SIZES = (100_000,)
ROWS = 256
RUNS = 3
# Conditions that have a table made for each, in a millisecond or so: of these there are no more filters.
TABLED, TABLED_MOST = ("like", "regex", "ignoring case", "in network"), 10_000
ASKED = 100_000  # filters that the yardstick asks in a run, at the least those of one event
_START = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = [f"{letter}{number}" for letter in "abcdefghij" for number in range(10)]


def _path(draw: random.Random, depth: int) -> str:
    return "".join(f"{draw.choice(_WORDS)}/" for _ in range(depth))


def _tag(draw: random.Random) -> str:
    return f"tag {draw.randrange(50_000)}"


def _moment(draw: random.Random) -> datetime:
    return _START + timedelta(seconds=draw.randrange(365 * 86_400))


def _stretch(draw: random.Random) -> str:
    start = _moment(draw)
    stop = start + timedelta(hours=draw.randrange(1, 96))
    return f"at between {start:%Y-%m-%dT%H:%M:%SZ} and {stop:%Y-%m-%dT%H:%M:%SZ}"


@functools.cache
def _words() -> list[str]:
    return vocabulary()


def _phrase(draw: random.Random) -> str:
    """Two words as news have them, the frequent ones more often, or a piece of these."""
    words = _words()
    both = " ".join(words[int(len(words) ** draw.random()) - 1] for _ in range(2))
    return both[: max(5, len(both) - draw.randrange(6))]


def _address(draw: random.Random, groups: int) -> str:
    return ".".join(str(draw.randrange(256)) for _ in range(groups))


SORTS: dict[str, Callable[[random.Random], str]] = {
    "starts with": lambda draw: f'topic starts with "{_path(draw, draw.choice((2, 2, 3)))}"',
    "int between": lambda draw: (
        f"int level between {(low := draw.randrange(10**6))} and {low + draw.randrange(5_000)}"
    ),
    "float >, <": lambda draw: (
        f"float rate > {(low := draw.random() * 1_000):.3f} and float rate < {low + 5:.3f}"
    ),
    "time between": _stretch,
    "!= and int": lambda draw: f'topic != "{_path(draw, 2)}" and int level > {10**6 - draw.randrange(5_000)}',
    "contains": lambda draw: f'topic contains "{draw.choice(_WORDS)}/{draw.choice(_WORDS)}"',
    "ends with": lambda draw: f'topic ends with "{_path(draw, 2)}"',
    "matches": lambda draw: f'topic matches "**/{draw.choice(_WORDS)}/*{draw.choice(_WORDS)}*/**"',
    "has": lambda draw: f'tags has "{_tag(draw)}"',
    "has >": lambda draw: f"marks has > {10**6 - draw.randrange(5_000)}",
    "body contains": lambda draw: f'body contains "{_phrase(draw)}"',
    'body matches "*p*"': lambda draw: f'body matches "*{_phrase(draw)}*"',
    'body matches "*p*a*"': lambda draw: f'body matches "*{_phrase(draw)}*{draw.choice("abcdefghij")}*"',
    "like": lambda draw: f'body like "%{_phrase(draw)}%{draw.choice("abcdefghij")}%"',
    "regex": lambda draw: f'body regex ".*{_phrase(draw)}[a-z]* .*"',
    "ignoring case": lambda draw: f'topic = "{_path(draw, 4).upper()}" ignoring case',
    "in network": lambda draw: f'address in network "{_address(draw, 2)}.0.0/16"',
    "matches, asked": lambda draw: f'tag matches "*{draw.choice("abc")}*{draw.randrange(10)}*"',
}


def events(rows: int) -> dict[str, list[Any]]:
    draw = random.Random(2)
    return {
        "topic": [_path(draw, 4) for _ in range(rows)],
        "level": [draw.randrange(10**6) for _ in range(rows)],
        "rate": [draw.random() * 1_000 for _ in range(rows)],
        "at": [_moment(draw) for _ in range(rows)],
        "tags": [[_tag(draw) for _ in range(draw.randrange(5))] for _ in range(rows)],
        "marks": [[draw.randrange(10**6) for _ in range(draw.randrange(5))] for _ in range(rows)],
        "body": news_events(rows)["body"],
        "address": [_address(draw, 4) for _ in range(rows)],
        "tag": [draw.choice(_WORDS) for _ in range(rows)],
    }


def _made(text: str) -> palio.Filter:
    """A filter as it is written: to see whether it can be simpler takes longer than all the rest."""
    expression = parse(text)
    conditions = expression.operands if isinstance(expression, And) else (expression,)
    sides: dict[str, Any] = {}
    for one in conditions:
        values = one.constraint.values()
        sides[one.attribute] = sides[one.attribute] & values if one.attribute in sides else values
    return Filter((Conjunction(dict(sorted(sides.items()))),))


@dataclass
class Measured:
    """Microseconds an event in a batch, alone and by the yardstick; microseconds and bytes a filter."""

    matches: float
    batch: float
    single: float
    yardstick: float
    build: float
    bytes: float

    @property
    def ratio(self) -> float:
        return self.yardstick / self.batch


def measure(sort: str, size: int, rows: int) -> Measured:
    """One sort of condition. Raises AssertionError if there are two opinions about what matches."""
    draw = random.Random(sort)
    filters = [_made(SORTS[sort](draw)) for _ in range(size)]
    columns = events(rows)
    table = pyarrow.table(columns)
    some = [
        palio.Notification(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)
    ]
    start = time.perf_counter()
    index = palio.MatchIndex(enumerate(filters))
    build = time.perf_counter() - start
    batches, singles, askings = [], [], []
    asked = some[: max(1, ASKED // size)]
    for _ in range(RUNS):
        start = time.perf_counter()
        found, _ = index.match_batch(table)
        batches.append(time.perf_counter() - start)
        start = time.perf_counter()
        alone = sum(len(index.match(one)) for one in some)
        singles.append(time.perf_counter() - start)
        start = time.perf_counter()
        right = sum(filter.matches(one) for one in asked for filter in filters)
        askings.append(time.perf_counter() - start)
    assert alone == len(found), f"One by one {alone} matches are found, in a batch {len(found)}."
    first = sum(row < len(asked) for row in found.to_pylist())
    assert first == right, f"The index finds {first} matches, asking every filter {right}."
    micro = 1e6
    return Measured(
        matches=len(found) / rows,
        batch=min(batches) / rows * micro,
        single=min(singles) / rows * micro,
        yardstick=min(askings) / len(asked) * micro,
        build=build / size * micro,
        bytes=getattr(index.statistics(), "index_bytes", float("nan")) / size,
    )


def run(sizes: Sequence[int] = SIZES, rows: int = ROWS, console: Console | None = None) -> None:
    """Measure and print."""
    console = console or Console(width=120)
    shown = Table(title="Matching: filters of one condition that is no plain equality or range")
    for name in (
        "condition", "filters", "matches", "asking all µs", "batch µs", "ratio", "single µs",
        "build µs", "bytes",
    ):  # fmt: skip
        shown.add_column(name, justify="left" if name == "condition" else "right")
    for wanted in sizes:
        for sort in SORTS:
            size = min(wanted, TABLED_MOST) if sort in TABLED else wanted
            one = measure(sort, size, rows)
            shown.add_row(
                sort, f"{size:,}", f"{one.matches:,.1f}", f"{one.yardstick:,.0f}", f"{one.batch:,.1f}",
                f"{one.ratio:,.0f}", f"{one.single:,.1f}", f"{one.build:.1f}", f"{one.bytes:.0f}",
            )  # fmt: skip
    console.print(shown)
    console.print("ratio: how many times as fast a batch is as asking every filter.")
