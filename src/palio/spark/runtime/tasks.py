"""Tasks: a function for each of some things, on the executors; a few small results come back.

Things and results are structs, and travel as JSON. Nothing of `sparkContext` is used, so it works over Spark
Connect, too. It is for the files of a lake and the like: results must be few, whatever the data is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from palio.spark.arrow import Batches

Thing = TypeVar("Thing")
Result = TypeVar("Result", bound=msgspec.Struct)


def run_tasks(
    spark: SparkSession, function: Callable[[Thing], Iterable[Result]], things: list[Thing], kind: type[Result]
) -> list[Result]:
    """The results for all things, a task for each thing, in no promised order."""
    if not things:
        return []

    def task(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found = [msgspec.json.encode(one).decode() for one in function(things[number])]
                yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], ["result"])

    count = len(things)
    rows = spark.range(0, count, 1, count).mapInArrow(task, "result string").collect()
    decode = msgspec.json.Decoder(kind).decode
    return [decode(row.result) for row in rows]
