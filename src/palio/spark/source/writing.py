"""`write` and `write_stream`: rows of any table become events, with ids made of what they say.

An id is a hash of the sink's name, the canonical row (its encoded attributes, and the properties that it has
beside them) and its occurrence: of rows that say the same, which one it is. Rows that say the same are brought
together in one task to be counted, so the ids of a table are the same set however it is divided, and whoever
writes it again writes the same events. In a stream they are also of a batch, whose content Spark repeats
exactly: the same row in a later batch is another event.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from palio.matching.projection import properties_of
from palio.spark.arrow import Batches, arrow_schema, batch_of
from palio.spark.source.format import register
from palio.spark.source.sink import PAYLOAD, PROPERTIES, bodies_of

_ROW_SCHEMA = f"id string, {PAYLOAD} binary, {PROPERTIES} binary"
_ROW = arrow_schema(_ROW_SCHEMA)
ID_BYTES = 20


def write(frame: DataFrame, url: str, *, sink: str, id: str | None = None) -> None:
    """Publish every row, and return when all are confirmed: each is there once, however often this is tried.

    A column is an attribute, null is absent; or a binary column `payload` has encoded notifications, and one
    called `properties` what they have beside (priority, lifetime, content that filters do not see): as `read`
    gives them, where they may also be called `_payload` and `_properties`. `sink` is the name under which the
    broker knows what it has got: use another one to write the same rows once more.
    `id` names a column with ids of the rows, if they have any.

    Raises `WrongOption`, `UnsupportedColumn`, and what the broker refuses with.
    """
    register(frame.sparkSession)
    writer = identified(frame, sink, id).write.format("palio").mode("append")
    writer.option("url", url).option("sink", sink).save()


def write_stream(
    frame: DataFrame, url: str, *, sink: str, checkpoint: str, id: str | None = None, **trigger: Any
) -> StreamingQuery:
    """The same for a stream, from where its checkpoint says. `trigger` is as in `DataStreamWriter.trigger`."""
    register(frame.sparkSession)
    writer = identified(frame, sink, id).writeStream.format("palio").option("checkpointLocation", checkpoint)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.option("url", url).option("sink", sink).start()


def identified(frame: DataFrame, sink: str, id: str | None = None) -> DataFrame:
    """The rows as `format("palio")` publishes them: an id, and the encoded notification."""

    def encode(batches: Batches) -> Batches:
        for batch in batches:
            bodies = list(bodies_of(batch, id or ""))
            ids, said = [body.id for body in bodies], [body.attributes for body in bodies]
            yield batch_of(_ROW, ids, said, [properties_of(body) for body in bodies])

    encoded = frame.mapInArrow(encode, _ROW_SCHEMA)
    if id is not None:
        return encoded

    def number(batches: Batches) -> Batches:
        scope = _scope(sink)
        seen: Counter[bytes] = Counter()
        for batch in batches:
            rows, properties = (batch.column(name).to_pylist() for name in (PAYLOAD, PROPERTIES))
            said = zip(rows, properties, strict=True)
            ids = [_id_of(scope, row + (more or b""), seen) for row, more in said]
            yield batch_of(_ROW, ids, rows, properties)

    return encoded.repartition(PAYLOAD, PROPERTIES).mapInArrow(number, _ROW_SCHEMA)


def _scope(sink: str) -> bytes:
    """What ids are ids within: the sink, and in a stream the query and the batch."""
    context = TaskContext.get()
    names = ("sql.streaming.queryId", "streaming.sql.batchId")
    found = [None if context is None else context.getLocalProperty(name) for name in names]
    return "\0".join([sink, *(one or "" for one in found)]).encode()


def _id_of(scope: bytes, row: bytes, seen: Counter[bytes]) -> str:
    row_hash = hashlib.blake2b(row, key=hashlib.blake2b(scope).digest(), digest_size=ID_BYTES).digest()
    occurrence = seen[row_hash]
    seen[row_hash] += 1
    return hashlib.blake2b(row_hash + occurrence.to_bytes(8), digest_size=ID_BYTES).hexdigest()
