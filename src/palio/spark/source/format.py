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
from palio.spark.source.offsets import Offset, Positions
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

    def _from(self, start: Offset, standings: list[JournalStanding]) -> Offset:
        """Where all is there that follows: at an offset, unless data may be lost. Else raises `DataLoss`.

        In a journal that came back older that is where it was the same: nobody has read what follows.
        """
        start, gaps = offsets.met(start, standings, lossy=not self._options.fail_on_data_loss)
        if self._options.fail_on_data_loss:
            offsets.require_kept(start.positions, standings)
        offsets.tell(gaps, start.positions)
        positions = offsets.without_lost(start.positions, standings)
        return Offset(positions, start.lineages | offsets.lineages_of(standings))


class BatchReader(_SpanReader, DataSourceReader):
    """Everything that there is when the query is planned; or, with an end for some journals, these up to it.

    What begins after an offset follows what somebody has read up to there: in a journal that came back older
    since, nothing does. Raises `JournalForked`.
    """

    _more: Filter | None = None

    def partitions(self) -> Sequence[InputPartition]:
        standings = self._standings()
        start, end = self._start(standings), self._end(standings)
        rows, lineages = self._options.rows_per_partition, offsets.lineages_of(standings)
        spans = offsets.spans_between(start, end, rows, lineages)
        return [SpanPartition(span, self._options, self._more) for span in spans] or [
            SpanPartition(Span(one.journal, one.head, one.head), self._options) for one in standings[:1]
        ]

    def _start(self, standings: list[JournalStanding]) -> Positions:
        starting = self._options.starting
        if not isinstance(starting, Offset):
            return offsets.start_of(standings)
        known = [one for one in standings if one.journal in starting.positions]
        offsets.require_same(starting, known)
        return offsets.start_of(standings) | self._from(starting, known).positions

    def _end(self, standings: list[JournalStanding]) -> Positions:
        ends = offsets.end_of(standings)
        ending = self._options.ending
        if ending is None:
            return ends
        offsets.require_same(ending, [one for one in standings if ending.lineage(one.journal)])
        for journal, sequence in ending.positions.items():
            if ends.get(journal, 0) < sequence:
                reason = f"The journal {journal!r} ends with {ends.get(journal, 0)}, before {sequence}."
                raise WrongOption("endingOffsets", reason)
        return ending.positions


class PushingReader(BatchReader):
    """The same, with Spark's own conditions as far as they are ours."""

    def pushFilters(self, filters: list[SparkFilter]) -> Iterable[SparkFilter]:  # noqa: N802
        self._more = pushed(filters, self._columns)
        return filters  # Spark checks all of it again


class StreamReader(_SpanReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Everything from an offset on, batch by batch."""

    _goal: Offset | None = None  # of a query that ends with what there was when it began

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        standings = self._standings()
        starting = self._options.starting
        if isinstance(starting, Offset):
            return self._from(starting, standings).to_json()
        latest = starting == "latest"
        positions = offsets.end_of(standings) if latest else offsets.start_of(standings)
        return Offset(positions, offsets.lineages_of(standings)).to_json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        rows = self._options.max_rows_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        standings = self._standings()
        former = Offset.of_json(start)
        begin = self._from(former, standings)
        goal = self._end(standings) if self._goal is None else self._goal
        # A journal that is out of reach now keeps its place.
        end = former.positions | goal.positions
        if isinstance(limit, ReadMaxRows):
            end = offsets.limited(begin.positions, end, limit.max_rows)
        return Offset(end, former.lineages | goal.lineages).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._goal = self._end(self._standings())

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return offsets.end_of(self._standings())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What lies between two offsets, which may be of different lineages of a journal.

        Whenever it is asked for, it is the same: what follows where these two fork. If there is another one by
        now, and it does not have all of that, some of it cannot be had any more.
        """
        upto, standings = Offset.of_json(end), self._standings()
        ends = [JournalStanding(name, 0, at, upto.lineage(name)) for name, at in upto.positions.items()]
        lossy = not self._options.fail_on_data_loss
        former, _ = offsets.met(Offset.of_json(start), ends, lossy=lossy)
        there = [one for one in standings if upto.lineage(one.journal)]
        if not lossy:
            offsets.require_same(upto, there)
            offsets.require_kept(former.positions, standings)
        present, gaps = offsets.met(upto, there, lossy=lossy)
        offsets.tell(gaps, present.positions)
        begin = offsets.without_lost(former.positions, standings)
        rows = self._options.rows_per_partition
        spans = offsets.spans_between(begin, present.positions, rows, upto.lineages)
        return [SpanPartition(span, self._options) for span in spans]

    def commit(self, end: dict[str, Any]) -> None:
        if self._options.reader is not None:
            done = Offset.of_json(end)
            with open_journals(self._options.url) as journals:
                journals.hold(self._options.reader, done.positions, done.lineages)

    def _end(self, standings: list[JournalStanding]) -> Offset:
        return Offset(offsets.end_of(standings), offsets.lineages_of(standings))
