"""Bulk matching: which of many subscriptions does each of many events satisfy?

The index of the subscriptions is cut into shards, files that every worker maps (`shards`). Each shard has a
`mapInArrow` of its own over the same events, and the answer is the union of what they give: no cross join, no
`groupBy`, and the one shuffle is that of the events, which are spread evenly first (`spread`). An event never
becomes a Python object, nor does a pair: the core reads Arrow's memory and writes it.

An event may satisfy all subscriptions, so results are made and sent in pieces. How many events are matched at
a time follows from how many pairs the last ones gave; a piece that goes to Spark has at most `MOST_PAIRS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from palio.matching import MatchIndex
from palio.matching.columns import decoded
from palio.model.errors import InvalidNotification
from palio.spark.arrow import Batches
from palio.spark.errors import BadEvent
from palio.spark.frames import (
    DIALECT,
    EVENT,
    FILTER,
    PARTITIONS_A_CORE,
    PAYLOAD,
    SUBSCRIPTION,
    has_payload,
    is_or_holds,
    quoted,
    require_attributes,
    require_columns,
    said_filters,
    spread,
)
from palio.spark.matching.shards import Shards, build_shards, ids_file, index_file, parsed
from palio.spark.runtime.session import cores_of
from palio.spark.runtime.workers import keep

MOST_PAIRS = 1 << 16
# Pairs that a worker holds at a time, about: 16 MB of them.
_AIM = 1 << 20
# And at most, if the next events satisfy all filters, whatever the last ones were like.
_AT_MOST = 1 << 26
# The core matches so many events together; fewer cost almost as much.
_TILE = 256


def match(
    events: DataFrame,
    subscriptions: DataFrame | Shards,
    *,
    invalid: str = "error",
    partitions: int | None = None,
    storage: str | None = None,
) -> DataFrame:
    """The pairs (event_id, subscription_id) of events and the subscriptions whose filter they satisfy.

    `events` has `event_id` and a column for each attribute, null being absent; or, instead of these, a binary
    column `payload` of encoded notifications. `subscriptions` has `subscription_id` and `filter`, the text;
    what that is written in may be in `dialect`. Ids are of any type and come out as they went in; every row
    counts, as in a join. The index is built at once, all else when the result is asked for; whoever matches
    against the same subscriptions again gives what `build_shards` gave.

    `invalid` is "error", or "skip" for leaving out what cannot be read; `unreadable` lists it. `partitions`
    is how many parts events are spread over, four for each core unless it is given; 0 leaves them as they
    lie, which is quicker where that is even (`frames.lies_evenly`). `storage` is a folder that all executors
    share.

    Raises `BadSubscriptions`, `MissingColumn` or `UnsupportedColumn`. An event that cannot be read fails the
    job with `BadEvent`.
    """
    require_columns("events", events, EVENT)
    shards = subscriptions
    if not isinstance(shards, Shards):
        shards = build_shards(shards, invalid=invalid, storage=storage)
    wanted = _wanted(events, shards)
    schema = StructType().add(EVENT, events.schema[EVENT].dataType).add(SUBSCRIPTION, shards.id_type)
    if not shards.subscriptions:
        return wanted.sparkSession.createDataFrame([], schema)
    if partitions is None:
        partitions = PARTITIONS_A_CORE * cores_of(events.sparkSession)
    parts = spread(wanted, partitions) if partitions else wanted
    found = [
        parts.mapInArrow(partial(_matches, shards.folder, one.shard, invalid == "skip"), schema)
        for one in shards.reports
        if one.subscriptions
    ]
    return reduce(lambda some, more: some.unionAll(more), found)


def unreadable(frame: DataFrame) -> DataFrame:
    """What `match` with invalid="skip" leaves out, with the reason.

    For subscriptions (subscription_id, filter, reason), with `dialect` where it was there; for events with a
    `payload` (event_id, payload, reason).
    """
    if FILTER in frame.columns:
        said = said_filters(frame)
        kept = said if DIALECT in frame.columns else said.drop(DIALECT)
    else:
        require_columns("subscriptions or events", frame, EVENT, PAYLOAD)
        kept = frame.select(EVENT, PAYLOAD)
    return kept.mapInArrow(_unreadable, StructType([*kept.schema.fields]).add("reason", "string"))


def _wanted(events: DataFrame, shards: Shards) -> DataFrame:
    """Id and payload, or id and those attributes that a filter looks at."""
    if has_payload(events.schema):
        return events.select(EVENT, PAYLOAD)
    named = shards.attributes
    attributes = [column for column in events.columns if column != EVENT]
    kept = [one for one in attributes if named is None or is_or_holds(one, named)]
    chosen = events.select(events[EVENT], *(events[quoted(name)] for name in kept))
    require_attributes(chosen.drop(EVENT).schema)
    return chosen


# On an executor


@lru_cache(maxsize=64)  # a worker has many tasks, and all of them the same few shards
def _opened(index: str, ids: str) -> tuple[MatchIndex, Any]:
    table = pa.ipc.open_file(pa.memory_map(ids)).read_all()
    opened = MatchIndex.open_mapped(index), table.column(0).combine_chunks()
    keep()
    return opened


def _matches(folder: str | None, shard: str, skip: bool, batches: Batches) -> Batches:
    """The pairs of a partition's events and the subscriptions of a shard."""
    return match_in_memory(*open_shard(folder, shard), batches, skip=skip)


def open_shard(folder: str | None, shard: str) -> tuple[MatchIndex, Any]:
    """On an executor: the index of a shard, and the ids of the subscriptions at the positions it gives."""
    files = (index_file(shard), ids_file(shard))
    index, ids = (SparkFiles.get(name) if folder is None else str(Path(folder) / name) for name in files)
    return _opened(index, ids)


def matched_rows(index: MatchIndex, content: Any) -> tuple[Any, Any]:
    """Rows of a batch, and positions of the subscriptions they satisfy; what is no event is passed over."""
    return _found(index, content, None, True)


def match_in_memory(index: MatchIndex, ids: Any, batches: Iterable[Any], *, skip: bool = False) -> Batches:
    """Pairs of batches of events, whose first column is their id, and an index of positions in `ids`."""
    step = _next_step(1, len(ids), len(ids))
    for batch in batches:
        content = batch.drop_columns([EVENT])
        start = 0
        while start < batch.num_rows:
            events = batch.column(0).slice(start, step)
            rows, found = _found(index, content.slice(start, step), events, skip)
            for at in range(0, len(rows), MOST_PAIRS):
                pairs = [events.take(rows.slice(at, MOST_PAIRS)), ids.take(found.slice(at, MOST_PAIRS))]
                yield pa.RecordBatch.from_arrays(pairs, [EVENT, SUBSCRIPTION])
            start += step
            step = _next_step(step, len(rows), len(ids))


def _next_step(step: int, pairs: int, subscriptions: int) -> int:
    """How many events to match next, after so many gave so many pairs."""
    wanted = min(_AIM * step // max(pairs, 1), _AT_MOST // subscriptions)
    return wanted // _TILE * _TILE or max(wanted, 1)


def _found(index: MatchIndex, content: Any, events: Any, skip: bool) -> tuple[Any, Any]:
    """Rows, and positions of subscriptions. Rows that cannot be read are passed over, or an error names one."""
    try:
        return index.match_batch(content)
    except InvalidNotification as problem:
        if not skip:
            row = int(problem.path.removeprefix(f"{PAYLOAD}[").removesuffix("]"))
            raise BadEvent(events[row].as_py(), problem.reason) from None
    # The core says which row is the first such one. All of them are looked for at once: asking it again after
    # each would take time in the square of their number.
    problems = map(_problem_of, content.column(PAYLOAD).to_pylist())
    kept = pa.array([row for row, problem in enumerate(problems) if problem is None], pa.int64())
    rows, found = index.match_batch(content.take(kept))
    return kept.take(rows), found


def _problem_of(payload: bytes | None) -> str | None:
    """Why this is not an encoded notification, if it is none."""
    try:
        decoded(0, payload)
    except InvalidNotification as problem:
        return problem.reason
    return None


def _unreadable(batches: Batches) -> Batches:
    for batch in batches:
        read = parsed if batch.schema.names[1] == FILTER else _problem_of
        found = map(read, *(column.to_pylist() for column in batch.columns[1:]))
        reasons = pa.array([one if isinstance(one, str) else None for one in found], pa.string())
        yield batch.append_column("reason", reasons).filter(reasons.is_valid())
