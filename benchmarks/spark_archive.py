"""How fast a journal becomes a lake: `palio bench spark --archive --events 1000000`.

A store on SQLite is filled as a broker fills it, then archived, twice into a lake of its own: the first time
everything has to warm up. The bar is 100 thousand events a second. The yardstick is Spark without us: the same
rows, read before and cached, written as Parquet.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console

import palio.spark
from benchmarks.store import Timed, events, submissions

BAR = 100_000
_GROUP = 5_000


def run(console: Console, spark: Any, folder: Path, count: int) -> None:
    path = folder / f"journal-{count}.db"
    url = f"sqlite:///{path}"
    if not path.exists():
        store = Timed(url, "off")
        store.run(submissions("append", events(count), _GROUP))
        store.store.close()
    seconds = []
    for turn in ("first", "second"):
        started = time.perf_counter()
        done = palio.spark.archive(spark, url, str(folder / f"lake-{count}-{turn}"))
        seconds.append(time.perf_counter() - started)
        assert done.events == count, f"{done.events:,} of {count:,} events were archived."
    rows = palio.spark.read(spark, url).cache()
    rows.count()
    started = time.perf_counter()
    rows.write.mode("overwrite").parquet(str(folder / "plain"))
    plain = time.perf_counter() - started
    rows.unpersist()
    console.print(
        f"archive: {count:,} events of 200 bytes; cold {count / seconds[0]:,.0f} events/s, "
        f"warm {count / seconds[1]:,.0f} (bar {BAR:,}); Spark alone writes the rows from its cache at "
        f"{count / plain:,.0f}"
    )
