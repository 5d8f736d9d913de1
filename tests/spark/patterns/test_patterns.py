"""Patterns on Spark: a table, a stream and the plain detector find the same."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions

from palio import ImpossiblePattern, Notification
from palio.matching.patterns import Detector, watermark_for
from palio.spark.runtime.queries import run_to_end
from tests.slices import sliced

pytestmark = pytest.mark.usefixtures("several_parts")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SIENA = [("B", 4), ("A", 3), ("A", 1), ("B", 2), ("A", 5), ("B", 6), ("A", 7), ("B", 8)]
SEQUENCE = 'A[what = "A"] then B[what = "B"] within 1 h'
SCHEMA = "what string, v bigint, k string, time timestamp, position bigint, event_id string"

ARROW = pa.schema(
    [
        ("what", pa.string()),
        ("v", pa.int64()),
        ("k", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("position", pa.int64()),
        ("event_id", pa.string()),
    ]
)
PATTERNS = {
    "sequence": f"{SEQUENCE} by k",
    "by time": f"{SEQUENCE} by k order time",
    "rising": 'A[what = "A"] then B[what in ("A", "B") and v > A.v] within 20 s by k',
    "absence": 'A[what = "A"] then not C[what = "C"] within 15 s by k, v',
    "several": '(2 × A[what = "A"] and C[what = "C"]) then B[what = "B"] within 30 s by k consume own',
    "every": 'A[what = "A"] then C[what = "C"] within 5 s select every order time',
    "number": 'A[what = "A"] then C[what = "C"] within 40 s by v consume none',
    "loop": 'A[what = "A"]+ then within 9 s B[what = "B"] within 30 s by k skip to last B',
    "next": 'A[what = "A"] next B[what = "B"] within 20 s by k order time',
    "timeout": 'A[what = "A"] then D[what = "D"] within 3 s by k timeout tell',
}


def drawn(seed: int, count: int = 300) -> list[dict]:
    """Events whose times are up to five seconds out of order."""
    chance = random.Random(seed)
    return [
        {
            "what": chance.choice("ABC"),
            "v": chance.randrange(4),
            "k": chance.choice(["x", "y", "a longer key than thirty-two bytes, to be sure", None]),
            "time": EPOCH + timedelta(seconds=number + chance.randrange(6)),
            "position": number,
            "event_id": f"e{number}",
        }
        for number in range(count)
    ]


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def plain(events: list[dict], patterns: dict, until: int | None) -> list[tuple]:
    """What the detector says, event by event."""
    detector, found, newest = Detector(patterns), [], None
    for event in events:
        attributes = {name: value for name, value in event.items() if name in ("what", "v", "k")}
        time = microseconds(event["time"])
        newest = time if newest is None else max(newest, time)
        detector.take(Notification(attributes), time=time, position=event["position"], id=event["event_id"])
        found += detector.advance(watermark_for(newest, 6_000_000))
    found += detector.close() if until is None else detector.advance(until)
    return sorted((one.pattern, one.id, *(event.id for event in one.constituents)) for one in found)


def rows(frame) -> list[tuple]:
    found = frame.where("pattern is not null").collect()
    return sorted((one["pattern"], one["id"], *(event["id"] for event in one["events"])) for one in found)


def test_what_timed_out_is_told_as_such(spark, find):
    events = drawn(6, 60)
    found = find(table(spark, events), {"timeout": PATTERNS["timeout"], "loop": PATTERNS["loop"]}, close=True)
    told = {(one["pattern"], one["timed_out"]) for one in found.where("pattern is not null").collect()}
    assert told == {("timeout", True), ("loop", False)}


def drops(frame) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in frame.where("pattern is null").collect():
        for reason, count in row["dropped"].items():
            found[reason] = found.get(reason, 0) + count
    return found


def table(spark, events: list[dict]):
    return spark.createDataFrame([tuple(event.values()) for event in events], SCHEMA).repartition(3)


@pytest.fixture(scope="module")
def find(spark):
    from palio.spark.patterns.finding import find_patterns

    return find_patterns


def test_sienas_example_in_a_table(spark, find):
    events = [
        {
            "what": what,
            "v": 0,
            "k": "x",
            "time": EPOCH + timedelta(seconds=time),
            "position": at,
            "event_id": f"{what}{time}",
        }
        for at, (what, time) in enumerate(SIENA)
    ]
    found = find(table(spark, events), {"p": SEQUENCE})
    assert {one[2:] for one in rows(found)} == {("A3", "B6"), ("A7", "B8")}


@pytest.mark.parametrize("seed", sliced([1, 2], 1))
def test_a_table_gives_what_the_plain_detector_gives(spark, find, seed):
    events = drawn(seed)
    newest = max(microseconds(event["time"]) for event in events)
    expected = plain(events, PATTERNS, newest)
    assert {one[0] for one in expected} == set(PATTERNS)
    found = find(table(spark, events), PATTERNS).persist()
    assert rows(found) == expected
    assert drops(found).keys() == {"unkeyed"}
    found.unpersist()


@pytest.mark.parametrize("kind", sliced(["bigint", "double", "smallint", "float"], 2))
def test_patterns_of_ranges_alone_find_the_same(spark, find, kind):
    patterns = {
        "jump": "A[v < 2] then B[v >= 2.5] within 20 s by k",
        "back": "A[v > 2] then B[v = 0] within 9 s by k",
    }
    events = drawn(5)
    newest = max(microseconds(event["time"]) for event in events)
    expected = plain(events, patterns, newest)
    assert {one[0] for one in expected} == set(patterns)
    found = find(table(spark, events).withColumn("v", functions.col("v").cast(kind)), patterns)
    assert rows(found) == expected


def test_open_absences_are_closed_only_when_asked_for(spark, find):
    events = drawn(3, 100)
    absence = {"absence": PATTERNS["absence"]}
    newest = max(microseconds(event["time"]) for event in events)
    left_open = rows(find(table(spark, events), absence))
    closed = rows(find(table(spark, events), absence, close=True))
    assert left_open == plain(events, absence, newest)
    assert closed == plain(events, absence, None)
    assert len(closed) > len(left_open)


def test_events_may_be_encoded(spark, find):
    events = drawn(4, 100)
    encoded = [
        (
            Notification({name: event[name] for name in ("what", "v", "k")}).encode(),
            event["time"],
            event["position"],
            event["event_id"],
        )
        for event in events
    ]
    frame = spark.createDataFrame(encoded, "payload binary, time timestamp, sequence bigint, id string")
    newest = max(microseconds(event["time"]) for event in events)
    assert rows(find(frame, PATTERNS)) == plain(events, PATTERNS, newest)


class Stream:
    """Events as files that come one after the other, each a small batch."""

    def __init__(self, spark, find, folder, **options) -> None:
        self.spark, self.folder = spark, folder
        (folder / "events").mkdir()
        events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
        self.found = find(events, PATTERNS, delay=6_000_000, buckets=5, **options)
        self.files = 0

    def come(self, events: list[dict], size: int) -> None:
        for start in range(0, len(events), size):
            piece = events[start : start + size]
            random.Random(start).shuffle(piece)
            path = self.folder / "events" / f"{self.files:05}.parquet"
            pq.write_table(pa.Table.from_pylist(piece, ARROW), path)
            os.utime(path, (1_000_000_000 + self.files, 1_000_000_000 + self.files))
            self.files += 1

    def run(self, fail_at: int | None = None) -> None:
        """Until all that came has been looked at, or until it is killed in the middle of a batch."""

        def keep(frame, number: int) -> None:
            frame.write.mode("overwrite").parquet(str(self.folder / "found" / f"batch={number}"))
            if number == fail_at:
                raise RuntimeError("killed")

        writer = self.found.writeStream.foreachBatch(keep).trigger(availableNow=True)
        run_to_end(writer.option("checkpointLocation", str(self.folder / "checkpoint")).start)

    def result(self):
        return self.spark.read.parquet(str(self.folder / "found"))


@pytest.fixture
def stream(spark, find, tmp_path):
    return Stream(spark, find, tmp_path)


def test_a_stream_gives_what_the_plain_detector_gives_also_after_a_kill(stream):
    events = drawn(5, 160)
    newest = max(microseconds(event["time"]) for event in events)
    expected = plain(events, PATTERNS, watermark_for(newest, 6_000_000))
    stream.come(events[:120], 40)
    with pytest.raises(Exception, match="killed"):
        stream.run(fail_at=1)  # after it was written, before Spark knows of it
    stream.come(events[120:], 40)
    stream.run()
    assert rows(stream.result()) == expected
    assert {one[0] for one in expected} == set(PATTERNS)
    assert drops(stream.result()).keys() == {"unkeyed"}


@pytest.mark.slow
def test_what_is_late_or_ahead_of_the_clock_is_counted(stream):
    events = drawn(6, 80)
    early = dict(events[0], position=100, event_id="late", what="A", k="x", v=1)
    ahead = dict(early, position=101, event_id="ahead", time=datetime.now(UTC) + timedelta(hours=2))
    after = dict(events[79], position=102, event_id="after", time=events[79]["time"] + timedelta(seconds=1))
    stream.come(events, 80)
    stream.come([early, ahead, after], 3)
    stream.run()
    counted = drops(stream.result())
    assert counted["ahead"] == 1
    assert counted["late"] == len(PATTERNS)  # each of them wants it


def test_a_pattern_never_reads_its_own_results(spark, find):
    schema = "time timestamp, position bigint, `pattern.name` string"
    events = spark.createDataFrame(
        [
            (EPOCH + timedelta(seconds=at), at, name)
            for at, name in enumerate(["loop", "other", "loop", "other"])
        ],
        schema,
    )
    pattern = "A[exists(`pattern.name`)] then B[exists(`pattern.name`)] within 1 h"
    (found,) = rows(find(events, {"loop": pattern}))
    assert found[2:] == ("1", "3")


def test_what_is_published_names_its_constituents(spark, find):
    events = drawn(1, 60)
    found = find(table(spark, events), {"sequence": PATTERNS["sequence"]}).first()
    said = Notification.decode(bytes(found["payload"]))
    assert said["pattern.name"] == "sequence"
    assert list(said["pattern.events"]) == [one["id"] for one in found["events"]]
    assert list(said["pattern.steps"]) == ["A", "B"]
    assert said["pattern.key.k"] in {event["k"] for event in events}


def test_ten_thousand_patterns_are_small_enough_for_a_stream():
    """PySpark broadcasts functions of a megabyte, and the processor of a stream does not get broadcasts."""
    from palio.spark.patterns.finding import MOST_BYTES
    from palio.spark.patterns.hits import packed_texts

    texts = {f"p{n}": f'A[what = "A" and v = {n}] then B[v > A.v] within {n + 1} s by k' for n in range(10_000)}
    assert len(packed_texts(texts)) < MOST_BYTES / 4


def test_patterns_that_are_too_large_for_a_stream_are_refused(spark, find, tmp_path):
    from palio.spark.errors import TooManyPatterns

    (tmp_path / "events").mkdir()
    events = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events"))
    with pytest.raises(TooManyPatterns, match="in several streams"):
        find(events, {os.urandom(1_000_000).hex(): SEQUENCE})


def test_what_is_wrong_is_said_before_anything_runs(spark, find):
    from palio.spark.errors import MissingColumn

    events = spark.createDataFrame([], "what string, at timestamp, position bigint")
    with pytest.raises(MissingColumn, match="needs a column 'time'"):
        find(events, {"p": SEQUENCE})
    with pytest.raises(MissingColumn, match="needs a column 'k'"):
        find(events, {"p": f"{SEQUENCE} by k"}, time="at")
    with pytest.raises(MissingColumn, match="needs a column 'position'"):
        find(events.drop("position"), {"p": SEQUENCE}, time="at")
    with pytest.raises(ImpossiblePattern):
        find(events, {"p": "A[what = 1 and what = 2] within 1 s"}, time="at")
    assert rows(find(events.drop("position"), {"p": f"{SEQUENCE} order time"}, time="at")) == []
