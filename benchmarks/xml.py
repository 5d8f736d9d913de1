"""XML documents: `palio bench xml [--row R] [--size KB] [--seconds N] [--json] [--plots FOLDER] [--quick]`.

Each row stands beside a yardstick of the same run. Brokers, publishers and subscribers are processes of their
own, with a journal that syncs; a publish counts when it is confirmed and all its deliveries have arrived.

- `sizes`: publishes a second with one durable subscriber, beside the algorithm of the source (its tables, its
  query, a commit a publish; `documents/source.py`) on the same database.
- `native`: the same with 50 paths, beside lxml alone, which parses, validates and evaluates them one by one.
- `subscribers`: 1 to 16 durable subscribers, beside one.

`source` is what the source measured itself, on its own machine, twenty years older.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from benchmarks.documents import publishing, report
from benchmarks.documents.publishing import XmlRun
from benchmarks.documents.report import XmlRow
from palio.cli.bench.measuring import machine, show_setup
from palio.cli.program.terminal import error_console

SIZES = (1.66, 3, 5, 8, 10)
SUBSCRIBERS = (1, 2, 4, 8, 16)
Measure = Callable[[argparse.Namespace, XmlRun], list[XmlRow]]
ROWS: dict[str, tuple[str, Measure]] = {
    "sizes": (
        "publishes a second, by size",
        lambda given, run: publishing.sizes(run, given.size, given.store),
    ),
    "native": ("50 paths, beside lxml alone", lambda given, run: publishing.native(run, given.size)),
    "subscribers": (
        "publishes a second, by subscribers",
        lambda given, run: publishing.subscribers(run, given.subscribers, 5),
    ),
}
QUICK = {
    "size": [1.66], "seconds": 0.3, "rounds": 1, "publishers": 4, "subscribers": [1, 2], "store": ["sqlite"],
}  # fmt: skip
USUAL = {
    "size": [*SIZES], "seconds": 4.0, "rounds": 2, "publishers": 64, "subscribers": [*SUBSCRIBERS],
    "store": ["sqlite", "postgresql"],
}  # fmt: skip


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="palio bench xml", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--row", action="append", choices=ROWS, help="one of them, repeatable (default: all)")
    add("--size", type=float, action="append", help=f"KB of a document, repeatable (default {SIZES})")
    add("--store", action="append", choices=("sqlite", "postgresql"), help="repeatable (default: both)")
    add("--publishers", type=int, help=f"at a time (default {USUAL['publishers']})")
    add("--subscribers", type=int, action="append", help=f"repeatable (default {SUBSCRIBERS})")
    add("--seconds", type=float, help=f"of one measurement (default {USUAL['seconds']:g})")
    add("--rounds", type=int, help=f"of which the best counts (default {USUAL['rounds']})")
    add("--folder", type=Path, help="where journals are put (default: a temporary folder)")
    add("--json", action="store_true", help="the rows as JSON")
    add("--quick", action="store_true", help="a few seconds, small; its figures mean nothing")
    arguments = parser.parse_args(words)
    for name, value in (QUICK if arguments.quick else USUAL).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    arguments.row = arguments.row or list(ROWS)
    return arguments


def setup(arguments: argparse.Namespace) -> dict[str, object]:
    return {
        **machine(),
        "lxml": importlib.metadata.version("lxml"),
        "sqlite": f"{sqlite3.sqlite_version}, write-ahead log, synchronous full on both sides",
        "cards": "cards of products, with a schema; every thousandth is a new version of the first",
        "seconds": arguments.seconds,
        "rounds": arguments.rounds,
    }


def main(words: Sequence[str] | None = None) -> None:
    arguments = parsed(words)
    # Whoever ends this with a signal ends the brokers with it, in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(width=150, stderr=arguments.json)
    said = setup(arguments)
    show_setup(console, said)
    found: list[XmlRow] = []
    absent: list[str] = []
    with (
        tempfile.TemporaryDirectory(dir=arguments.folder) as place,
        error_console().status("Documents are made.") as told,
    ):
        run = XmlRun(
            Path(place), arguments.publishers, arguments.seconds, arguments.rounds, told.update, absent
        )
        for name in arguments.row:
            title, measure = ROWS[name]
            rows = measure(arguments, run)
            found += rows
            console.print(Text(title, style="bold"))
            report.show_rows(console, rows, judged=not arguments.quick)
        for sentence in dict.fromkeys(absent):
            console.print(Text(f"{sentence}.", style="yellow"))
    if arguments.json:
        print(msgspec.json.encode(report.document(said, found)).decode())


if __name__ == "__main__":
    main()
