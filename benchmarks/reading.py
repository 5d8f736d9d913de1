"""What it takes to read a filter, in each dialect that can say it: `python -m benchmarks.reading`.

Each row is one condition, as people write it in each dialect. No text is read twice, and a new constant stands
in each. Times are microseconds a filter, the best of several rounds, on one thread.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Sequence
from itertools import count

from rich.console import Console
from rich.table import Table

from palio.language import read_filter

FILTERS = 300
ROUNDS = 9
DIALECTS = ("palio", "jms", "cesql", "eventbridge")

# The condition, and how each of `DIALECTS` says it; `%d` is a number, another one in each text.
CONDITIONS = (
    ("text equal", 'a = "t%d"', "a = 't%d'", "a = 't%d'", '{"a": ["t%d"]}'),
    ("text unequal", 'a != "t%d"', "a <> 't%d'", "a <> 't%d'", '{"a": [{"anything-but": "t%d"}]}'),
    (
        "text among three",
        'a in ("x", "y", "t%d")',
        "a IN ('x', 'y', 't%d')",
        "a IN ('x', 'y', 't%d')",
        '{"a": ["x", "y", "t%d"]}',
    ),
    (
        "text begins",
        'a starts with "t%d"',
        "a LIKE 't%d%%'",
        "a LIKE 't%d%%'",
        '{"a": [{"prefix": "t%d"}]}',
    ),
    ("number equal", "a = %d", "a = %d", "a = %d", '{"a": [%d]}'),
    ("number above", "a > %d", "a > %d", "a > %d", '{"a": [{"numeric": [">", %d]}]}'),
    (
        "number between",
        "a between -5 and %d",
        "a BETWEEN -5 AND %d",
        "a >= -5 AND a <= %d",
        '{"a": [{"numeric": [">=", -5, "<=", %d]}]}',
    ),
    (
        "text and number",
        'a = "x" and b > %d',
        "a = 'x' AND b > %d",
        "a = 'x' AND b > %d",
        '{"a": ["x"], "b": [{"numeric": [">", %d]}]}',
    ),
    (
        "number or number",
        "a < 5 or b > %d",
        "a < 5 OR b > %d",
        "a < 5 OR b > %d",
        '{"$or": [{"a": [{"numeric": ["<", 5]}]}, {"b": [{"numeric": [">", %d]}]}]}',
    ),
    ("two attributes", "a < b + %d", "a < b + %d", "a < b + %d", None),
)


def measure(text: str, dialect: str, number: count[int], filters: int) -> float:
    """Microseconds to read one such filter."""
    best = float("inf")
    for _ in range(ROUNDS):
        several = [text % next(number) for _ in range(filters)]
        began = time.perf_counter()
        for one in several:
            read_filter(one, dialect)
        best = min(best, time.perf_counter() - began)
    return best / filters * 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="palio bench reading", description=__doc__.splitlines()[0])
    parser.add_argument("--filters", type=int, default=FILTERS)
    chosen = parser.parse_args(arguments)
    console = Console()
    table = Table("µs a filter", *DIALECTS)
    number = count(1_000)
    for name, *texts in CONDITIONS:
        times = [
            "" if text is None else f"{measure(text, dialect, number, chosen.filters):.1f}"
            for dialect, text in zip(DIALECTS, texts, strict=True)
        ]
        table.add_row(name, *times)
    console.print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    console.print(table)


if __name__ == "__main__":
    main()
