"""Patterns in a stream: a detector for each hash bucket of keys, kept as one binary value.

A state for each single key would be asked for and written key by key; so keys go into buckets, and a bucket's
detector is one value (`Detector.encode`). For the same reason hits do not travel row by row: each task packs
what it has for a bucket into one row.

Time moves by what the events say. With its hits, every task tells every bucket the newest time that it saw,
hit or not; a bucket's watermark is the newest of all, less the delay. So it moves in the batch in which it is
said, is the same after a restart, and every bucket is looked at in every batch: absences end and state
expires without timers.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pandas as pd
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from palio.matching.patterns import Detector, PatternSet, watermark_for
from palio.matching.patterns.hit import NEVER, Hit
from palio.spark.arrow import Batches, arrow_schema, batch_of
from palio.spark.patterns.batch import hits_of
from palio.spark.patterns.found import FOUND, dropped, found_rows
from palio.spark.patterns.hits import TIME, HitFinder, ready

PACKED_DDL = "bucket int, packed binary"
PACKED = arrow_schema(PACKED_DDL)
STATE_DDL = "detector binary"


class BucketPackage(msgspec.Struct, array_like=True):
    """What a task has for a bucket: the newest time it saw, what it dropped, and hits by pattern and key."""

    newest: int
    drops: dict[str, int]
    hits: list[tuple[int, bytes, Hit]]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(BucketPackage)


def packed(finder: HitFinder, batches: Batches, buckets: int, skew: int | None) -> Batches:
    """The hits of a task, a row for each bucket. What is further ahead of the clock than `skew` is dropped."""
    packages = [BucketPackage(NEVER, {}, []) for _ in range(buckets)]
    newest = NEVER
    for batch in batches:
        batch = finder.timed(batch)
        if skew is not None:
            kept = batch.filter(pc.less_equal(batch.column(TIME), time.time_ns() // 1_000 + skew))
            finder.drop("ahead", batch.num_rows - kept.num_rows)
            batch = kept
        if not batch.num_rows:
            continue
        newest = max(newest, pc.max(batch.column(TIME)).as_py())
        table = finder.hits(batch)
        numbers, keys = table.column("pattern").to_pylist(), table.column("key").to_pylist()
        for number, key, hit in zip(numbers, keys, hits_of(table), strict=True):
            packages[zlib.crc32(key, number) % buckets].hits.append((number, key, hit))
    if newest == NEVER and not finder.drops:
        return
    packages[0].drops = dict(finder.drops)
    for package in packages:
        package.newest = newest
    yield batch_of(PACKED, range(buckets), [_encoder.encode(one) for one in packages])


class Bucket:
    """One bucket in one batch: its detector, and what came for it."""

    def __init__(self, patterns: PatternSet, state: bytes | None, delay: int) -> None:
        self.detector = Detector(patterns) if state is None else Detector.decode(patterns, state)
        self._delay = delay

    def take(self, packages: Iterator[bytes]) -> tuple[list[Any], dict[str, int]]:
        """The matches that are certain now, and what was dropped in this batch."""
        detector = self.detector
        before = msgspec.structs.replace(detector.counts)
        drops: Counter[str] = Counter()
        newest = NEVER
        for raw in packages:
            package = _decoder.decode(raw)
            newest = max(newest, package.newest)
            drops.update(package.drops)
            for number, key, hit in package.hits:
                hit.restore()
                detector.add(number, key, hit)
        matches = detector.advance(watermark_for(newest, self._delay)) if newest > NEVER else []
        return matches, {**drops, **dropped(detector.counts, before)}


class BucketProcessor(StatefulProcessor):
    """Looks at a bucket whenever something, or only the time, has come; its state is one binary value."""

    def __init__(self, texts: bytes, delay: int) -> None:
        self._texts = texts
        self._delay = delay

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("detector", STATE_DDL)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        kept = self._state.get()
        bucket = Bucket(ready(self._texts), None if kept is None else bytes(kept[0]), self._delay)
        matches, drops = bucket.take(raw for frame in rows for raw in frame["packed"])
        self._state.update((bucket.detector.encode(),))
        found = found_rows(matches, drops)
        if found:
            yield pd.DataFrame(found, columns=FOUND.names)

    def close(self) -> None:
        pass
