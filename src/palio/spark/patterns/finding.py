"""`find_patterns`: what happened together, in a table of events or in a stream of them.

Both go the same way: one `MatchIndex` over the steps of all patterns finds the hits (`hits`), hits
with the same key come together, and the detector of `palio.matching.patterns` looks at them: for a table key
by key (`batch`), for a stream bucket by bucket, with state (`stream`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from palio.matching.patterns import PatternSet
from palio.matching.patterns.hit import FOREVER, NEVER
from palio.matching.patterns.match import PATTERN_NAME
from palio.model.patterns.pattern import Pattern
from palio.spark.arrow import Batches
from palio.spark.errors import MissingColumn, TooManyPatterns
from palio.spark.frames import is_or_holds, quoted, require_columns
from palio.spark.patterns.batch import BatchFinder
from palio.spark.patterns.found import FOUND_DDL
from palio.spark.patterns.hits import BESIDE, HITS_DDL, ID, POSITION, TIME, HitFinder, packed_texts, ready
from palio.spark.patterns.selection import NUMBERS, ranges_needed, texts_needed
from palio.spark.patterns.stream import PACKED_DDL, BucketProcessor, packed
from palio.spark.tables.parts import Looks, Whole

# Buckets of keys in a stream: each is a value to read and to write, as a whole, in every batch.
BUCKETS = 64
# How much older than the newest an event may be, and how far ahead of the clock, in microseconds.
DELAY = 60_000_000
SKEW = 3_600_000_000

# Where an event's time, position and id are, if nobody says otherwise: as in journals, or as anybody would.
_TIMES = ("_time", "time")
_POSITIONS = ("_sequence", "sequence", "position")
_IDS = ("_id", "id", "event_id")
_PAYLOADS = ("_payload", "payload")
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"

# What a stream's processor may bring with it: PySpark sends more as a broadcast, which state does not get.
MOST_BYTES = 900_000

# The looks that are taken at a table: when the newest event was, and what steps select.
LOOKS = ("newest", "hits")


def find_patterns(
    events: DataFrame,
    patterns: Mapping[str, Pattern | str],
    *,
    time: str | None = None,
    position: str | None = None,
    id: str | None = None,
    delay: int = DELAY,
    skew: int | None = SKEW,
    until: int | None = None,
    close: bool = False,
    buckets: int = BUCKETS,
) -> DataFrame:
    """Matches of patterns, given by name: (pattern, id, time, events, payload, timed_out, dropped).

    `events` has a column for each attribute, null being absent, or a binary `payload`; and a time, a position
    and an id, in columns that are named here or found by their usual names. Positions are the order of
    arrival: those of several journals have no common one, so patterns over several say `order time`. `events`
    of a match name its constituents, `payload` is the notification that can be published about it.

    What patterns with `timeout tell` tell beside their matches is `timed_out`.

    A row without a pattern is no match: its `dropped` counts by reason what one task dropped.

    A table is taken to be complete up to `until` (microseconds since 1970; without it, up to its newest
    event), and absences that are open then are no matches, except with `close`. In a stream, an event may be
    older than the newest by `delay` microseconds; what comes later is dropped, and so is what is ahead of the
    clock by more than `skew`.

    Raises what `Pattern.parse` raises, `MissingColumn`, and `TooManyPatterns` for a stream.
    """
    columns = {"time": time, "position": position, "id": id}
    if events.isStreaming:
        texts = packed_texts(patterns)
        prepared, names = _prepared(events, PatternSet(patterns), **columns)
        if len(texts) > MOST_BYTES:
            raise TooManyPatterns(limit=MOST_BYTES, got=len(texts))
        return _in_stream(prepared, names, texts, delay=delay, skew=skew, buckets=buckets)
    return find_in(Whole(events), patterns, until=until, close=close, **columns)


def find_in(
    looks: Looks,
    patterns: Mapping[str, Pattern | str],
    *,
    time: str | None = None,
    position: str | None = None,
    id: str | None = None,
    until: int | None = None,
    close: bool = False,
) -> DataFrame:
    """What `find_patterns` finds in a table, which is looked at in one pass or in parts: as `LOOKS` says.

    What is kept of a part is what the steps of patterns select in it. Matches are put together of all parts.
    """
    patternset = PatternSet(patterns)
    texts = packed_texts(patterns)

    def prepare(some: DataFrame) -> tuple[DataFrame, list[str]]:
        return _prepared(some, patternset, time=time, position=position, id=id)

    def hits(some: DataFrame) -> DataFrame:
        prepared, names = prepare(some)
        return _hits(_selected(prepared, names, patternset), names, texts)

    if close:
        until = FOREVER
    elif until is None:
        until = _latest(looks.look(LOOKS[0], lambda some: _newest(prepare(some)[0])))
    return _matches(looks.look(LOOKS[1], hits), texts, until)


def _prepared(
    events: DataFrame, patterns: PatternSet, *, time: str | None, position: str | None, id: str | None
) -> tuple[DataFrame, list[str]]:
    """Only what patterns ask for, with time, position and id; and the names of the columns.

    In Spark they are numbers, since a name may have points that Spark would take for a way into a struct.
    """
    by_arrival = any(one.by_arrival for one in patterns)
    moment = _column(events, time, _TIMES, "time")
    place = _column(events, position, _POSITIONS, "position", needed=by_arrival)
    name = _column(events, id, _IDS, "id", needed=False)
    order = f.lit(0) if place is None else f.col(quoted(place))
    beside: list[Column] = [
        f.unix_micros(f.col(quoted(moment))).alias(TIME) if moment else f.lit(None).alias(TIME),
        order.cast("bigint").alias(POSITION),
        _id(events, name, place).alias(ID),
    ]
    encoded = next((one for one in _PAYLOADS if dict(events.dtypes).get(one) == "binary"), None)
    if encoded is not None:
        content = {"payload": encoded}
    else:
        wanted = _attributes(patterns)
        content = {one: one for one in events.columns if is_or_holds(one, wanted)}
        _require_keys(events, patterns)
    columns = [f.col(quoted(one)).alias(f"__{number}") for number, one in enumerate(content.values())]
    return events.select(*beside, *columns), [*BESIDE, *content]


def _id(events: DataFrame, name: str | None, place: str | None) -> Column:
    """What names an event: its id, or else where it is in its journal.

    Null where it is its position alone: of that, names are made for hits only.
    """
    found = [f.col(quoted(name)).cast("string")] if name else []
    journal = next((one for one in ("_journal", "journal") if one in events.columns), None)
    if journal is not None and place is not None:
        found.append(f.concat_ws("/", f.col(journal), f.col(quoted(place)).cast("string")))
    return f.coalesce(*found) if found else f.lit(None).cast("string")


def _column(
    events: DataFrame, given: str | None, usual: tuple[str, ...], what: str, *, needed: bool = True
) -> str | None:
    if given is not None:
        require_columns("events", events, given)
        return given
    found = next((one for one in usual if one in events.columns), None)
    if found is None and needed:
        raise MissingColumn("events", what, events.columns)
    return found


def _attributes(patterns: PatternSet) -> set[str]:
    found = {PATTERN_NAME}
    for one in patterns:
        found.update(one.remembered, one.by, *(selection.attributes for selection in one.selections))
    return found


def _require_keys(events: DataFrame, patterns: PatternSet) -> None:
    for one in patterns:
        for attribute in one.by:
            if not any(is_or_holds(column, [attribute]) for column in events.columns):
                raise MissingColumn("events", attribute, events.columns)


def _newest(prepared: DataFrame) -> DataFrame:
    return prepared.agg(f.max(TIME).alias(TIME))


def _latest(found: DataFrame) -> int:
    row = _newest(found).first()
    return NEVER if row is None or row[0] is None else int(row[0])


def _selected(prepared: DataFrame, names: list[str], patterns: PatternSet) -> DataFrame:
    """Without rows that cannot matter, as far as Spark can tell."""
    for (column, kind), name in zip(prepared.dtypes, names, strict=True):
        if column in BESIDE:
            continue
        if kind == "string" and (texts := texts_needed(patterns, name)) is not None:
            prepared = prepared.where(f.col(column).isin(sorted(texts)))
        elif kind in NUMBERS and (ranges := ranges_needed(patterns, name, NUMBERS[kind])) is not None:
            prepared = prepared.where(_within(column, ranges))
    return prepared


def _within(column: str, ranges: Sequence[tuple[float, float | None]]) -> Column:
    found = f.lit(False)
    for low, high in ranges:
        inside = f.col(column) >= low
        found = found | (inside if high is None else inside & (f.col(column) < high))
    return found


# In a table


def _hits(prepared: DataFrame, names: list[str], texts: bytes) -> DataFrame:
    """What steps select, and what was dropped."""

    def hits(batches: Batches) -> Batches:
        finder = HitFinder(ready(texts))
        for batch in batches:
            yield from finder.hits(finder.timed(batch.rename_columns(names))).to_batches()
        yield finder.drop_rows()

    return prepared.mapInArrow(hits, HITS_DDL)


def _matches(hits: DataFrame, texts: bytes, until: int) -> DataFrame:
    def matches(batches: Batches) -> Batches:
        return BatchFinder(ready(texts), until).find(batches)

    # Sorted by a number first: keys are compared only where their numbers are equal.
    keyed = hits.withColumn("__hash", f.xxhash64("pattern", "key"))
    together = keyed.repartition("__hash").sortWithinPartitions("__hash", "pattern", "key")
    return together.drop("__hash").mapInArrow(matches, FOUND_DDL)


# In a stream


def _in_stream(
    prepared: DataFrame, names: list[str], texts: bytes, *, delay: int, skew: int | None, buckets: int
) -> DataFrame:
    spark = prepared.sparkSession
    spark.conf.set(_PROVIDER, _ROCKSDB)  # the only one that keeps such state

    def hits(batches: Batches) -> Batches:
        named = (batch.rename_columns(names) for batch in batches)
        return packed(HitFinder(ready(texts)), named, buckets, skew)

    return (
        prepared.mapInArrow(hits, PACKED_DDL)
        .groupBy("bucket")
        .transformWithStateInPandas(
            BucketProcessor(texts, delay), outputStructType=FOUND_DDL, outputMode="append", timeMode="none"
        )
    )
