"""A table of events in the one form in which all looks at it begin: time, publisher, content."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from palio.matching import MatchIndex
from palio.model.filter import Filter
from palio.spark.arrow import Batches
from palio.spark.errors import WrongOption
from palio.spark.frames import EVENT, PAYLOAD, has_payload, quoted, require_attributes
from palio.spark.source.columns import BESIDE as COLUMNS_BESIDE
from palio.spark.source.moments import TimeTexts
from palio.spark.stats.content import attribute_of

TIME, PUBLISHER = "__time", "__publisher"
BESIDE = (TIME, PUBLISHER)


class Prepared(NamedTuple):
    """A table with time (microseconds), publisher and content, and the names that its columns should have.

    In Spark the columns of attributes have numbers for names, since a name may have points that Spark would
    take for a way into a struct.
    """

    frame: DataFrame
    names: list[str]


def prepared(
    events: DataFrame,
    *,
    filter: Filter | None = None,
    time: str | None = None,
    since: float | None = None,
    until: float | None = None,
) -> Prepared:
    """Events with a `payload`, or with a column for each attribute. `time` names a column or an attribute.

    A string is read as `palio.model.moments` says: what is no time has none. With `since` or `until` (seconds
    since 1970) those without a time are left out. Raises `WrongOption`, and `UnsupportedColumn` for a column
    that no attribute can be.
    """
    types = dict(events.dtypes)
    encoded = has_payload(events.schema)
    beside = ("time", "publisher") if encoded else ("_time", "_publisher")
    moment = _moment(types, time, (beside[0], "time"))
    if encoded:
        content = [PAYLOAD]
    else:
        content = [name for name in events.columns if name not in (EVENT, moment, *COLUMNS_BESIDE)]
        if not content:
            raise WrongOption("events", "the table has neither a payload nor a column for an attribute.")
        require_attributes(events.select(*map(quoted, content)).schema)
        if time is not None and moment is None and time not in content:
            raise WrongOption("time", f"there is no column {time!r}; there are {', '.join(events.columns)}.")
    micros = f.lit(None) if moment is None else f.unix_micros(f.col(quoted(moment)))
    publisher = f.col(beside[1]) if types.get(beside[1]) == "string" else f.lit(None)
    columns = [f.col(quoted(name)).alias(f"__{number}") for number, name in enumerate(content)]
    known = micros.cast("bigint").alias(TIME), publisher.cast("string").alias(PUBLISHER)
    frame = events.select(*known, *columns)
    names = [*BESIDE, *content]
    if time is not None and moment is None:
        frame = frame.mapInArrow(partial(_timed, names, time), frame.schema)
    for option, moment_given in (("since", since), ("until", until)):
        if moment_given is None:
            continue
        if time is None and moment is None:
            raise WrongOption(option, "these events have no time; name the attribute that says when they came.")
        micros_given = f.lit(round(moment_given * 1e6))
        frame = frame.where(f.col(TIME) >= micros_given if option == "since" else f.col(TIME) < micros_given)
    if filter is not None:
        frame = frame.mapInArrow(partial(_selected, names, filter), frame.schema)
    return Prepared(frame, names)


def _moment(types: dict[str, str], time: str | None, usual: Sequence[str]) -> str | None:
    """The column that says when; None if there is none, or an attribute says it. Raises `WrongOption`."""
    if time is None:
        return next((name for name in usual if types.get(name) == "timestamp"), None)
    if time not in types or types[time] == "string":
        return None
    if types[time] != "timestamp":
        raise WrongOption("time", f"the column {time!r} is of the type {types[time]}, not a timestamp.")
    return time


def content(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    """The attributes of a batch, under their names."""
    return batch.rename_columns(names).drop_columns(list(BESIDE))


# On an executor


def _selected(names: list[str], filter: Filter, batches: Batches) -> Batches:
    index = MatchIndex([(0, filter)])
    for batch in batches:
        rows, _ = index.match_batch(content(batch, names))
        yield batch.take(rows)


def _timed(names: list[str], attribute: str, batches: Batches) -> Batches:
    """Each event with the time that an attribute says: a time, or a string that is one."""
    texts = TimeTexts()
    for batch in batches:
        found = attribute_of(content(batch, names), attribute)
        micros = pa.nulls(batch.num_rows, pa.int64())
        if "time" in found:
            micros = found["time"].cast(pa.int64())
        if "string" in found:
            micros = pc.coalesce(micros, texts.read(found["string"]).cast(pa.int64()))
        yield batch.set_column(0, batch.schema.field(0), micros)
