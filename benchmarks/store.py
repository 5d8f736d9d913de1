"""How fast a broker's store is: `python -m benchmarks.store [--events N] [--group G] [--url URL]`.

What a durable event costs on disk is one row in the journal, one in the spool of its subscription, and the end
of that row when it is acknowledged. Each of the three is measured alone, then all of them together, as a broker
asks for them: a group of events is in the writer's hands while the next one is being submitted.

The yardstick is SQLite without us: the same bytes into tables with the same keys, by executemany and commit,
the same number of rows in each commit, with the same settings. And since all of it ends in the disk:
how often a second a plain file can be written and synced.

`busy` has another thread beside it that computes in Python all the time, as the event loop of a loaded broker
does: it says what the writer loses to that.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from palio.cli.bench.measuring import machine, show_setup
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Append, Remove, Spool, StoreEffect
from palio.routing.occurrences import Failed, StoreMessage
from palio.store import SqlStore
from palio.store.backend import Sync
from palio.store.records import encode_body, encode_letter
from palio.store.sqlite import CHECKPOINT_PAGES

EVENTS = 40_000
GROUP = 500
EVENT_BYTES = 200
IN_FLIGHT = 2
SYNCS = 100

Work = Callable[[int, list[Envelope]], list[StoreEffect]]


def events(count: int) -> list[Envelope]:
    """Events of about 200 bytes, numbered as a journal wants them."""
    text = "x" * (EVENT_BYTES - 60)
    return [
        Envelope(
            "bench",
            number,
            1e9 + number / 1e4,
            0,
            "bench",
            Notification({"key": number, "value": number / 7, "text": text}, id=f"event-{number}"),
        )
        for number in range(1, count + 1)
    ]


def append(token: int, group: list[Envelope]) -> list[StoreEffect]:
    return [Append(token, tuple(group), "publisher")]


def spool(token: int, group: list[Envelope]) -> list[StoreEffect]:
    letters = tuple([(one.sequence, 0, one) for one in group])
    return [Spool(token, "subscription", add=letters, position=(("bench", group[-1].sequence),))]


def acknowledge(token: int, group: list[Envelope]) -> list[StoreEffect]:
    return [Spool(token, "subscription", remove=tuple([one.sequence for one in group]))]


def in_groups(envelopes: list[Envelope], size: int) -> list[list[Envelope]]:
    return [envelopes[start : start + size] for start in range(0, len(envelopes), size)]


def submissions(what: str, envelopes: list[Envelope], size: int) -> list[list[StoreEffect]]:
    """What a broker asks for: to confirm, to spool, to end, or all of it for one group after the other."""
    groups = in_groups(envelopes, size)
    if what != "all three":
        return [EACH[what](number, group) for number, group in enumerate(groups, 1)]
    empty: list[Envelope] = []
    return [
        [
            *(append(1, first) if first else ()),
            *(spool(2, second) if second else ()),
            *(acknowledge(3, third) if third else ()),
        ]
        for first, second, third in zip(
            [*groups, empty, empty], [empty, *groups, empty], [empty, empty, *groups], strict=True
        )
    ]


EACH: dict[str, Work] = {"append": append, "spool": spool, "acknowledge": acknowledge}


class Timed:
    """A store, and how long it takes for what it is given."""

    def __init__(self, url: str, sync: Sync) -> None:
        self._changed = threading.Condition()
        self._answered = self._asked = 0
        self._failed: list[Failed] = []
        self.store = SqlStore.open(url, broker="bench", completed=self._completed, sync=sync)
        self.run([[Remove(0, "subscription"), Spool(0, "subscription", Filter.parse("true"))]])

    def _completed(self, answers: list[StoreMessage]) -> None:
        with self._changed:
            self._failed += [answer for answer in answers if isinstance(answer, Failed)]
            self._answered += len(answers)
            self._changed.notify()

    def run(self, groups: list[list[StoreEffect]]) -> float:
        """Seconds until all of it is on disk."""
        in_flight: deque[int] = deque()
        started = time.perf_counter()
        for effects in groups:
            self._asked += len(effects)
            in_flight.append(self._asked)
            self.store.submit(effects)
            if len(in_flight) >= IN_FLIGHT:
                self._wait_for(in_flight.popleft())
        self._wait_for(self._asked)
        return time.perf_counter() - started

    def _wait_for(self, count: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._answered >= count)
            if self._failed:
                raise SystemExit(f"The store refused to write: {self._failed[0].reason}")


class Bare:
    """The yardstick: the same rows by the driver of SQLite alone."""

    def __init__(self, path: Path, sync: Sync) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = WAL",
            f"PRAGMA synchronous = {sync}",
            f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}",
            "CREATE TABLE journal (broker INTEGER, sequence INTEGER, time REAL, publisher TEXT, id TEXT, "
            "body BLOB, PRIMARY KEY (broker, sequence)) WITHOUT ROWID",
            "CREATE TABLE spool (subscription INTEGER, delivery INTEGER, attempts INTEGER, envelope BLOB, "
            "PRIMARY KEY (subscription, delivery)) WITHOUT ROWID",
        ):
            self._connection.execute(statement)

    def run(self, what: str, envelopes: list[Envelope], size: int) -> float:
        rows = [
            (
                (
                    1,
                    one.sequence,
                    one.time,
                    "publisher",
                    one.notification.id,
                    encode_body(one.notification.body),
                ),
                (1, one.sequence, 0, encode_letter(one)),
                (1, one.sequence),
            )
            for one in envelopes
        ]
        statements = {
            "append": "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?)",
            "spool": "INSERT INTO spool VALUES (?, ?, ?, ?)",
            "acknowledge": "DELETE FROM spool WHERE subscription = ? AND delivery = ?",
        }
        started = time.perf_counter()
        for start in range(0, len(rows), size):
            self._connection.execute("BEGIN IMMEDIATE")
            for index, (name, statement) in enumerate(statements.items()):
                if what in (name, "all three"):
                    some = [row[index] for row in rows[start : start + size]]
                    self._connection.executemany(statement, some)
            self._connection.execute("COMMIT")
        return time.perf_counter() - started


class Busy:
    """A thread that computes as long as it is wanted."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._compute, daemon=True)
        self.rounds = 0

    def _compute(self) -> None:
        while not self._ended.is_set():
            sum(range(100))
            self.rounds += 1

    def __enter__(self) -> Busy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def syncs(folder: Path) -> float:
    """How often a second a page of a plain file can be written and synced."""
    with open(folder / "plain", "wb", buffering=0) as file:
        started = time.perf_counter()
        for _ in range(SYNCS):
            file.write(bytes(4_096))
            os.fdatasync(file.fileno())
        return SYNCS / (time.perf_counter() - started)


def measure(
    table: Table, folder: Path, sync: Sync, envelopes: list[Envelope], *, size: int, url: str | None
) -> None:
    chosen = url or f"sqlite:///{folder}/{sync}.db"
    timed, bare = Timed(chosen, sync), Bare(folder / f"bare-{sync}.db", sync)
    head = timed.store.statistics().head
    for what in (*EACH, "all three", "all three, busy"):
        mixed = what.startswith("all three")
        if what == "append" or mixed:
            envelopes = [msgspec.structs.replace(one, sequence=head + n) for n, one in enumerate(envelopes, 1)]
            head += len(envelopes)
        groups = submissions("all three" if mixed else what, envelopes, size)
        before = timed.store.statistics().commits
        if what.endswith("busy"):
            with Busy():
                seconds = timed.run(groups)
        else:
            seconds = timed.run(groups)
        commits = timed.store.statistics().commits - before
        yardstick = bare.run("all three" if mixed else what, envelopes, round(len(envelopes) / commits))
        count = len(envelopes)
        table.add_row(
            f"{what}, sync {sync}",
            f"{count / seconds:,.0f}",
            f"{count / yardstick:,.0f}",
            f"{yardstick / seconds:.2f}",
            f"{count / commits:,.0f}",
        )
    timed.store.close()


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="palio bench store", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=EVENTS, help=f"how many events (default {EVENTS:,})")
    parser.add_argument(
        "--group", type=int, default=GROUP, help=f"events submitted at a time (default {GROUP})"
    )
    parser.add_argument("--url", help="a database of PostgreSQL instead of a file")
    parser.add_argument("--folder", type=Path, help="where the files are put (default: a temporary folder)")
    arguments = parser.parse_args(words)
    console = Console()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        envelopes = events(arguments.events)
        size = len(encode_body(envelopes[0].notification.body))
        show_setup(
            console,
            {
                **machine(),
                "sqlite": sqlite3.sqlite_version,
                "events": arguments.events,
                "bytes": size,
                "group": arguments.group,
                "syncs/s": round(syncs(folder)),
            },
        )
        table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("what")
        for title in ("events/s", "bare SQLite", "ratio", "events a commit"):
            table.add_column(title, justify="right", no_wrap=True)
        for sync in ("full", "normal"):
            measure(table, folder, cast("Sync", sync), envelopes, size=arguments.group, url=arguments.url)
        console.print(table)


if __name__ == "__main__":
    main()
