"""Tables on their way through Spark's workers: batches of Arrow, whose columns are said once, as Spark does.

Spark wants to know what comes out of a worker in a text of its own (`id string, time timestamp`); what makes
the batches there needs the same as a schema of Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

Batches = Iterator[pa.RecordBatch]

UTC_MICROSECONDS = pa.timestamp("us", "UTC")
# Simple types, as Spark calls them.
ARROW_TYPES: dict[str, Any] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": UTC_MICROSECONDS,
}


def arrow_schema(columns: str) -> pa.Schema:
    """From Spark's text of columns that have simple types."""
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in map(str.split, columns.split(","))])


def batch_of(schema: pa.Schema, *columns: Any) -> pa.RecordBatch:
    """Columns of a schema as a batch: each an array, or values of which one is made."""
    return pa.RecordBatch.from_pydict(dict(zip(schema.names, columns, strict=True)), schema)
