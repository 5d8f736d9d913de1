"""Events and patterns of the patterns' benchmark, and the self-join that says the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f

KINDS = 20
RATE = 20_000  # events a second of the time that they tell: a window has six million, so nothing expires
WINDOW = 300
PRICES = 100


class Choice(msgspec.Struct, frozen=True):
    """What one pattern is about: two kinds, and prices between two limits.

    Several patterns share the kinds and divide the prices among them, so that an event is a hit of one at most.
    """

    first: str
    second: str
    low: float
    high: float

    @staticmethod
    def of(number: int, count: int) -> Choice:
        pair, place = number % (KINDS // 2), number // (KINDS // 2)
        width = PRICES / max(1, count // (KINDS // 2))
        return Choice(f"k{2 * pair}", f"k{2 * pair + 1}", place * width, (place + 1) * width)

    def pattern(self, window: int = WINDOW) -> str:
        price = f"price >= {self.low} and price < {self.high}"
        return (
            f'A[kind = "{self.first}" and {price}] then B[kind = "{self.second}" and {price}] '
            f"within {window} s by symbol"
        )

    def self_join(self, events: Any) -> Any:
        price = f"price >= {self.low} and price < {self.high}"
        a = events.where(f"kind = '{self.first}' and {price}").alias("a")
        b = events.where(f"kind = '{self.second}' and {price}").alias("b")
        after = (f.col("b.time") > f.col("a.time")) & (f.col("b.position") > f.col("a.position"))
        soon = f.col("b.time") <= f.col("a.time") + f.expr(f"interval {WINDOW} seconds")
        joined = a.join(b, (f.col("a.symbol") == f.col("b.symbol")) & after & soon)
        return joined.select(
            "a.symbol", f.col("a.position").alias("first"), f.col("b.position").alias("second")
        )


def write_events(folder: Path, count: int, keys: int, files: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    folder.mkdir()
    size = count // files
    for number in range(files):
        pq.write_table(events_table(chance, number * size, size, keys), folder / f"{number:04}.parquet")


def events_table(chance: Any, first: int, size: int, keys: int) -> pa.Table:
    """So many events from a position on."""
    at = np.arange(first, first + size)
    return pa.table(
        {
            "kind": pa.array([f"k{one}" for one in range(KINDS)]).take(
                pa.array(chance.integers(0, KINDS, size))
            ),
            "symbol": pa.array(np.char.add("s", chance.integers(0, keys, size).astype(str))),
            "price": pa.array(chance.uniform(0, PRICES, size)),
            "time": pa.array(at * (1_000_000 // RATE), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "position": pa.array(at),
        }
    )
