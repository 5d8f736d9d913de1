"""What it takes to read a filter, in each dialect that can say it: `python -m benchmarks.reading`.

Each row is one condition, as people write it in each dialect. No text is read twice, and a new constant stands
in each. Times are microseconds of one processor a filter, the best of several rounds, in each of which all
dialects have their turn.

A condition of CloudEvents SQL says more than ours that looks like it: `a > 5` is also about strings that read
as numbers, and about what cannot be computed. So the last column is what our own text of the very same filter
takes.
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
        "number and number",
        "a > 5 and b > %d",
        "a > 5 AND b > %d",
        "a > 5 AND b > %d",
        '{"a": [{"numeric": [">", 5]}], "b": [{"numeric": [">", %d]}]}',
    ),
    (
        "number or number",
        "a < 5 or b > %d",
        "a < 5 OR b > %d",
        "a < 5 OR b > %d",
        '{"$or": [{"a": [{"numeric": ["<", 5]}]}, {"b": [{"numeric": [">", %d]}]}]}',
    ),
    (
        "text and number, or text",
        'a = "x" and b > 5 or c = "t%d"',
        "a = 'x' AND b > 5 OR c = 't%d'",
        "a = 'x' AND b > 5 OR c = 't%d'",
        '{"$or": [{"a": ["x"], "b": [{"numeric": [">", 5]}]}, {"c": ["t%d"]}]}',
    ),
    (
        "boolean, or number",
        "a = true or b > %d",
        "a = TRUE OR b > %d",
        "a = TRUE OR b > %d",
        '{"$or": [{"a": [true]}, {"b": [{"numeric": [">", %d]}]}]}',
    ),
    (
        "either text, and number",
        '(a = "x" or b = "y") and c > %d',
        "(a = 'x' OR b = 'y') AND c > %d",
        "(a = 'x' OR b = 'y') AND c > %d",
        '{"$or": [{"a": ["x"]}, {"b": ["y"]}], "c": [{"numeric": [">", %d]}]}',
    ),
    (
        "pair, or another pair",
        'a = "x" and b > 5 or a = "y" and c > %d',
        "(a = 'x' AND b > 5) OR (a = 'y' AND c > %d)",
        "(a = 'x' AND b > 5) OR (a = 'y' AND c > %d)",
        '{"$or": [{"a": ["x"], "b": [{"numeric": [">", 5]}]}, {"a": ["y"], "c": [{"numeric": [">", %d]}]}]}',
    ),
    (
        "number, or pair, or text",
        'a > 5 or b < %d and c = "x" or c = "y"',
        "a > 5 OR b < %d AND c = 'x' OR c = 'y'",
        "a > 5 OR (b < %d AND c = 'x') OR c = 'y'",
        '{"$or": [{"a": [{"numeric": [">", 5]}]}, {"b": [{"numeric": ["<", %d]}], "c": ["x"]}, {"c": ["y"]}]}',
    ),
    ("two attributes", "a < b + %d", "a < b + %d", "a < b + %d", None),
)


def measure(texts: Sequence[str | None], number: count[int], filters: int) -> list[float]:
    """Microseconds to read one such filter in each of `DIALECTS`, and in our own words for that of `cesql`."""
    sql = texts[DIALECTS.index("cesql")]
    assert sql is not None
    columns = [*zip(DIALECTS, texts, strict=True), ("palio", sql)]
    best = [float("inf")] * len(columns)
    for _ in range(ROUNDS):
        for place, (dialect, text) in enumerate(columns):
            if text is None:
                continue
            several = [text % next(number) for _ in range(filters)]
            if place == len(DIALECTS):
                several = [str(read_filter(one, "cesql")) for one in several]
            began = time.process_time()
            for one in several:
                read_filter(one, dialect)
            best[place] = min(best[place], time.process_time() - began)
    return [one / filters * 1e6 for one in best]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="palio bench reading", description=__doc__.splitlines()[0])
    parser.add_argument("--filters", type=int, default=FILTERS)
    chosen = parser.parse_args(arguments)
    console = Console()
    table = Table("µs a filter", *DIALECTS, "as cesql, in palio")
    number = count(1_000)
    for name, *texts in CONDITIONS:
        times = measure(texts, number, chosen.filters)
        table.add_row(name, *["" if one == float("inf") else f"{one:.1f}" for one in times])
    console.print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    console.print(table)


if __name__ == "__main__":
    main()
