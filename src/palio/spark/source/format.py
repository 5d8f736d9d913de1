"""`format("palio")`: journals as a table, once or as a stream; and a sink.

A partition is a range of a journal's sequences, fixed when the query is planned: reading it again gives the
same rows. Each task opens the journals itself and hands Arrow batches to Spark.

`pushdown` lets Spark's own `where` select at the source, too. Spark keeps one plan for each `load()`: two
different `where`s on one loaded DataFrame would share the last of them, which is why it is off unless asked
for, and why `palio.spark.read` loads anew with every call. What is pushed is never more than what Spark checks
again itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.datasource import Filter as SparkFilter
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from palio.model.filter import Filter
from palio.spark.arrow import Batches
from palio.spark.errors import WrongOption
from palio.spark.source import offsets
from palio.spark.source.columns import Columns, fields_of
from palio.spark.source.journals import JournalStanding, Span, open_journals
from palio.spark.source.options import ReadOptions, read_options
from palio.spark.source.pushing import pushed
from palio.spark.source.rows import GENERIC_SCHEMA
from palio.spark.source.sink import BatchSink, StreamSink, write_options


def register(spark: SparkSession) -> None:
    """Let a session know `format("palio")`. It may be done more than once."""
    spark.dataSource.register(PalioSource)


class PalioSource(DataSource):
    """`spark.read.format("palio")`, and `readStream`, `write`, `writeStream`."""

    @classmethod
    def name(cls) -> str:
        return "palio"

    def schema(self) -> str:
        return GENERIC_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(self.options)
        # Spark refuses a reader that takes filters unless it was told to offer them.
        return (PushingReader if options.pushdown else BatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return StreamReader(read_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        return BatchSink(write_options(self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: N802
        return StreamSink(write_options(self.options, schema, overwrite=overwrite))


class SpanPartition(InputPartition):
    """What one task reads, and how."""

    def __init__(self, span: Span, options: ReadOptions, more: Filter | None = None) -> None:
        super().__init__((span.journal, span.after, span.upto))
        self.span = span
        self.options = options
        self.more = more


class _SpanReader:
    """What a reader of either kind does: how far journals are, and the rows of a partition."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._columns = Columns(fields_of(schema))

    def read(self, partition: InputPartition) -> Batches:
        assert isinstance(partition, SpanPartition)
        with open_journals(partition.options.url) as journals:
            for events in journals.read(partition.span, partition.options.wanted(partition.more)):
                yield self._columns.table(events)

    def _standings(self) -> list[JournalStanding]:
        with open_journals(self._options.url) as journals:
            return journals.standings(lossy=not self._options.fail_on_data_loss)

    def _from(self, start: dict[str, int], standings: list[JournalStanding]) -> dict[str, int]:
        """Where all is there that follows: at an offset, unless data may be lost. Else raises `DataLoss`."""
        if self._options.fail_on_data_loss:
            offsets.require_kept(start, standings)
        return offsets.without_lost(start, standings)


class BatchReader(_SpanReader, DataSourceReader):
    """Everything that there is when the query is planned; or, with an end for some journals, these up to it."""

    _more: Filter | None = None

    def partitions(self) -> Sequence[InputPartition]:
        standings = self._standings()
        start, end = self._start(standings), self._end(standings)
        spans = offsets.spans_between(start, end, self._options.rows_per_partition)
        return [SpanPartition(span, self._options, self._more) for span in spans] or [
            SpanPartition(Span(one.journal, one.head, one.head), self._options) for one in standings[:1]
        ]

    def _start(self, standings: list[JournalStanding]) -> dict[str, int]:
        starting = self._options.starting
        if not isinstance(starting, dict):
            return offsets.start_of(standings)
        known = [one for one in standings if one.journal in starting]
        return offsets.start_of(standings) | self._from(starting, known)

    def _end(self, standings: list[JournalStanding]) -> dict[str, int]:
        ends = offsets.end_of(standings)
        if self._options.ending is None:
            return ends
        for journal, sequence in self._options.ending.items():
            if ends.get(journal, 0) < sequence:
                reason = f"The journal {journal!r} ends with {ends.get(journal, 0)}, before {sequence}."
                raise WrongOption("endingOffsets", reason)
        return self._options.ending


class PushingReader(BatchReader):
    """The same, with Spark's own conditions as far as they are ours."""

    def pushFilters(self, filters: list[SparkFilter]) -> Iterable[SparkFilter]:  # noqa: N802
        self._more = pushed(filters, self._columns)
        return filters  # Spark checks all of it again


class StreamReader(_SpanReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Everything from an offset on, batch by batch."""

    _goal: dict[str, int] | None = None  # of a query that ends with what there was when it began

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        standings = self._standings()
        starting = self._options.starting
        if isinstance(starting, dict):
            return self._from(starting, standings)
        return offsets.end_of(standings) if starting == "latest" else offsets.start_of(standings)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        rows = self._options.max_rows_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        standings = self._standings()
        begin = self._from(start, standings)
        # A journal that is out of reach now keeps its place.
        end = {**start, **(offsets.end_of(standings) if self._goal is None else self._goal)}
        return offsets.limited(begin, end, limit.max_rows) if isinstance(limit, ReadMaxRows) else end

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._goal = self.reportLatestOffset()

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return offsets.end_of(self._standings())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        begin = self._from(start, self._standings())
        spans = offsets.spans_between(begin, end, self._options.rows_per_partition)
        return [SpanPartition(span, self._options) for span in spans]

    def commit(self, end: dict[str, int]) -> None:
        if self._options.reader is not None:
            with open_journals(self._options.url) as journals:
                journals.hold(self._options.reader, end.items())
