"""`backtest`: what filters would have delivered of a table of events, over time.

One pass over the events: each task matches its batches (one `MatchIndex`, as at a broker), counts into parts of
time and keeps a few of the newest of each part; what leaves a task is as large as the picture, not as the data.

With two filters, what is selected falls into three: by the first only, by the second only, by both. So a
difference can be seen where and when it is, with events to look at.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions

from palio.language import PALIO, read_filter
from palio.matching import MatchIndex
from palio.matching.projection import WantedColumn, project
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.model.values import Kind
from palio.spark.arrow import UTC_MICROSECONDS, Batches, arrow_schema, batch_of
from palio.spark.errors import MissingColumn, WrongOption
from palio.spark.frames import PAYLOAD, has_payload, quoted
from palio.spark.lookback.buckets import Every
from palio.spark.source.moments import Moment, TimeTexts, moment

SIDES = ("only_first", "only_second", "both")
TIME = "time"
# Columns of a table of events that say where one is from, and no attributes.
_ABOUT = ("journal", "sequence", "id", "publisher", "properties")
# Parts of time in one task, and samples of one part: what is too fine is no picture, and would fill the memory.
MAX_PARTS = 20_000
MAX_SAMPLES = 100

_COUNTS_DDL = "begin timestamp, events bigint, only_first bigint, only_second bigint, both bigint"
_SAMPLE_DDL = "which string, time timestamp, journal string, sequence bigint, id string, payload binary"
_SAMPLE = pa.struct(arrow_schema(_SAMPLE_DDL))
_COUNTED = arrow_schema(_COUNTS_DDL).append(pa.field("samples", pa.list_(_SAMPLE)))
_COUNTED_DDL = f"{_COUNTS_DDL}, samples array<struct<{_SAMPLE_DDL}>>"
_UNTIMED = np.iinfo(np.int64).min


def backtest(
    events: DataFrame,
    filter: str | Filter,
    *,
    every: str | Every,
    against: str | Filter | None = None,
    dialect: str = PALIO,
    time: str = TIME,
    since: Moment = None,
    until: Moment = None,
    samples: int = 0,
) -> DataFrame:
    """What a filter selects of events, in parts of time (UTC): a row for each part in which there was anything.

    Columns are `begin`, `events` (all that there were), `only_first`, `only_second` and `both` (with `against`;
    without it all that is selected is in `only_first`), and `samples`: of each of these the newest few. `time`
    is a column, or else an attribute: a time, or a text such as 2026-11-16 or 2026-11-16T09:30:00Z. What has
    none is counted in a row without `begin`.

    Texts of both filters are in `dialect`.

    Events have a `payload`, as those of a lake or a journal (`history`), or a column for each attribute.
    Raises `WrongOption`, `MissingColumn` and `FilterSyntaxError`; the task raises `BadEvent`.
    """
    counting = Counting(
        _source(filter, dialect),
        None if against is None else _source(against, dialect),
        every=Every.parse(every) if isinstance(every, str) else every,
        time=time,
        column=_column(events, time),
        span=(moment("since", since, -math.inf), moment("until", until, math.inf)),
        samples=samples,
    )
    return together(events.mapInArrow(counting.count, _COUNTED_DDL), samples)


def together(found: DataFrame, samples: int) -> DataFrame:
    """What was counted in several parts of the events, as if it had been counted in all of them at once."""
    sums = [functions.sum(name).alias(name) for name in ("events", *SIDES)]
    several = functions.flatten(functions.collect_list("samples")).alias("samples")
    newest = ", ".join(
        f"slice(sort_array(filter(samples, x -> x.which = '{side}'), false), 1, {max(1, samples)})"
        for side in SIDES
    )
    chosen = functions.expr(f"concat({newest})").alias("samples")
    return found.groupBy("begin").agg(*sums, several).select("begin", "events", *SIDES, chosen)


def ends_of(events: DataFrame, time: str = TIME) -> DataFrame:
    """The first and the last time of events, as a table of one row: (begin, end)."""
    column = _column(events, time)
    narrow = events.select(PAYLOAD if column is None else quoted(time))
    reader = _Times(time, column=column)

    def ends(batches: Batches) -> Batches:
        for batch in batches:
            found = pc.min_max(reader.of(batch)).as_py()
            if found["min"] is not None:
                values = [pa.array([found[name]], UTC_MICROSECONDS) for name in ("min", "max")]
                yield pa.RecordBatch.from_arrays(values, ["begin", "end"])

    found = narrow.mapInArrow(ends, "begin timestamp, end timestamp")
    return found.selectExpr("min(begin) AS begin", "max(end) AS end")


def span_in(ends: DataFrame) -> tuple[datetime, datetime] | None:
    """The first and the last of what `ends_of` found in parts of the events."""
    micros = ends.selectExpr("unix_micros(min(begin)) AS begin", "unix_micros(max(end)) AS end").first()
    if micros is None or micros["begin"] is None:
        return None
    begin, end = (datetime.fromtimestamp(micros[name] / 1e6, UTC) for name in ("begin", "end"))
    return begin, end


def _source(filter: str | Filter, dialect: str) -> str:
    parsed = read_filter(filter, dialect).require_satisfiable()
    return parsed.source or str(parsed)


def _column(events: DataFrame, time: str) -> str | None:
    """The column that has the time; None if it is an attribute of the payload. Raises `MissingColumn`."""
    if time in events.columns:
        return time
    # Journals have when it was in a column; elsewhere an attribute may well have that name.
    if not has_payload(events.schema) or (time == TIME and "journal" in events.columns):
        raise MissingColumn("events", time, events.columns)
    return None


class _Times:
    """Reads the times of batches: from a column, or from an attribute of the payload."""

    def __init__(self, time: str, *, column: str | None) -> None:
        self._time = time
        self._column = column
        self._texts = TimeTexts()

    def of(self, batch: pa.RecordBatch) -> Any:
        if self._column is None:
            wanted = [WantedColumn(self._time, Kind.TIME), WantedColumn(self._time, Kind.STRING)]
            times, texts = project(batch.column(PAYLOAD), wanted).columns
            if texts.null_count == len(texts):
                return times
            return pc.coalesce(times, self._texts.read(texts))
        found = batch.column(self._column)
        if pa.types.is_string(found.type) or pa.types.is_large_string(found.type):
            return self._texts.read(found)
        if pa.types.is_date(found.type):
            return found.cast(pa.timestamp("us")).cast(UTC_MICROSECONDS)
        if pa.types.is_timestamp(found.type):
            return found.cast(UTC_MICROSECONDS)
        raise WrongOption(TIME, f"The column {self._column!r} is no time, but {found.type}.")


class Counting(msgspec.Struct, frozen=True):
    """What each task does: it counts into parts of time, and keeps the newest few of each."""

    first: str
    second: str | None
    every: Every
    time: str
    column: str | None
    span: tuple[float, float]
    samples: int

    def __post_init__(self) -> None:
        if not 0 <= self.samples <= MAX_SAMPLES:
            raise WrongOption("samples", f"It is from 0 to {MAX_SAMPLES}.")
        if self.span[0] >= self.span[1]:
            raise WrongOption("since", "It is not before until.")

    def count(self, batches: Batches) -> Batches:
        """All batches of a task, counted."""
        filters = (self.first, self.second)
        index = MatchIndex((side, one) for side, one in enumerate(filters, 1) if one is not None)
        times = _Times(self.time, column=self.column)
        counts: dict[int, Any] = {}
        newest = _Newest(self.samples)
        for batch in batches:
            if batch.num_rows:
                self._count(batch, index, times, counts, newest)
        yield _table(counts, newest)

    def _count(
        self, batch: pa.RecordBatch, index: MatchIndex, times: _Times, counts: dict[int, Any], newest: _Newest
    ) -> None:
        moments = times.of(batch)
        parts = _micros(self.every.floor(moments))
        seconds = _micros(moments)
        inside = np.ones(batch.num_rows, bool)
        if math.isfinite(self.span[0]):
            inside &= seconds >= round(self.span[0] * 1e6)
        if math.isfinite(self.span[1]):
            inside &= (seconds < round(self.span[1] * 1e6)) & (seconds != _UNTIMED)
        sides = np.zeros(batch.num_rows, np.int64)
        rows, ids = index.match_batch(batch.select([PAYLOAD]) if _is_encoded(batch) else batch)
        np.add.at(sides, np.asarray(rows), np.asarray(ids))
        which, inverse = np.unique(parts[inside], return_inverse=True)
        numbers = np.bincount(inverse * 4 + sides[inside], minlength=4 * len(which)).reshape(-1, 4)
        for part, row in zip(which.tolist(), numbers, strict=True):
            counts[part] = counts[part] + row if part in counts else row
        if len(counts) > MAX_PARTS:
            raise WrongOption("every", f"There are more than {MAX_PARTS:,} parts of time; make them longer.")
        if self.samples:
            chosen = np.flatnonzero(inside & (sides > 0))
            newest.add(batch, chosen, parts[chosen], sides[chosen], seconds[chosen])


def _is_encoded(batch: pa.RecordBatch) -> bool:
    return PAYLOAD in batch.schema.names and bool(pa.types.is_binary(batch.schema.field(PAYLOAD).type))


def _micros(times: Any) -> Any:
    """Times as numbers; what is none is `_UNTIMED`."""
    return pc.fill_null(times.cast(pa.int64()), _UNTIMED).to_numpy(zero_copy_only=False)


class _Newest:
    """The newest few of each side of each part; among those of one time, the last by position, id and content.

    So which they are does not depend on how events are dealt out to tasks. (Only where a table has neither of
    these, but a column for each attribute, it is some of those of one time.)
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.rows: dict[int, dict[int, list[tuple[Any, ...]]]] = {}  # by part and side: time first

    def add(self, batch: pa.RecordBatch, chosen: Any, parts: Any, sides: Any, seconds: Any) -> None:
        if not len(chosen):
            return
        order = np.lexsort((*_ties(batch, chosen), seconds, sides, parts))
        changes = np.diff(parts[order], prepend=parts[order[0]]) != 0
        changes |= np.diff(sides[order], prepend=sides[order[0]]) != 0
        for run in np.split(order, np.flatnonzero(changes)):  # of one part and side, by time
            kept = self.rows.setdefault(int(parts[run[0]]), {}).setdefault(int(sides[run[0]]), [])
            for place in run[: -self._count - 1 : -1]:
                if not self._keep(kept, batch, int(chosen[place]), int(seconds[place])):
                    break

    def _keep(self, kept: list[tuple[Any, ...]], batch: pa.RecordBatch, row: int, moment: int) -> bool:
        """Whether a row is one of the newest so far."""
        if len(kept) == self._count and kept[0][0] > moment:
            return False
        found = (moment, *_about(batch, row))
        if len(kept) == self._count and _order(kept[0]) >= _order(found):
            return False
        kept.append(found)
        kept.sort(key=_order)
        del kept[: -self._count]
        return True


def _order(about: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """As Spark orders structs: what is null comes first."""
    return tuple([(one is not None, one) for one in about])


def _ties(batch: pa.RecordBatch, chosen: Any) -> list[Any]:
    """By what events of the same time are ordered, the least important first: as `_order` orders them."""
    names = batch.schema.names
    if "sequence" in names and "journal" in names:
        return [_ranks(batch.column(name).take(pa.array(chosen))) for name in ("sequence", "journal")]
    ids = [name for name in ("id", "event_id") if name in names][:1]
    ties = [batch.column(PAYLOAD)] if _is_encoded(batch) else []
    ties += [batch.column(name).cast(pa.string()) for name in ids]
    ties += [batch.column("sequence")] if "sequence" in names else []
    return [_ranks(one.take(pa.array(chosen))) for one in ties]


def _ranks(values: Any) -> Any:
    """Numbers that are ordered as values are."""
    if pa.types.is_integer(values.type):
        return pc.fill_null(values, _UNTIMED).to_numpy(zero_copy_only=False)
    there = pc.fill_null(values, "" if pa.types.is_string(values.type) else b"")
    return pc.rank(there, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False)


def _about(batch: pa.RecordBatch, row: int) -> tuple[Any, ...]:
    """Where an event is from, and what it says."""
    there = batch.slice(row, 1).to_pylist()[0]
    payload = there.get(PAYLOAD)
    if not isinstance(payload, bytes):
        content = {name: value for name, value in there.items() if value is not None and name not in _ABOUT}
        payload = Notification(content).encode()
    id = there.get("id", there.get("event_id"))
    return there.get("journal"), there.get("sequence"), None if id is None else str(id), payload


def _table(counts: dict[int, Any], newest: _Newest) -> pa.RecordBatch:
    parts = sorted(counts)
    samples = [
        [
            dict(zip(_SAMPLE.names, (SIDES[side - 1], _known(moment), *about), strict=True))
            for side, several in newest.rows.get(part, {}).items()
            for moment, *about in several
        ]
        for part in parts
    ]
    rows = np.array([counts[part] for part in parts], np.int64).reshape(-1, 4)
    begins = pa.array(map(_known, parts), UTC_MICROSECONDS)
    return batch_of(_COUNTED, begins, rows.sum(axis=1), *rows[:, 1:].T, samples)


def _known(moment: int) -> int | None:
    return None if moment == _UNTIMED else moment
