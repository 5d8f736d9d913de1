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
    """What the two steps of one pattern are: conditions that filters and SQL have in common."""

    first: str
    second: str

    @staticmethod
    def of(number: int, count: int) -> Choice:
        """One of several that share the kinds and divide the prices: an event is a hit of one at most."""
        pair, place = number % (KINDS // 2), number // (KINDS // 2)
        width = PRICES / max(1, count // (KINDS // 2))
        price = f"price >= {place * width} and price < {(place + 1) * width}"
        return Choice(f'kind = "k{2 * pair}" and {price}', f'kind = "k{2 * pair + 1}" and {price}')

    @staticmethod
    def of_prices() -> Choice:
        """One with ranges alone, for which there are as many hits as for one of two kinds."""
        share = PRICES / KINDS
        return Choice(f"price < {share}", f"price >= {PRICES - share}")

    def pattern(self, window: int = WINDOW) -> str:
        return f"A[{self.first}] then B[{self.second}] within {window} s by symbol"

    def self_join(self, events: Any) -> Any:
        a, b = events.where(self.first).alias("a"), events.where(self.second).alias("b")
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
