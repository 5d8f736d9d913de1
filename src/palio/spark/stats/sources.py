"""Events from wherever they lie, for the command: a lake, journals, both as one, Parquet, or lines."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from palio.spark.lookback.history import history
from palio.spark.runtime.session import cores_of
from palio.spark.source.reading import read
from palio.spark.tables.inputs import REASON, events_at, has_lines, is_journal, is_lake, table_at


class StatsSource(NamedTuple):
    """A table of events, how many lines were none, and whether the filter has been applied."""

    events: DataFrame
    unreadable: int = 0
    is_filtered: bool = False


def events_from(
    spark: SparkSession,
    place: str,
    *,
    lake: str | None = None,
    filter: str | None = None,
    since: float | None = None,
    until: float | None = None,
) -> StatsSource:
    """The events of a place; with `lake`, those of the lake and then those of the journals of `place`.

    Where a store or a broker can choose by filter and time, it does. Raises `UnknownInput`, `NoLake` and what
    `read` raises.
    """
    if lake is not None or is_lake(place):
        url = None if lake is None else place
        return StatsSource(
            history(spark, lake or place, url, filter=filter, since=since, until=until), is_filtered=True
        )
    if is_journal(place):
        return StatsSource(read(spark, place, filter=filter, since=since, until=until), is_filtered=True)
    if not has_lines(place):
        return StatsSource(table_at(spark, place))
    # A compressed file is one partition, and reading lines is work: it is done once, and spread.
    lines = events_at(spark, place).repartition(2 * cores_of(spark)).persist()
    unreadable = lines.where(f"{REASON} is not null").count()
    return StatsSource(lines.where(f"{REASON} is null").select("payload"), unreadable)
