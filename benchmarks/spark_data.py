"""Workloads as files for Spark, and the yardsticks of bulk matching: the cross join, and emitting alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from benchmarks.workloads import Attribute, Workload, events, filter_text, subscriptions, table
from palio.spark.frames import PARTITIONS_A_CORE, spread
from palio.spark.tables.inputs import partitions_of

_ROWS_A_GROUP = 32_768  # so that a file can be read by several tasks
_PIECE = 1 << 16


@dataclass
class Data:
    """Events and subscriptions of a workload in Spark, and where they lie."""

    workload: Workload
    events: Any
    subscriptions: Any
    ranges: Any
    events_path: Path
    filters_path: Path
    rows: int
    size: int
    partitions: int | None  # as `palio spark match` chooses it


def prepared(spark: Any, workload: Workload, folder: Path, rows: int, size: int) -> Data:
    """Write the files, if they are not there, and open them."""
    events_path = folder / f"{workload.name}-{rows}-events.parquet"
    filters_path = folder / f"{workload.name}-{size}-filters.parquet"
    ranges_path = folder / f"{workload.name}-{size}-ranges.parquet"
    if not events_path.exists():
        content = table(workload, events(workload, rows))
        content = content.add_column(0, "event_id", _numbers(rows))
        pyarrow.parquet.write_table(content, events_path, row_group_size=_ROWS_A_GROUP)
    if not filters_path.exists():
        drawn = subscriptions(workload, size)
        texts = pyarrow.array([filter_text(workload, drawn, one) for one in range(size)])
        filters = pyarrow.table({"subscription_id": _numbers(size), "filter": texts})
        pyarrow.parquet.write_table(_as_ranges(workload, drawn), ranges_path)
        pyarrow.parquet.write_table(filters, filters_path)
    opened = [spark.read.parquet(str(path)) for path in (events_path, filters_path, ranges_path)]
    parts = partitions_of(spark, str(events_path), opened[0])
    return Data(workload, *opened, events_path, filters_path, rows, size, parts)


def _numbers(count: int) -> pyarrow.Array:
    return pyarrow.array(range(count), pyarrow.int64())


def _as_ranges(workload: Workload, drawn: Any) -> pyarrow.Table:
    """Subscriptions with the low and high end of each attribute, null where there is no constraint."""
    found: dict[str, list[Any]] = {}
    for attribute in workload.attributes:
        found[f"low_{attribute.name}"] = [None] * len(drawn)
        found[f"high_{attribute.name}"] = [None] * len(drawn)
    for one in range(len(drawn)):
        for at in range(drawn.starts[one], drawn.starts[one + 1]):
            attribute = workload.attributes[drawn.attributes[at]]
            found[f"low_{attribute.name}"][one] = attribute.decode(int(drawn.low[at]))
            found[f"high_{attribute.name}"][one] = attribute.decode(int(drawn.high[at]))
    return pyarrow.table({"subscription_id": _numbers(len(drawn)), **found})


def cross_join(data: Data, cores: int) -> Any:
    """The pairs as one would find them without an index; events are spread as for bulk matching."""
    predicate = " and ".join(_condition(one) for one in data.workload.attributes)
    return _spread(data, cores).crossJoin(data.ranges).where(predicate).select("event_id", "subscription_id")


def _condition(attribute: Attribute) -> str:
    name = attribute.name
    holds = f"{name} = low_{name}" if attribute.is_string else f"{name} between low_{name} and high_{name}"
    return f"(low_{name} is null or {holds})"


def emitting(data: Data, pairs: int, cores: int) -> Any:
    """Pairs out of nothing: batches of the size that bulk matching sends, as many, and no other work."""
    each = pairs / data.rows

    def emit(batches: Any) -> Any:
        import pyarrow  # noqa: PLC0415

        ids = pyarrow.array(range(_PIECE), pyarrow.int64())
        piece = pyarrow.RecordBatch.from_arrays([ids, ids], ["event_id", "subscription_id"])
        wanted = round(each * sum(batch.num_rows for batch in batches))
        for at in range(0, wanted, _PIECE):
            yield piece.slice(0, min(_PIECE, wanted - at))

    return _spread(data, cores).mapInArrow(emit, "event_id long, subscription_id long")


def _spread(data: Data, cores: int) -> Any:
    return data.events if data.partitions == 0 else spread(data.events, PARTITIONS_A_CORE * cores)
