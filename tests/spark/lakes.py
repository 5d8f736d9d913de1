"""What tests of the lake have in common: events for it, and what a lake and journals say."""

from __future__ import annotations

import shutil
from datetime import UTC
from pathlib import Path

from palio.spark.lake.archiving import archive
from palio.spark.source.journals import Span, WantedEvents, open_journals
from palio.store.lake.manifests import Lake
from tests.spark.filling import fill

EVENTS = 100


class Killed(Exception):
    """The job died here."""


def events(count, first=0):
    return [{"class": f"c{n % 3}", "x": n, "symbol": f"S{n % 7}"} for n in range(first, first + count)]


def content(frame):
    """What a table of events says, in order."""
    rows = frame.select("journal", "sequence", "id", "time", "publisher", "payload").collect()
    return sorted(
        (row.journal, row.sequence, row.id, row.time.astimezone(UTC), row.publisher, bytes(row.payload))
        for row in rows
    )


def journal(url):
    """The same of what journals say, without Spark."""
    names = ("journal", "sequence", "id", "time", "publisher", "payload")
    with open_journals(url) as journals:
        spans = [Span(one.journal, one.trimmed, one.head) for one in journals.standings()]
        rows = [
            row for span in spans for batch in journals.read(span, WantedEvents()) for row in batch.to_pylist()
        ]
    return sorted(tuple(row[name] for name in names) for row in rows)


def fill_with_small_files(spark, folder: Path) -> None:
    """A journal, and a lake of fifteen small files: three classes of events, each in five spans."""
    fill(f"sqlite:///{folder}/palio.db", events(EVENTS))
    archive(spark, f"sqlite:///{folder}/palio.db", str(folder / "lake"), rows_per_task=EVENTS // 5)
    assert len(Lake(folder / "lake").state().files) == 15


def copied(prepared: Path, folder: Path) -> str:
    """A lake of one's own, with its journal; nothing in it says where it lies."""
    shutil.copytree(prepared, folder, dirs_exist_ok=True)
    return str(folder / "lake")
