"""What the Python workers of a session hold together while an index of many subscriptions is built and used.

The figure is PSS: memory that several processes share is counted once, by parts. It is sampled while the work
goes on, over all Python processes below this one's JVM.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from rich.console import Console

import palio.spark
from benchmarks.workloads import CHUNK, WORKLOADS, events, filter_text, subscriptions, table

BAR = 2 << 30
EVENTS = 2_000
_EVERY = 0.2


def run(console: Console, spark: Any, folder: Path, size: int) -> None:
    workload = WORKLOADS["ranges"]
    path = folder / f"ranges-{size}-texts.parquet"
    if not path.exists():
        _write_filters(path, size)
    content = table(workload, events(workload, EVENTS))
    content = content.add_column(0, "event_id", pyarrow.array(range(EVENTS), pyarrow.int64()))
    pyarrow.parquet.write_table(content, folder / "some-events.parquet", row_group_size=256)
    with Watch() as building:
        shards = palio.spark.build_shards(spark.read.parquet(str(path)))
    found = palio.spark.match(spark.read.parquet(str(folder / "some-events.parquet")), shards)
    with Watch() as matching:
        found.write.format("noop").mode("overwrite").save()
    for what, watch in (("build", building), ("match", matching)):
        console.print(
            f"{what}: {size:,} subscriptions in {len(shards.reports)} shards, {EVENTS:,} events, "
            f"{watch.seconds:,.1f} s; {watch.processes} Python processes together at most "
            f"{watch.most / 2**20:,.0f} MB (bar {BAR / 2**20:,.0f})"
        )


def _write_filters(path: Path, size: int) -> None:
    workload = WORKLOADS["ranges"]
    drawn = subscriptions(workload, size)
    schema = pyarrow.schema([("subscription_id", pyarrow.int64()), ("filter", pyarrow.string())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, size, CHUNK):
            ids = range(start, min(start + CHUNK, size))
            texts = [filter_text(workload, drawn, one) for one in ids]
            writer.write_table(pyarrow.table([list(ids), texts], schema=schema))


class Watch:
    """The most that the Python workers below us hold together, while it is open; and how long that was."""

    def __init__(self) -> None:
        self.most = 0
        self.processes = 0
        self.seconds = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self.seconds = -time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds += time.perf_counter()
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            found = [_held_by(one) for one in python_workers()]
            if sum(found) > self.most:
                self.most, self.processes = sum(found), len(found)


def python_workers() -> list[int]:
    """The processes of Spark's Python daemon that descend from this one."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [one for one in numbers if b"pyspark.daemon" in _read(one, "cmdline").split(b"\0") and _is_ours(one)]


def _is_ours(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        after_name = _read(process, "stat").rpartition(b")")[2].split()
        process = int(after_name[1]) if after_name else 0
    return False


def _held_by(process: int) -> int:
    lines = _read(process, "smaps_rollup").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))


def _read(process: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:  # it has ended meanwhile
        return b""
