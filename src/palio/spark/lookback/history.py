"""`history`: lake and journals as one table, cut exactly where the lake ends.

One version of the lake says for each journal up to where it has everything; the journal is read after that. So
no event is there twice, and none is missing, whatever is archived and trimmed meanwhile: a journal that has
been trimmed beyond the cut before it was read is an error, not a gap.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from palio.language import PALIO, read_filter
from palio.model.filter import Filter
from palio.spark.lake.table import read_lake
from palio.spark.source.moments import Moment, moment
from palio.spark.source.reading import read, struct_of
from palio.store.lake.manifests import Lake


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
    options |= {"startingOffsets": json.dumps(state.positions)}
    new = read(spark, url, schema=wanted, filter=parsed, since=begin, until=end, **options)
    return old.unionByName(new)
