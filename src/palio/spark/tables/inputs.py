"""Where a job's tables come from: files of lines, Parquet, a lake, the journals of a broker or a store.

Lines are read by Palio, not by Spark: what a number or a time is, is the same as at a broker. What a line says
becomes an encoded notification, and a line that says nothing sensible a row with the reason. A small file is
read by this process, if Spark is on this machine, too: that is done before Spark has begun.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window, functions

from palio.language import PALIO, UnsaidEntry, read_entry, require_dialect
from palio.model.errors import PalioError
from palio.model.formats import JSON_LINES, Reading, file_format
from palio.spark.arrow import Batches, arrow_schema
from palio.spark.errors import UnknownInput
from palio.spark.frames import (
    DIALECT,
    EVENT,
    FILTER,
    PARTITIONS_A_CORE,
    PAYLOAD,
    SUBSCRIPTION,
    lies_evenly,
    travels_by_artifacts,
)
from palio.spark.lookback.history import history
from palio.spark.runtime.session import cores_of
from palio.spark.source.journals import absolute, open_journals
from palio.spark.source.moments import Moment
from palio.spark.source.reading import read, read_stream
from palio.spark.tables.positions import InJournals, InLake, Positioned, with_ids

REASON = "reason"
_STORES = ("palio://", "sqlite://", "postgresql://", "palios://", "quic://")
_LEAST_PARTS = "spark.sql.files.minPartitionNum"
# A file of lines up to this size is small: it takes a fraction of a second, and Spark about one to begin.
SMALL_FILE = 1 << 20


def events_at(spark: SparkSession, place: str, *, id: str | None = None) -> DataFrame:
    """Events with `event_id`, which is the column named, the position in a journal, or the number of a line.

    From a journal or a lake they also have `journal` and `sequence`; from lines a `reason`, which is null
    unless the line cannot be read. Raises `UnknownInput`.
    """
    if has_lines(place):
        return _mapped(spark, place, _event, f"{EVENT} string, {PAYLOAD} binary, {REASON} string")
    return identified(table_at(spark, place), place, id=id)


def identified(events: DataFrame, place: str, *, id: str | None = None) -> DataFrame:
    """Events of a place, or some of them, with their `event_id`. Raises `UnknownInput`."""
    if is_journal(place) or is_lake(place):
        return with_ids(events)
    chosen = id or EVENT
    if chosen not in events.columns:
        raise UnknownInput(place, f"it has no column {chosen!r}; --event-id names the one that is meant.")
    return events.withColumnRenamed(chosen, EVENT)


def positioned_at(spark: SparkSession, place: str) -> Positioned | None:
    """Events of a lake or of journals, any part of which can be had; None for a place of another kind."""
    if is_lake(place):
        return InLake(spark, place)
    return InJournals(spark, place) if is_journal(place) else None


def partitions_of(spark: SparkSession, place: str, events: DataFrame) -> int | None:
    """How `match` shall spread the events of a place: 0, not at all, if they lie in even parts already.

    Only files that Spark reads by itself are looked at. It is told to split them as finely as `match` would
    spread them, unless somebody has told it otherwise; what cannot be split, or not evenly, is spread.
    """
    if has_lines(place) or is_journal(place):
        return None
    cores = cores_of(spark)
    if spark.conf.get(_LEAST_PARTS, None) is None:
        spark.conf.set(_LEAST_PARTS, str(PARTITIONS_A_CORE * cores))
    return 0 if lies_evenly(events, cores) else None


def subscriptions_at(spark: SparkSession, place: str, dialect: str = PALIO) -> DataFrame:
    """Subscriptions: Parquet with the columns, or lines `{"id": …, "filter": "…"}`.

    A filter without an id has the number of its line; one that does not say what it is written in is in
    `dialect`. Raises `UnknownInput` and `UnknownDialect`.
    """
    require_dialect(dialect)
    if has_lines(place):
        columns = f"{SUBSCRIPTION} string, {FILTER} string, {DIALECT} string"
        return _mapped(spark, place, partial(_subscription, dialect=dialect), columns)
    found = parquet_at(spark, place)
    if dialect == PALIO:
        return found
    said = [found[DIALECT].cast("string")] if DIALECT in found.columns else []
    return found.withColumn(DIALECT, functions.coalesce(*said, functions.lit(dialect)))


def table_at(spark: SparkSession, place: str) -> DataFrame:
    """Events with all their columns: of a lake, of journals, or of Parquet. Raises `UnknownInput`."""
    if has_lines(place):
        _require_file(place)
        raise UnknownInput(place, "this takes a lake, journals or Parquet; `palio patterns` takes lines.")
    if is_lake(place):
        return history(spark, place)
    return read(spark, place) if is_journal(place) else parquet_at(spark, place)


def past_events(
    spark: SparkSession, place: str, url: str | None = None, *, since: Moment = None, until: Moment = None
) -> DataFrame:
    """Events to look back on: as `table_at` and, from lines, as `events_at` gives them.

    With the URL of journals, `place` is a lake, and what the journals have after it is there as well. Times are
    those of publication. Raises `UnknownInput`, and what `history` raises.
    """
    if is_lake(place):
        return history(spark, place, url, since=since, until=until)
    if url is not None:
        raise UnknownInput(place, "it is no lake, after which journals could go on.")
    if is_journal(place):
        return read(spark, place, since=since, until=until)
    return events_at(spark, place) if has_lines(place) else parquet_at(spark, place)


def stream_at(spark: SparkSession, place: str, *, rows: int) -> DataFrame:
    """The same as a stream: journals, or a folder into which Parquet files come. Raises `UnknownInput`.

    A journal comes in batches of so many rows. Several journals come as they are: parts of them would not be of
    the same time, and whoever orders events by time would take those of one for late.
    """
    if is_journal(place):
        with open_journals(absolute(place)) as journals:
            alone = len(journals.standings()) == 1
        limit: dict[str, Any] = {"maxRowsPerTrigger": rows} if alone else {}
        return read_stream(spark, place, **limit)
    if is_lake(place):
        raise UnknownInput(place, "a lake is no stream; name the journals that it is made from.")
    return spark.readStream.schema(parquet_at(spark, place).schema).parquet(place)


def is_journal(place: str) -> bool:
    """Whether a place is one of journals: a broker or a store."""
    return place.startswith(_STORES)


def is_lake(place: str) -> bool:
    """Whether a folder is a lake."""
    return (Path(place) / "_palio").is_dir()


def has_lines(place: str) -> bool:
    """Whether a file has an event, or a subscription, in each line."""
    return file_format(place) is JSON_LINES


def _small_file(path: Path) -> pa.RecordBatch | None:
    """The lines of a small file with their numbers, as Spark would find them; None if it has to look itself."""
    if path.suffix == ".gz" or not path.is_file() or path.stat().st_size > SMALL_FILE:
        return None
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    lines = re.split("\r\n|\r|\n", text)
    if not lines[-1]:
        lines.pop()
    numbers = [str(number) for number in range(1, len(lines) + 1)]
    return pa.RecordBatch.from_pydict(
        {"number": numbers, "value": lines}, arrow_schema("number string, value string")
    )


def _lines(spark: SparkSession, place: str) -> DataFrame:
    """The lines of a file with their numbers; of several files, as if they were one, by the order of names.

    Spark reads a file in blocks, in any order and several in a partition. Its own numbering counts on within a
    partition, so a line's place in its block is how far it is from the first one there; and before the block
    are the lines of all earlier ones, which have to be counted.
    """
    block = ("file_path", "file_block_start")
    lines = spark.read.text(place).select(
        "value",
        *[functions.col(f"_metadata.{name}") for name in block],
        functions.monotonically_increasing_id().alias("counted"),
    )
    earlier = Window.orderBy(*block).rowsBetween(Window.unboundedPreceding, -1)
    first, count = functions.min("counted").alias("first"), functions.count("*").alias("lines")
    before = functions.coalesce(functions.sum("lines").over(earlier), functions.lit(0)).alias("before")
    blocks = lines.groupBy(*block).agg(first, count).select(*block, "first", before)
    numbered = lines.join(functions.broadcast(blocks), list(block))
    return numbered.selectExpr("string(before + counted - first + 1) AS number", "value")


def parquet_at(spark: SparkSession, place: str) -> DataFrame:
    """A table of Parquet files as it is. Raises `UnknownInput`."""
    _require_file(place)
    try:
        return spark.read.parquet(place)
    except Exception:  # noqa: BLE001 - whatever it is, it is no Parquet
        reason = f"it is neither Parquet, a lake, nor a file of lines ({', '.join(JSON_LINES.suffixes)})."
        raise UnknownInput(place, reason) from None


def _require_file(place: str) -> None:
    if "://" in place:
        return
    path = Path(place)
    if not path.exists():
        advice = "" if path.suffix else "; `palio spark archive` makes a lake"
        raise UnknownInput(place, f"there is no such file or folder{advice}.")
    if path.is_dir() and not any(path.iterdir()):
        raise UnknownInput(place, "the folder is empty.")
    if not os.access(path, os.R_OK):
        raise UnknownInput(place, "you may not read it.")


def _event(number: str, line: str) -> list[tuple[Any, ...]]:
    """The events of a line: an object, a CloudEvent, or an array of these."""
    try:
        parts = JSON_LINES.read_part(line, Reading())
    except PalioError as problem:
        return [(number, None, str(problem))]
    places = [number if item is None else f"{number}.{item}" for item, _ in parts]
    return [(one.id or place, one.encode(), None) for place, (_, one) in zip(places, parts, strict=True)]


def _subscription(number: str, line: str, *, dialect: str) -> list[tuple[Any, ...]]:
    if line.lstrip().startswith("#"):
        return []
    try:
        said = read_entry(line, number, dialect)
    except PalioError as mistake:
        id = mistake.id if isinstance(mistake, UnsaidEntry) else number
        return [(str(id), line.strip(), PALIO)]  # which is no filter, and will be found to be none
    return [(str(said.id), said.text, said.dialect)]


def _mapped(
    spark: SparkSession, place: str, convert: Callable[[str, str], list[tuple[Any, ...]]], columns: str
) -> DataFrame:
    """The rows of all lines that are not empty."""

    def rows(batches: Batches) -> Batches:
        schema = arrow_schema(columns)
        for batch in batches:
            lines = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            found = [row for number, line in lines if line.strip() for row in convert(number, line)]
            named = [dict(zip(schema.names, row, strict=True)) for row in found]
            yield pa.RecordBatch.from_pylist(named, schema)

    _require_file(place)
    here = None if travels_by_artifacts(spark) else _small_file(Path(place))
    if here is None:
        return _lines(spark, place).mapInArrow(rows, columns)
    return spark.createDataFrame(pa.Table.from_batches(rows(iter([here]))), columns)
