"""`history`: lake and journals as one table, cut exactly where the lake ends.

One version of the lake says for each journal up to where it has everything; the journal is read after that. So
no event is there twice, and none is missing, whatever is archived and trimmed meanwhile: a journal that has
been trimmed beyond the cut before it was read is an error, not a gap.

A journal that came back older than the lake has it is an error, too, until it is archived again: only the lake
can keep what it was apart from what it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

from palio.language import PALIO, read_filter
from palio.model.filter import Filter
from palio.spark.frames import quoted
from palio.spark.lake.archiving import position_of
from palio.spark.lake.table import read_lake
from palio.spark.source.moments import Moment, moment
from palio.spark.source.reading import read, struct_of
from palio.spark.source.rows import BRANCH
from palio.store.lake.manifests import Lake, LakeState


def history(
    spark: SparkSession,
    lake: str,
    url: str | None = None,
    *,
    schema: str | StructType | None = None,
    filter: str | Filter | None = None,
    dialect: str = PALIO,
    since: Moment = None,
    until: Moment = None,
    **options: Any,
) -> DataFrame:
    """Everything that was published: what the lake has, and what the journals of `url` have after that.

    Columns are those of `palio.spark.read`, and so are filter, dialect, times and options. Without a `url` it
    is what the lake has. Raises `NoLake`, and what `read` raises.
    """
    place = Lake(lake)
    state = place.state()
    wanted = None if schema is None else struct_of(schema)
    parsed = None if filter is None else read_filter(filter, dialect)
    begin, end = moment("since", since, 0.0), moment("until", until, float("inf"))
    old = read_lake(spark, place, schema=wanted, filter=parsed, since=begin, until=end, state=state)
    if url is None:
        return old
    limits = {"filter": parsed, "since": begin, "until": end, **options}
    return old.unionByName(after_lake(spark, state, url, wanted, **limits))


def after_lake(
    spark: SparkSession, state: LakeState, url: str, schema: StructType | None, **limits: Any
) -> DataFrame:
    """What journals have after one version of a lake; `limits` are those of `palio.spark.read`."""
    limits["startingOffsets"] = json.dumps(position_of(state).to_json())
    return _in_branches(state, schema, lambda columns: read(spark, url, schema=columns, **limits))


def _in_branches(
    state: LakeState, wanted: StructType | None, read: Callable[[StructType | None], DataFrame]
) -> DataFrame:
    """What journals have after a lake, with the branches that it knows."""
    beside = f"_{BRANCH}"
    if not state.forks or (wanted is not None and beside not in wanted.fieldNames()):
        return read(wanted)
    if wanted is None:
        events = read(None)
        return events.withColumn(BRANCH, _present_branch(state, "journal", "sequence"))
    names = wanted.fieldNames()
    more = struct_of("_journal string, _sequence bigint").fields
    events = read(struct_of([*wanted.fields, *[one for one in more if one.name not in names]]))
    return events.withColumn(beside, _present_branch(state, "_journal", "_sequence")).select(
        *[quoted(name) for name in names]
    )


def _present_branch(state: LakeState, journal: str, sequence: str) -> Column:
    """The branch in which journals are now, for numbers that were given before."""
    found = functions.lit(None).cast("string")
    for name, forks in state.forks.items():
        again = (functions.col(journal) == name) & (functions.col(sequence) <= state.given(name, len(forks)))
        found = functions.when(again, functions.lit(forks[-1].incarnation)).otherwise(found)
    return found
