"""`read` and `read_stream`: journals as DataFrames, each with a `load()` of its own; what came is counted."""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession, functions
from pyspark.sql.types import StructType

from palio.language import PALIO
from palio.model.filter import Filter
from palio.model.moments import written_moment
from palio.spark.source.columns import UNCONVERTED
from palio.spark.source.format import register
from palio.spark.source.journals import absolute
from palio.spark.source.moments import Moment, moment
from palio.spark.source.options import in_our_words

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class Crossed:
    """How many rows came from the source, and how many values of theirs did not convert: filled by one action.

    >>> crossed = palio.spark.Crossed()
    >>> palio.spark.read(spark, url, schema="price double", counter=crossed).write.parquet(…)
    >>> crossed.rows, crossed.unconverted
    """

    def __init__(self) -> None:
        self._observation = Observation()

    def observe(self, frame: DataFrame, *, typed: bool) -> DataFrame:
        """The same rows, counted."""
        counted = [functions.count(functions.lit(1)).alias("rows")]
        if typed:
            counted.append(functions.sum(UNCONVERTED).alias("unconverted"))
        return frame.observe(self._observation, *counted)

    @property
    def rows(self) -> int:
        """Rows that came from the source. Waits for the first action."""
        return int(self._observation.get["rows"])

    @property
    def unconverted(self) -> int:
        """Values that were there, but not of their column's type."""
        return int(self._observation.get.get("unconverted") or 0)


def read(
    spark: SparkSession,
    url: str,
    *,
    schema: str | StructType | None = None,
    filter: str | Filter | None = None,
    dialect: str = PALIO,
    since: Moment = None,
    until: Moment = None,
    pushdown: bool = False,
    counter: Crossed | None = None,
    **options: Any,
) -> DataFrame:
    """The events in the journals of a broker (`palio://…`) or of a store (`sqlite:///…`, `postgresql://…`).

    Without a schema the columns are journal, sequence, id, time, publisher and payload, of which the last is
    the truth; with one, attributes by their names (see `source.columns`). `filter`, a text in `dialect`, and
    the times from which on and before which events are wanted, are evaluated where the journals are. With
    `pushdown` Spark's own `where` is, too: for a DataFrame that is used once. `counter` counts what came.

    Raises `WrongOption`, `WrongSchema` and `FilterSyntaxError`; what the journals raise comes with the action.
    """
    register(spark)
    if pushdown:
        spark.conf.set(PUSHDOWN, "true")
    said = None if filter is None else in_our_words(filter, dialect)
    chosen = _options(url, said, since, until, {"pushdown": pushdown, **options})
    reader = spark.read.format("palio").options(**chosen)
    if schema is None:
        frame = reader.load()
        return frame if counter is None else counter.observe(frame, typed=False)
    if counter is None:
        return reader.schema(schema).load()
    wanted = struct_of(schema)
    names = wanted.fieldNames()
    counted = struct_of(f"{UNCONVERTED} int").fields if UNCONVERTED not in names else []
    frame = reader.schema(struct_of([*wanted.fields, *counted])).load()
    return counter.observe(frame, typed=True).select(*[f"`{name}`" for name in names])


def read_stream(
    spark: SparkSession,
    url: str,
    *,
    schema: str | StructType | None = None,
    filter: str | Filter | None = None,
    dialect: str = PALIO,
    since: Moment = None,
    until: Moment = None,
    **options: Any,
) -> DataFrame:
    """The same as a stream, that goes on with what is published.

    Options: `startingOffsets` (earliest, latest, or JSON: journals with sequences), `maxRowsPerTrigger`,
    `failOnDataLoss` (true), `reader`: a name under which journals are kept for it until it has read them.
    """
    register(spark)
    said = None if filter is None else in_our_words(filter, dialect)
    reader = spark.readStream.format("palio").options(**_options(url, said, since, until, options))
    return (reader if schema is None else reader.schema(schema)).load()


def _options(
    url: str, filter: str | None, since: Moment, until: Moment, more: dict[str, Any]
) -> dict[str, str]:
    options = {name: str(value) for name, value in more.items()} | {"url": absolute(url)}
    if filter is not None:
        options["filter"] = filter
    for name, value in (("since", since), ("until", until)):
        if value is not None and math.isfinite(seconds := moment(name, value, math.inf)):
            options[name] = written_moment(seconds)
    return options


def struct_of(schema: Any) -> StructType:
    """From Spark's text of a schema, from another one, or from fields."""
    found: Any = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    return found if isinstance(found, StructType) else StructType(found)
