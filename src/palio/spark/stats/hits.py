"""How often each subscription is satisfied, and how many each event reaches: bulk matching that only counts.

The shards are those of `palio.spark.match`. A task matches its events against all of them and sends, at its
end, a number for each subscription that was satisfied: pairs never leave it. Single constraints are counted in
the same pass; they are few, and each task makes an index of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from palio.matching import MatchIndex
from palio.spark.arrow import Batches
from palio.spark.frames import DIALECT, FILTER, SUBSCRIPTION, said_filters
from palio.spark.matching.bulk import matched_rows, open_shard
from palio.spark.matching.shards import Shards
from palio.spark.stats.event_scans import Places, step_numbers, summed
from palio.spark.stats.preparing import Prepared, content

HITS = "hits"
# What rows of `reached` are about: a subscription, how many of them an event reaches, when; a constraint.
_SUBSCRIPTION, REACH, WANTED, CONSTRAINT = "subscription", "reach", "wanted", "constraint"
# Events that are matched together; the core takes them 256 at a time.
_TOGETHER = 1_024
_DOUBLINGS = 64


def reached(
    events: Prepared, shards: Shards, places: Places | None = None, constraints: Sequence[str] = ()
) -> DataFrame:
    """Counts: (what, subscription_id, place, events).

    A row about a subscription has its id, one about "reach" the number of doublings of how many subscriptions
    so many events satisfy, one about "wanted" the step of time of events that satisfy some, and one about a
    constraint its place among those that were given.
    """
    schema = StructType().add("what", "string").add(SUBSCRIPTION, shards.id_type)
    schema = schema.add("place", "integer").add("events", "long")
    names = [one.shard for one in shards.reports if one.subscriptions]
    task = _Task(events.names, shards.folder, names, places or Places(), tuple(constraints))
    return summed(events.frame.mapInArrow(partial(_reached, task), schema))


def hit_rates(subscriptions: DataFrame, counted: DataFrame) -> DataFrame:
    """Each subscription with its number of hits: (subscription_id, filter, dialect, hits).

    Subscriptions of one id share their number.
    """
    hits = counted.where(f.col("what") == _SUBSCRIPTION).select(SUBSCRIPTION, f.col("events").alias(HITS))
    joined = said_filters(subscriptions).join(hits, SUBSCRIPTION, "left")
    return joined.select(SUBSCRIPTION, FILTER, DIALECT, f.coalesce(f.col(HITS), f.lit(0)).alias(HITS))


# On an executor


class _Task(NamedTuple):
    """What a task has to know."""

    names: list[str]
    folder: str | None
    shards: list[str]
    places: Places
    constraints: tuple[str, ...]


def _reached(task: _Task, batches: Batches) -> Batches:
    places, constraints = task.places, task.constraints
    opened = [open_shard(task.folder, shard) for shard in task.shards]
    hits = [np.zeros(len(ids), np.int64) for _, ids in opened]
    alone = MatchIndex(enumerate(constraints))
    by_constraint = np.zeros(len(constraints), np.int64)
    by_reach = np.zeros(_DOUBLINGS, np.int64)
    by_time = np.zeros(places.steps, np.int64)
    for whole in batches:
        for start in range(0, whole.num_rows, _TOGETHER):
            batch = whole.slice(start, _TOGETHER)
            events = content(batch, task.names)
            reach = np.zeros(batch.num_rows, np.int64)
            for (index, ids), counted in zip(opened, hits, strict=True):
                rows, found = matched_rows(index, events)
                counted += np.bincount(np.asarray(found), minlength=len(ids))
                reach += np.bincount(np.asarray(rows), minlength=batch.num_rows)
            by_reach += np.bincount(_doublings(reach), minlength=_DOUBLINGS)
            if places.steps:
                steps = step_numbers(batch, places)[reach > 0]
                by_time += np.bincount(steps[steps >= 0], minlength=places.steps)
            if constraints:
                _, found = matched_rows(alone, events)
                by_constraint += np.bincount(np.asarray(found), minlength=len(constraints))
    for (_, ids), counted in zip(opened, hits, strict=True):
        there = np.flatnonzero(counted)
        if len(there):
            yield _rows(_SUBSCRIPTION, ids.take(pa.array(there)), pa.nulls(len(there)), counted[there])
    kind = opened[0][1].type if opened else pa.null()
    for what, counted in ((REACH, by_reach), (WANTED, by_time), (CONSTRAINT, by_constraint)):
        there = np.flatnonzero(counted)
        yield _rows(what, pa.nulls(len(there), kind), pa.array(there), counted[there])


def _doublings(reach: Any) -> Any:
    """0 for none, 1 for 1, 2 for 2 to 3, 3 for 4 to 7, and so on."""
    return np.where(reach > 0, np.floor(np.log2(np.maximum(reach, 1))) + 1, 0).astype(np.int64)


def _rows(what: str, ids: Any, places: Any, events: Any) -> Any:
    arrays = [pa.repeat(what, len(ids)), ids, places.cast(pa.int32()), pa.array(events, pa.int64())]
    return pa.RecordBatch.from_arrays(arrays, ["what", SUBSCRIPTION, "place", "events"])
