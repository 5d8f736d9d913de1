"""Two looks at all events: what there is, and then how much of it lies where.

The first sketches every attribute. From what it finds the second one knows where to count: bins of numbers,
steps of time. Both send from each task what it found, and no event.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from palio.spark.arrow import Batches, arrow_schema, batch_of
from palio.spark.stats.content import BYTES, NUMBER, STRING, AttributePart, attribute_of, content_of
from palio.spark.stats.preparing import PUBLISHER, TIME, Prepared, content
from palio.spark.stats.sketch import Sketch

# Names of sketches that are not of attributes.
EVENTS, SIZES, TIMES, PUBLISHERS = "events", "sizes", "times", "publishers"
OTHERS, UNREADABLE = "others", "unreadable"
BESIDE_ATTRIBUTES = (EVENTS, SIZES, TIMES, PUBLISHERS, OTHERS, UNREADABLE)
# Attributes that a task keeps sketches of, the most frequent ones.
MOST_ATTRIBUTES = 1_024
# Tasks that put sketches together; there is little to do.
_MERGING = 4
# Values that a row of the result lists.
LISTED = 128

_THING = ("beside", "name", "family")
_PARTIAL = "beside boolean, name string, family string, sketch binary"
_PARTIAL_ROWS = arrow_schema(_PARTIAL)
_PLAIN = (
    "beside boolean, name string, family string, events bigint, distinct bigint, distinct_exact boolean, "
    "values_missed bigint, least double, most double, mean double, deviation double"
)
_VALUE = "value string, events bigint"
_SUMMARY = f"{_PLAIN}, kinds map<string, bigint>, values array<struct<{_VALUE}>>, quantiles array<double>"
_SUMMARY_ROWS = pa.schema(
    [
        *arrow_schema(_PLAIN),
        ("kinds", pa.map_(pa.string(), pa.int64())),
        ("values", pa.list_(pa.struct(arrow_schema(_VALUE)))),
        ("quantiles", pa.list_(pa.float64())),
    ]
)
_COUNTED = "what string, name string, label string, place int, events bigint"
_COUNTED_ROWS = arrow_schema(_COUNTED)

Key = tuple[bool, str, str]


def sketches(events: Prepared) -> DataFrame:
    """What each task has seen of each attribute: (beside, name, family, sketch)."""
    return events.frame.mapInArrow(partial(_sketched, events.names), _PARTIAL)


def united(found: DataFrame) -> DataFrame:
    """Sketches of the same thing as one."""
    gathered = found.repartition(_MERGING, *_THING)
    return gathered.mapInArrow(lambda batches: _encoded(_merged(batches)), _PARTIAL)


def summarised(found: DataFrame) -> DataFrame:
    """What sketches of all events say: a row for each family of an attribute's values, and some beside them."""
    return found.repartition(_MERGING, *_THING).mapInArrow(_summarised, _SUMMARY)


class Places(msgspec.Struct, frozen=True):
    """Where the second look counts: steps of time, groups of them, and the bins of attributes."""

    start: float = 0.0
    step: float = 0.0
    steps: int = 0
    by: str | None = None
    groups: tuple[str, ...] = ()
    edges: dict[str, tuple[float, ...]] = {}


def counts(events: Prepared, places: Places) -> DataFrame:
    """Events by place: (what, name, label, place, events), `what` being "time" or "bin"."""
    return summed(events.frame.mapInArrow(partial(_counted, events.names, places), _COUNTED))


def summed(found: DataFrame) -> DataFrame:
    """Numbers of events that were counted in parts of them, for the same thing, as one."""
    things = [name for name in found.columns if name != "events"]
    return found.groupBy(*things).agg(f.sum("events").alias("events"))


# On an executor


def _sketched(names: list[str], batches: Batches) -> Batches:
    context = TaskContext.get()
    random = None
    sketches: dict[Key, Sketch] = {}
    for batch in batches:
        if random is None:  # tasks of the same number look at other events, when these are looked at in parts
            first = zlib.crc32(repr(batch.slice(0, 1).to_pylist()).encode())
            random = np.random.default_rng((0 if context is None else context.partitionId(), first))
        for key, part in _parts(batch, names):
            if key not in sketches and len(sketches) >= 2 * MOST_ATTRIBUTES:
                _forget_rare(sketches)
            sketches.setdefault(key, Sketch()).add(part, random)
    yield from _encoded(sketches)


def _encoded(sketches: dict[Key, Sketch]) -> Batches:
    for (beside, name, family), sketch in sketches.items():  # one by one: each may have a hundred kilobytes
        yield batch_of(_PARTIAL_ROWS, [beside], [name], [family], [sketch.encode()])


def _parts(batch: Any, names: list[str]) -> Iterable[tuple[Key, AttributePart]]:
    found = content_of(content(batch, names))
    for name, count in ((UNREADABLE, found.unreadable), (OTHERS, found.passed_over), (EVENTS, batch.num_rows)):
        if count or name == EVENTS:
            yield (True, name, BYTES), AttributePart("", BYTES, BYTES, count, None)
    if names[-1] == "payload":
        sizes = pc.binary_length(batch.column(batch.num_columns - 1))
        yield (True, SIZES, NUMBER), AttributePart("", "int", NUMBER, len(sizes) - sizes.null_count, sizes)
    for name, column, family in ((TIMES, TIME, NUMBER), (PUBLISHERS, PUBLISHER, STRING)):
        array = batch.column(column)
        if array.null_count < len(array):
            yield (True, name, family), AttributePart("", family, family, len(array) - array.null_count, array)
    for one in found.parts:
        yield (False, one.name, one.family), one


def _forget_rare(sketches: dict[Key, Sketch]) -> None:
    """The rarer half of the attributes goes; how many values they had is kept."""
    ranked = sorted((key for key in sketches if not key[0]), key=lambda key: sketches[key].count)
    others = sketches.setdefault((True, OTHERS, BYTES), Sketch())
    for key in ranked[: len(ranked) - MOST_ATTRIBUTES]:
        others.count += sketches.pop(key).count


def _summarised(batches: Batches) -> Batches:
    """Sketches of the same thing become one, and a row that people can read."""
    for key, sketch in _merged(batches).items():
        yield pa.RecordBatch.from_pylist([_row(key, sketch)], _SUMMARY_ROWS)


def _merged(batches: Batches) -> dict[Key, Sketch]:
    merged: dict[Key, Sketch] = {}
    for batch in batches:
        for row in batch.to_pylist():
            key = row["beside"], row["name"], row["family"]
            sketch = Sketch.decode(row["sketch"])
            if key in merged:
                merged[key].merge(sketch)
            else:
                merged[key] = sketch
            if len(merged) > 4 * MOST_ATTRIBUTES:
                _forget_rare(merged)
    return merged


def _row(key: Key, sketch: Sketch) -> dict[str, Any]:
    listed = sketch.frequent()[:LISTED]
    numbers = {name: getattr(sketch, name) for name in ("least", "most", "mean", "deviation")}
    return {
        **dict(zip(_THING, key, strict=True)),
        **(numbers if sketch.numbers else {}),
        "events": sketch.count,
        "kinds": list(sketch.kinds.items()),
        "distinct": sketch.distinct,
        "distinct_exact": sketch.distinct_is_exact,
        "values": [{"value": msgspec.json.encode(value).decode(), "events": n} for value, n in listed],
        "values_missed": sketch.missed,
        "quantiles": sketch.quantiles(),
    }


def _counted(names: list[str], places: Places, batches: Batches) -> Batches:
    totals: Counter[tuple[str, str, str | None, int]] = Counter()

    def add(what: str, name: str, label: str | None, numbers: Any) -> None:
        for place, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            totals[what, name, label, int(place)] += int(count)

    for batch in batches:
        events = content(batch, names)
        if places.steps:
            _count_times(batch, events, places, add)
        if places.edges:
            _count_bins(events, places, add)
    rows = [dict(zip(_COUNTED_ROWS.names, (*key, count), strict=True)) for key, count in totals.items()]
    yield pa.RecordBatch.from_pylist(rows, _COUNTED_ROWS)


def step_numbers(batch: Any, places: Places) -> Any:
    """For each event of a batch the number of its step of time; -1 for one without a time."""
    micros = batch.column(TIME)
    seconds = np.asarray(micros.fill_null(0)).astype(np.float64) / 1e6
    numbers = np.floor((seconds - places.start) / places.step).astype(np.int64)
    numbers = np.clip(numbers, 0, places.steps - 1)
    return np.where(np.asarray(micros.is_valid()), numbers, -1)


def _count_times(batch: Any, events: Any, places: Places, add: Any) -> None:
    numbers = step_numbers(batch, places)
    there = numbers >= 0
    add("time", "", None, numbers[there])
    if not places.groups:
        return
    texts = batch.column(PUBLISHER) if places.by is None else attribute_of(events, places.by).get("string")
    for label in places.groups if texts is not None else ():
        chosen = np.asarray(pc.equal(texts, label).fill_null(False))
        add("group", "", label, numbers[there & chosen])


def _count_bins(events: Any, places: Places, add: Any) -> None:
    for part in content_of(events).parts:
        edges = places.edges.get(part.name)
        if edges is None or part.family != NUMBER:
            continue
        numbers = np.asarray(part.values.drop_null()).astype(np.float64)
        found = np.searchsorted(np.asarray(edges), numbers, side="right") - 1
        add("bin", part.name, None, np.clip(found, 0, len(edges) - 2))
