"""The operation log of a store as a DataFrame: who has asked a broker for what, and what came of it.

It is read where it lies, SQLite on this machine or PostgreSQL, in ranges of its numbers: a partition each.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from palio.spark.arrow import Batches
from palio.spark.errors import WrongOption
from palio.spark.source.journals import BROKERS, absolute, require_open
from palio.store import journals_in
from palio.store.operation_reading import OperationQuery, OperationReader

# Rows of a partition, by default: some ten megabytes.
ROWS = 100_000
# Rows that are read at a time.
_PAGE = 10_000

DDL = (
    "journal string, number bigint, time timestamp, binding string, principal string, session string, "
    "kind string, subject string, bytes bigint, result string, reason string, sequence bigint, events bigint"
)
_SCHEMA = pa.schema(
    [
        ("journal", pa.string()),
        ("number", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        *[(name, pa.string()) for name in ("binding", "principal", "session", "kind", "subject")],
        ("bytes", pa.int64()),
        ("result", pa.string()),
        ("reason", pa.string()),
        ("sequence", pa.int64()),
        ("events", pa.int64()),
    ]
)


class OperationSpan(msgspec.Struct, frozen=True):
    """A range of an operation log: all rows after one number up to another."""

    journal: str
    after: int
    upto: int


def operations(spark: SparkSession, url: str, *, rows_per_partition: int = ROWS) -> DataFrame:
    """The operation logs of all brokers in a store, as they are now; `journal` is the name of the broker.

    Raises `WrongOption` for a URL that is not one of a store, and what opening a store raises.
    """
    require_open(url)
    if url.partition(":")[0] in BROKERS:
        raise WrongOption("url", "A broker is asked with palio audit; name its store to read the log in Spark.")
    place = absolute(url)
    spans = list(_spans(place, rows_per_partition))

    def read(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _rows(place, spans[number])

    return spark.range(0, len(spans), 1, max(1, len(spans))).mapInArrow(read, DDL)


def _spans(url: str, rows: int) -> Iterator[OperationSpan]:
    for journal in journals_in(url):
        first, last = OperationReader(url, journal).range()
        for after in range(first - 1, last, rows):
            yield OperationSpan(journal, after, min(after + rows, last))


def _rows(url: str, span: OperationSpan) -> Batches:
    reader, after = OperationReader(url, span.journal), span.after
    while after < span.upto:
        page = reader.page(OperationQuery(), after, min(_PAGE, span.upto - after))
        rows = [row for row in page.rows if row.number <= span.upto]
        if rows:
            plain = [{"journal": span.journal, **msgspec.structs.asdict(row)} for row in rows]
            for one in plain:
                one["time"] = round(one["time"] * 1e6)
            yield pa.RecordBatch.from_pylist(plain, _SCHEMA)
        if page.onward is None:
            return
        after = page.onward
