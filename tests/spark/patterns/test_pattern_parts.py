"""What a job does with Arrow batches, without Spark around it, against the definition of patterns."""

from __future__ import annotations

import itertools
import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import Notification
from palio.matching.patterns import PatternSet
from palio.matching.patterns.hit import FOREVER
from palio.model.values import INT_MIN, Kind
from palio.spark.patterns.batch import BatchFinder
from palio.spark.patterns.hits import ID, POSITION, TIME, HitFinder
from palio.spark.patterns.selection import MAX_RANGES, MAX_TEXTS, ranges_needed, texts_needed
from palio.spark.patterns.stream import Bucket, packed
from tests.matching.patterns import definition
from tests.matching.patterns.drawing import Maker

BUCKETS = 3


def as_batch(events, *, encoded: bool, texts: bool) -> pa.RecordBatch:
    """Events as a job gets them: as columns, or encoded; the key as a number or a text."""
    beside = {
        TIME: pa.array([event.time for event in events], pa.int64()),
        POSITION: pa.array([event.position for event in events], pa.int64()),
        ID: pa.array([event.id for event in events], pa.string()),
    }
    contents = [
        event.attributes | {"k": str(event.attributes["k"])} if texts else event.attributes for event in events
    ]
    if encoded:
        payload = [Notification(content).encode() for content in contents]
        return pa.RecordBatch.from_pydict(beside | {"payload": pa.array(payload, pa.binary())})
    kinds = {"t": pa.string(), "v": pa.int64(), "k": pa.string() if texts else pa.int64()}
    columns = {name: pa.array([one[name] for one in contents], kind) for name, kind in kinds.items()}
    return pa.RecordBatch.from_pydict(beside | columns)


def pieces(things: list, random) -> list[list]:
    found, at = [], 0
    while at < len(things):
        size = random.randint(1, 4)
        found.append(things[at : at + size])
        at += size
    return found


def in_table(patterns: PatternSet, batches, random) -> list:
    finder = HitFinder(patterns)
    tables = [finder.hits(finder.timed(batch)) for batch in batches]
    if not tables:
        return []
    hits = pa.concat_tables(tables)
    hits = hits.sort_by([("pattern", "ascending"), ("key", "ascending")])
    cut = [hits.slice(at, 3).combine_chunks() for at in range(0, hits.num_rows, 3)]
    flat = (batch for table in cut for batch in table.to_batches())
    return [row for batch in BatchFinder(patterns, FOREVER).find(flat) for row in batch.to_pylist()]


def ids(rows) -> list[tuple[str, tuple[str, ...]]]:
    return sorted((row["pattern"], tuple(event["id"] for event in row["events"])) for row in rows)


def table_gives_what_the_definition_says(random, encoded, texts):
    maker = Maker(random)
    patterns = {"one": maker.pattern(), "two": maker.pattern()}
    events = maker.events()
    shuffled = random.sample(events, len(events))
    batches = [as_batch(piece, encoded=encoded, texts=texts) for piece in pieces(shuffled, random)]
    expected = [(name, one) for name, given in patterns.items() for one in definition.matches(given, events)]
    assert ids(in_table(PatternSet(patterns), batches, random)) == sorted(expected)


def stream_gives_what_the_definition_says(random, encoded, texts):
    maker = Maker(random)
    patterns = {"one": maker.pattern(), "two": maker.pattern()}
    ready = PatternSet(patterns)
    events = maker.events()
    states: dict[int, bytes] = {}
    found = []
    for piece in pieces(events, random):  # each a small batch of some tasks
        shuffled = random.sample(piece, len(piece))
        packages: dict[int, list[bytes]] = {}
        for task in pieces(shuffled, random):
            batch = as_batch(task, encoded=encoded, texts=texts)
            for rows in packed(HitFinder(ready), iter([batch]), BUCKETS, None):
                for bucket, raw in zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True):
                    packages.setdefault(bucket, []).append(raw)
        for number, raws in packages.items():
            bucket = Bucket(ready, states.get(number), delay=10)  # as far out of order as events can be
            matches, drops = bucket.take(iter(raws))
            found += matches
            assert not drops
            states[number] = bucket.detector.encode()
    for state in states.values():
        found += Bucket(ready, state, delay=10).detector.close()
    expected = [(name, one) for name, given in patterns.items() for one in definition.matches(given, events)]
    said = [(one.pattern, tuple(event.id for event in one.constituents)) for one in found]
    assert sorted(said) == sorted(expected)


@settings(max_examples=50)
@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_a_table_gives_what_the_definition_says(random, encoded, texts):
    table_gives_what_the_definition_says(random, encoded, texts)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_a_table_gives_it_many_times(random, encoded, texts):
    table_gives_what_the_definition_says(random, encoded, texts)


@settings(max_examples=50)
@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_a_stream_gives_what_the_definition_says(random, encoded, texts):
    stream_gives_what_the_definition_says(random, encoded, texts)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_a_stream_gives_it_many_times(random, encoded, texts):
    stream_gives_what_the_definition_says(random, encoded, texts)


def test_events_without_a_time_and_hits_without_a_key_are_counted():
    patterns = PatternSet({"p": "A[a = 1] within 1 s by k"})
    batch = pa.RecordBatch.from_pydict(
        {TIME: [1, 2, None], POSITION: [1, 2, 3], ID: ["1", "2", "3"], "a": [1, 1, 1], "k": ["x", None, "x"]}
    )
    finder = HitFinder(patterns)
    assert finder.hits(finder.timed(batch)).num_rows == 1
    assert finder.drops == {"unkeyed": 1, "untimed": 1}
    drops = BatchFinder(patterns, FOREVER).find(iter([finder.drop_rows()]))
    assert [dict(row["dropped"]) for batch in drops for row in batch.to_pylist()] == [finder.drops]


def test_what_comes_to_a_stream_late_or_from_the_future_is_counted():
    patterns = PatternSet({"p": "A[a = 1] then B[a = 2] within 1 min"})
    positions = itertools.count()
    future = time.time_ns() // 1_000 + 7_200_000_000

    def come(bucket: Bucket, *times: int) -> tuple[list, dict[str, int]]:
        some = list(times)
        places = [next(positions) for _ in some]
        batch = {TIME: some, POSITION: places, ID: [str(one) for one in places], "a": [1] * len(some)}
        (rows,) = packed(HitFinder(patterns), iter([pa.RecordBatch.from_pydict(batch)]), 1, 3_600_000_000)
        return bucket.take(iter(rows.column(1).to_pylist()))

    first = Bucket(patterns, None, delay=10)
    assert come(first, 100, 200, future) == ([], {"ahead": 1})
    second = Bucket(patterns, first.detector.encode(), delay=10)
    assert come(second, 150, 195, 210) == ([], {"late": 1})


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 70_000])
def test_a_text_is_the_same_key_as_for_a_single_event(size):
    from palio.matching.patterns.patternset import partition_key

    patterns = PatternSet({"p": "A[true] within 1 s by k"})
    text = "é" * (size // 2) + "x" * (size % 2)
    batch = pa.RecordBatch.from_pydict({TIME: [1], POSITION: [1], ID: ["1"], "k": [text]})
    assert HitFinder(patterns).hits(batch).column("key").to_pylist() == [partition_key(("k",), {"k": text})]


@pytest.mark.parametrize(
    ("patterns", "texts"),
    [
        (['A[t = "a"] then B[t in ("b", "c") and v > 1] within 1 s'], {"a", "b", "c"}),
        (['A[t = "a" or t = "b" and v = 2] then not B[t = "c"] within 1 s'], {"a", "b", "c"}),
        (['A[t = "a"] within 1 s', 'A[t = "b"] within 1 s'], {"a", "b"}),
        (['A[t = "a" or v = 2] within 1 s'], None),
        (['A[t = "a"] within 1 s', "A[v = 2] within 1 s"], None),
        (['A[t in ("a", 5)] within 1 s'], {"a"}),  # the column has texts, and 5 is none
        (['A[not t = "a"] within 1 s'], None),
        (['A[t > "a" and t < "b"] within 1 s'], None),
        (['A[t ends with "a"] within 1 s'], None),
        (["A[absent(t)] within 1 s"], None),
        ([f'A[t = "{number}"] within 1 s' for number in range(MAX_TEXTS + 1)], None),
    ],
)
def test_spark_may_leave_out_what_no_step_can_be(patterns, texts):
    assert texts_needed(PatternSet({str(n): text for n, text in enumerate(patterns)}), "t") == texts


@pytest.mark.parametrize(
    ("patterns", "ranges"),
    [
        (["A[v < 5] then B[v >= 95] within 1 s"], [(INT_MIN, 5), (95, None)]),
        (["A[v between 1 and 3 or v = 8] then not B[v = 4] within 1 s"], [(1, 5), (8, 9)]),
        (["A[v > 2.5] within 1 s", 'A[v = "a"] within 1 s'], [(3, None)]),  # the column has numbers only
        (["A[v < 5] then B[v >= 3] within 1 s"], None),
        (['A[v < 5 or t = "a"] within 1 s'], None),
        (["A[v < 5] within 1 s", 'A[t = "a"] within 1 s'], None),
        (["A[not v < 5] within 1 s"], None),
        (["A[absent(v)] within 1 s"], None),
        ([f"A[v = {2 * number}] within 1 s" for number in range(MAX_RANGES + 1)], None),
    ],
)
def test_spark_may_leave_out_numbers_that_no_step_can_be(patterns, ranges):
    chosen = PatternSet({str(n): text for n, text in enumerate(patterns)})
    assert ranges_needed(chosen, "v", Kind.INT) == ranges
