"""The sink: rows become events. At least once, and by their ids with the effect of once.

A row has an id, and a broker recognises what it has been sent before by (publisher, id); the publisher is the
sink's name, whichever task sends it. So a task that fails half-way, or a query that begins anew, sends the
same ids again, and nothing is there twice; as long as the broker remembers them (`retention`, `remembered`),
and it is the same broker.

The id never comes from a place in a table, as Spark promises none. It is a column, or made of the content:
see `writing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from palio.client.client import connect
from palio.client.environment import credentials
from palio.matching import columns
from palio.matching.projection import body_of
from palio.model.body import Body
from palio.model.errors import InvalidNotification
from palio.model.notification import Notification
from palio.spark.arrow import Batches
from palio.spark.errors import WrongOption
from palio.spark.source.journals import BROKERS, require_open
from palio.spark.source.options import require_known

PAYLOAD = "payload"
PROPERTIES = "properties"
DEFAULT_SINK = "spark"
# `checkpointLocation` is Spark's own, which it hands on to the sinks of streams.
WRITING = ("url", "path", "sink", "idColumn", "checkpointLocation")
# Events in one request, and requests under way: enough for the broker to be busy while we make the next.
BATCH = 1_000
UNDER_WAY = 4
# Seconds within which a confirmation has to come; a broker that is away is waited for as long.
WITHIN = 60.0


class WriteOptions(msgspec.Struct, frozen=True):
    """Where to, under which name, and which column has the ids."""

    url: str
    sink: str
    id: str


def write_options(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> WriteOptions:
    """From Spark's options. Raises `WrongOption`."""
    options = {name.lower(): value for name, value in given.items()}
    url = options.get("url") or options.get("path") or ""
    require_open(url)
    if url.partition("://")[0] not in BROKERS:
        raise WrongOption("url", "Events are published at a broker: palio://host:port.")
    if overwrite:
        raise WrongOption("mode", "What was published cannot be overwritten: use append.")
    require_known(given, WRITING)
    names = {field.name: field.dataType.simpleString() for field in schema.fields}
    id = options.get("idcolumn", "id" if PAYLOAD in names else "")
    if names.get(id) != "string":
        raise WrongOption(
            "idColumn",
            "Every row needs an id, in a column of strings, so that what is sent again is recognised. Name it, "
            "or use palio.spark.write or write_stream, which make ids of the content.",
        )
    return WriteOptions(url, options.get("sink", DEFAULT_SINK), id)


def bodies_of(batch: pa.RecordBatch, id: str) -> Iterator[Body]:
    """Rows as notifications: encoded in a column `payload`, or with a column for each attribute.

    Raises `InvalidNotification` and `UnsupportedColumn`.
    """
    ids = batch.column(id).to_pylist() if id else [None] * batch.num_rows
    payload, properties = (_beside(batch, name) for name in (PAYLOAD, PROPERTIES))
    if payload is not None:
        parts = zip(payload, ids, properties or [None] * len(ids), strict=True)
        found = (body_of(payload or b"\x80", one, more) for payload, one, more in parts)
    else:
        rows = columns.notifications(batch.drop_columns([id]) if id else batch)
        found = (Body(row.encode(), one) for row, one in zip(rows, ids, strict=True))
    for body in found:
        if id and not body.id:
            raise InvalidNotification("id", f"A row has no id in the column {id!r}.")
        yield body


def _beside(batch: pa.RecordBatch, name: str) -> list[Any] | None:
    """A column of what an event is beside its attributes, as events have it or as a schema asks for it."""
    found = next((one for one in (name, f"_{name}") if one in batch.schema.names), None)
    return None if found is None else list(batch.column(found).to_pylist())


class Written(WriterCommitMessage):
    """How many events a task has published."""

    def __init__(self, events: int) -> None:
        self.events = events


def publish_all(batches: Batches, options: WriteOptions) -> Written:
    """Publish all rows, and return when all are confirmed."""
    return asyncio.run(_publish_all(batches, options))


async def _publish_all(batches: Batches, options: WriteOptions) -> Written:
    count = 0
    async with connect(
        options.url,
        **credentials(options.url),
        publisher=options.sink,
        connect_within=WITHIN,
        request_timeout=WITHIN,
    ) as client:
        under_way: set[asyncio.Task[Any]] = set()

        async def send(bodies: list[Body]) -> None:
            nonlocal under_way
            under_way.add(asyncio.ensure_future(client.publish([Notification.of_body(one) for one in bodies])))
            if len(under_way) >= UNDER_WAY:
                done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    one.result()
            else:
                await asyncio.sleep(0)

        waiting: list[Body] = []
        for batch in batches:
            for body in bodies_of(batch, options.id):
                waiting.append(body)
                count += 1
                if len(waiting) == BATCH:
                    await send(waiting)
                    waiting = []
        if waiting:
            await send(waiting)
        await asyncio.gather(*under_way)
    return Written(count)


class _Sink:
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Batches) -> WriterCommitMessage:
        return publish_all(iterator, self._options)


class BatchSink(_Sink, DataSourceArrowWriter):
    """`df.write.format("palio")`."""


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """`df.writeStream.format("palio")`."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Everything is confirmed already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """What was published stays, and is recognised when it comes again."""
