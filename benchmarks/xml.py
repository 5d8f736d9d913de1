"""XML documents: `palio bench xml [--row R] [--size KB] [--seconds N] [--json] [--plots FOLDER] [--quick]`.

Each row stands beside a yardstick of the same run. Brokers, publishers and subscribers are processes of their
own, with a journal that syncs; a publish counts when it is confirmed and all its deliveries have arrived.

- `sizes`: publishes a second with one durable subscriber, beside the algorithm of the source (its tables, its
  query, a commit a publish; `documents/source.py`) on the same database.
- `native`: the same with 50 paths, beside lxml alone, which parses, validates and evaluates them one by one.
- `subscribers`: 1 to 16 durable subscribers, beside one.
- `overload`: 144 to 333 % of what it can take, minutes long: the last tenth beside the first, and its memory.
- `conditions`: different XPath conditions on real alerts and invoices, beside lxml's compiled XPaths.
- `subscriptions`: ten thousand of them on 50 paths, beside 50 that get the same.
- `has`: conditions about elements of lists, beside plain equalities.
- `bindings`: the sizes by HTTP and by SOAP, beside the native client.
- `tables`: what brokers know of each other's XPath subscriptions, by strategy, in a simulated network.
- `spark`: values of 50 paths, and of one, from a table in Spark, beside columns of Spark's `xpath_string`.

With `--sync MS`, every sync of the disk takes at least that long on both sides, as it does on other disks.

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

from benchmarks.documents import bindings, conditions, publishing, report, syncing, tables
from benchmarks.documents.publishing import XmlRun
from benchmarks.documents.report import XmlRow
from palio.cli.bench.measuring import machine, show_setup
from palio.cli.program.terminal import error_console

SIZES = (1.66, 3, 5, 8, 10)
SUBSCRIBERS = (1, 2, 4, 8, 16)
SHARES = (1.44, 2.0, 2.44, 3.0, 3.33)
CONDITIONS = (10_000, 100_000)
WISHES = (100, 300, 1_000)
_SYNC = "a sync takes so many milliseconds on both sides, as on slower disks; with SQLite (default: as it does)"
Measure = Callable[[argparse.Namespace, XmlRun], list[XmlRow]]


def _in_spark(given: argparse.Namespace, run: XmlRun) -> list[XmlRow]:
    from benchmarks.documents.spark import extraction  # noqa: PLC0415 - no other row needs Spark and Java

    return extraction(given.size[0], given.documents, run.rounds, run.tell)


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
    "overload": (
        "more than it can take",
        lambda given, run: publishing.overload(run, given.share, 1.66, given.overload),
    ),
    "conditions": (
        "different conditions on real documents",
        lambda given, run: conditions.on_real(given.conditions, run.tell, run.absent),
    ),
    "subscriptions": (
        "many subscriptions on few paths",
        lambda given, run: conditions.on_cards(given.conditions[0], run.tell),
    ),
    "has": (
        "conditions about elements of lists",
        lambda given, run: conditions.of_elements(given.conditions[-1], run.tell),
    ),
    "bindings": (
        "publishes a second, by the way in",
        lambda given, run: bindings.bindings(run, given.size),
    ),
    "tables": (
        "tables by strategy, with XPath subscriptions",
        lambda given, run: tables.table_sizes(given.wishes, run.tell),
    ),
    "spark": ("values of paths from a table in Spark", _in_spark),
}
QUICK = {
    "size": [1.66], "seconds": 0.3, "rounds": 1, "publishers": 4, "subscribers": [1, 2], "store": ["sqlite"],
    "overload": 0.5, "share": [1.44], "conditions": [200, 400],
    "documents": 500, "wishes": [20, 40],
}  # fmt: skip
USUAL = {
    "size": [*SIZES], "seconds": 4.0, "rounds": 2, "publishers": 64, "subscribers": [*SUBSCRIBERS],
    "store": ["sqlite", "postgresql"], "overload": 600.0, "share": [*SHARES], "conditions": [*CONDITIONS],
    "documents": 1_000_000, "wishes": [*WISHES],
}  # fmt: skip


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="palio bench xml", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--row", action="append", choices=ROWS, help="one of them, repeatable (default: all)")
    add("--size", type=float, action="append", help=f"KB of a document, repeatable (default {SIZES})")
    add("--documents", type=int, help=f"in Spark's table (default {USUAL['documents']:,})")
    add("--store", action="append", choices=("sqlite", "postgresql"), help="repeatable (default: both)")
    add("--publishers", type=int, help=f"at a time (default {USUAL['publishers']})")
    add("--subscribers", type=int, action="append", help=f"repeatable (default {SUBSCRIBERS})")
    add("--conditions", type=int, action="append", help=f"repeatable (default {CONDITIONS})")
    add("--wishes", type=int, action="append", help=f"XPath subscriptions, repeatable (default {WISHES})")
    add("--share", type=float, action="append", help=f"of what it can take, repeatable (default {SHARES})")
    add("--overload", type=float, help=f"seconds of each overload (default {USUAL['overload']:g})")
    add("--seconds", type=float, help=f"of one measurement (default {USUAL['seconds']:g})")
    add("--sync", type=float, default=0.0, metavar="MS", help=_SYNC)
    add("--rounds", type=int, help=f"of which the best counts (default {USUAL['rounds']})")
    add("--folder", type=Path, help="where journals are put (default: a temporary folder)")
    add("--json", action="store_true", help="the rows as JSON")
    add("--plots", type=Path, metavar="FOLDER", help="a picture of each row there, as SVG")
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
        "sync": f"{arguments.sync:g} ms at least, by a library before the C library"
        if arguments.sync
        else "of this disk",
        "seconds": arguments.seconds,
        "rounds": arguments.rounds,
    }


def main(words: Sequence[str] | None = None) -> None:
    arguments = parsed(words)
    if arguments.sync and not syncing.is_set():
        sys.exit(syncing.run_again("benchmarks.xml", sys.argv[1:] if words is None else words, arguments.sync))
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
            Path(place),
            arguments.publishers,
            arguments.seconds,
            arguments.rounds,
            told.update,
            absent,
            arguments.sync,
        )
        for name in arguments.row:
            title, measure = ROWS[name]
            rows = measure(arguments, run)
            found += rows
            console.print(Text(title, style="bold"))
            report.show_rows(console, rows, judged=not arguments.quick)
        for sentence in dict.fromkeys(absent):
            console.print(Text(f"{sentence}.", style="yellow"))
    if arguments.plots:
        for picture in report.plot(found, arguments.plots):
            console.print(Text(f"{picture} is written.", style="dim"))
    if arguments.json:
        print(msgspec.json.encode(report.document(said, found)).decode())


if __name__ == "__main__":
    main()
