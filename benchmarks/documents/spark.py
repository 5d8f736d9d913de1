"""Values of XPaths from a table of documents in Spark: `extract` beside Spark's own `xpath_string`.

Both read the same Parquet and write their columns to the sink that keeps nothing. What they find is compared on
some documents first. Spark parses a document anew for each column, so it is given fewer of them, and rates are
compared; it is said of how many.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import palio.spark
from benchmarks.documents.cards import card_family, cards
from benchmarks.documents.report import XmlRow
from benchmarks.spark_timing import best, new_session, write

PATHS: Final = (50, 1)
BARS: Final = {50: 5.0, 1: 0.3}
DOCUMENTS: Final = 1_000_000
FOR_SPARK: Final = 20_000  # xpath_string takes some milliseconds for 50 columns
_DIFFERENT: Final = 5_000  # the rest are these again
_COMPARED: Final = 100
_FILES: Final = 16


def extraction(
    kilobytes: float, documents: int = DOCUMENTS, rounds: int = 2, told: Callable[[str], None] = lambda _: None
) -> list[XmlRow]:
    """50 paths, and one, of so many documents of so many KB."""
    rows = []
    fewer = min(documents, FOR_SPARK)
    with tempfile.TemporaryDirectory() as folder, new_session(os.cpu_count() or 1) as spark:
        told("Documents are written for Spark.")
        all, some = f"{folder}/all", f"{folder}/some"
        content = cards(min(_DIFFERENT, fewer), kilobytes, measures=True)
        for place, number in ((all, documents), (some, fewer)):
            _written(place, content, number)
        for paths in PATHS:
            what = "1 path" if paths == 1 else f"{paths} paths"
            told(f"{what} of {documents:,} documents")
            ours, theirs = (make(spark.read.parquet(some), paths) for make in (_extracted, _by_spark))
            _compare(ours, theirs)
            write(ours)  # workers and classes are loaded
            write(theirs.limit(_COMPARED))
            seconds = best(rounds, lambda: write(_extracted(spark.read.parquet(all), paths)))  # noqa: B023
            told(f"{what} by xpath_string, of {fewer:,} documents")
            spark_seconds = best(rounds, lambda: write(theirs))  # noqa: B023
            rate, yardstick = documents / seconds, fewer / spark_seconds
            rows.append(
                XmlRow(
                    "spark",
                    f"{what} of {documents:,} documents of {kilobytes:g} KB, documents a second",
                    rate,
                    yardstick,
                    f"{paths} of Spark's xpath_string, {fewer:,} documents",
                    rate / yardstick,
                    BARS[paths],
                    x=paths,
                )
            )
    return rows


def _written(place: str, content: list[bytes], number: int) -> None:
    """Parquet of so many documents, in a few files of the same size."""
    Path(place).mkdir()
    of_file = math.ceil(number / _FILES)
    for file in range(_FILES):
        here = min(of_file, number - file * of_file)
        if here <= 0:
            return
        documents = pa.array(
            [content[(file * of_file + one) % len(content)] for one in range(here)], pa.binary()
        )
        pq.write_table(pa.table({"document": documents}), f"{place}/{file:02}.parquet", row_group_size=10_000)


def _expressions(paths: int) -> list[str]:
    """Measures last: of one path it is the price."""
    family = card_family(max(3, paths))
    return [one.expression for one in (family.paths if paths > 1 else family.paths[2:3])]


def _extracted(documents: Any, paths: int) -> Any:
    table = palio.spark.extract(documents, card_family(max(3, paths)), _expressions(paths))
    return table.drop("document")


def _by_spark(documents: Any, paths: int) -> Any:
    """It knows nothing of namespaces: names are what is written."""
    texts = documents.selectExpr("cast(document AS string) AS text")
    said = [f"xpath_string(text, '{one.replace('c:', '')}') AS `{one}`" for one in _expressions(paths)]
    return texts.selectExpr(*said)


def _compare(ours: Any, theirs: Any) -> None:
    found, expected = ([tuple(row) for row in one.limit(_COMPARED).collect()] for one in (ours, theirs))
    assert found, "There are no documents."
    for mine, yours in zip(found, expected, strict=True):
        read = tuple(
            float(text) if isinstance(value, float) else text for value, text in zip(mine, yours, strict=True)
        )
        assert mine == read, f"{mine} is not what Spark finds: {read}"
