"""Bulk matching: ids as they came, rows as in a join, bounded pieces, a sentence for what cannot be read."""

from __future__ import annotations

import datetime
import decimal
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions

import palio
import palio.spark
from palio.spark.errors import BadSubscriptions, MissingColumn
from palio.spark.frames import spread
from palio.spark.matching import bulk
from palio.spark.tables.inputs import partitions_of
from tests.slices import sliced
from tests.spark.engines import collected, frame_of

pytestmark = pytest.mark.usefixtures("several_parts")

ENTRIES = [
    ("a", 'symbol = "ACME" and price > 100'),
    ("b", "price > 90"),
    ("c", "absent(symbol)"),
    ("d", "true"),
]
ROWS = [(1, "ACME", 101.5), (2, "ACME", 99.0), (3, None, 500.0), (4, None, None)]
PAIRS = [(1, "a"), (1, "b"), (1, "d"), (2, "b"), (2, "d"), (3, "b"), (3, "c"), (3, "d"), (4, "c"), (4, "d")]


@pytest.fixture(scope="module")
def events(spark):
    return spark.createDataFrame(ROWS, "event_id long, symbol string, price double")


@pytest.fixture(scope="module")
def shards(spark):
    return palio.spark.build_shards(frame_of(spark, ENTRIES))


def test_the_example_of_the_page(events, spark):
    pairs = palio.spark.match(events, frame_of(spark, ENTRIES))
    assert pairs.columns == ["event_id", "subscription_id"]
    assert sorted(collected(pairs)) == PAIRS


@pytest.mark.parametrize("divided", sliced([(7, 1), (0, 3), (1, 1), (0, 1), (1, 3), (7, 3)], 2))
def test_partitions_and_shards_do_not_matter(events, spark, divided):
    partitions, size = divided
    shards = palio.spark.build_shards(frame_of(spark, ENTRIES), size=size)
    assert shards.subscriptions == len(ENTRIES)
    assert sorted(collected(palio.spark.match(events, shards, partitions=partitions))) == PAIRS


def test_ids_of_any_type_come_out_as_they_went_in(spark):
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    ids = {
        "event_id": pa.array([b"\x00\xff", None], pa.binary()),
        "subscription_id": pa.array(
            [{"desk": 7, "name": "x", "price": decimal.Decimal("1.50"), "at": day}, None],
            pa.struct(
                [
                    ("desk", pa.int32()),
                    ("name", pa.string()),
                    ("price", pa.decimal128(10, 2)),
                    ("at", pa.timestamp("us", "UTC")),
                ]
            ),
        ),
    }
    events = spark.createDataFrame(pa.table({"event_id": ids["event_id"], "x": [1, 2]}))
    subscriptions = spark.createDataFrame(
        pa.table({"subscription_id": ids["subscription_id"], "filter": ["x > 0", "x = 2"]})
    )
    pairs = palio.spark.match(events, subscriptions, partitions=2)
    assert pairs.schema["event_id"].dataType == events.schema["event_id"].dataType
    assert pairs.schema["subscription_id"].dataType == subscriptions.schema["subscription_id"].dataType
    found = {
        (row["event_id"], row["subscription_id"] and row["subscription_id"]["price"]) for row in pairs.collect()
    }
    price = decimal.Decimal("1.50")
    assert found == {(b"\x00\xff", price), (None, price), (None, None)}


def test_every_row_counts_as_in_a_join(spark):
    events = spark.createDataFrame([(1, 5), (1, 5)], "event_id int, x int")
    pairs = palio.spark.match(events, frame_of(spark, [(7, "x > 1"), (7, "x > 2"), (8, "x > 9")]), partitions=2)
    assert [tuple(row) for row in pairs.collect()] == [(1, 7)] * 4


def test_structs_have_dotted_names_and_unused_columns_are_not_read(spark, tmp_path):
    table = pa.table({"event_id": [1, 2], "user": [{"age": 5}, {"age": 1}], "x": [1, 1], "unused": ["u", "v"]})
    spark.createDataFrame(table).write.parquet(str(tmp_path / "events"))
    pairs = palio.spark.match(
        spark.read.parquet(str(tmp_path / "events")),
        frame_of(spark, [(1, "user.age > 3 and x = 1")]),
        partitions=2,
    )
    assert collected(pairs) == [(1, 1)]
    plan = pairs._jdf.queryExecution().executedPlan().toString()
    assert "unused" not in plan
    for name in ("Cartesian", "Join", "Aggregate"):
        assert name not in plan
    assert len(re.findall(r"\bExchange ", plan)) == plan.count("REPARTITION_BY_NUM") == 1


@pytest.mark.parametrize("id", sliced(["id", "map(id, id)", "7", "array(id)"], 2))
def test_events_are_spread_evenly_whatever_their_ids_are(spark, id):
    given = spark.range(0, 4_000, 1, 1).selectExpr(f"{id} as event_id", "id % 200 as x", "id as `user.age`")
    parts = spread(given, 8).groupBy(functions.spark_partition_id()).count().collect()
    assert len(parts) == 8
    assert all(400 < row["count"] < 600 for row in parts)


@pytest.mark.parametrize(
    "case", sliced([([100] * 8, 0), ([800], None), ([300] + [70] * 7, None), ([100] * 7, None)], 2)
)
def test_files_that_lie_evenly_are_not_spread(spark, tmp_path, case):
    files, parts = case
    place = str(tmp_path / "events")
    os.mkdir(place)
    first = 0
    for number, rows in enumerate(files):
        ids = range(first, first + rows)
        pq.write_table(pa.table({"event_id": ids, "x": [id % 7 for id in ids]}), f"{place}/{number}.parquet")
        first += rows
    events = spark.read.parquet(place)
    filters = frame_of(spark, [(1, "x > 4"), (2, "x = 0")])
    setting = "spark.sql.files.minPartitionNum"
    try:
        assert partitions_of(spark, place, events) == parts
        assert spark.conf.get(setting) == "8"
        pairs = palio.spark.match(events, filters, partitions=parts)
        assert pairs._jdf.queryExecution().executedPlan().toString().count("Exchange ") == (parts is None)
        assert sorted(collected(pairs)) == sorted(collected(palio.spark.match(events, filters, partitions=3)))
        spark.conf.set(setting, "1")
        partitions_of(spark, place, events)
        assert spark.conf.get(setting) == "1"  # who says otherwise is heard
    finally:
        spark.conf.unset(setting)


def test_what_spark_does_not_read_by_itself_is_spread(spark):
    assert partitions_of(spark, "examples/events.jsonl", None) is None
    assert partitions_of(spark, "palio://127.0.0.1:1", None) is None


def test_all_shards_share_one_spreading_of_the_events(events, spark):
    shards = palio.spark.build_shards(frame_of(spark, ENTRIES), size=1)
    plan = palio.spark.match(events, shards, partitions=2)._jdf.queryExecution().executedPlan().toString()
    several = sum(one.subscriptions > 0 for one in shards.reports)
    assert plan.count("ReusedExchange") == several - 1 > 0


def test_nothing_on_either_side_gives_nothing(events, spark):
    none = frame_of(spark, ENTRIES).where("false")
    found = palio.spark.match(events, none)
    assert (found.columns, found.count()) == (["event_id", "subscription_id"], 0)
    assert palio.spark.match(events.where("false"), frame_of(spark, ENTRIES), partitions=2).count() == 0


# Pieces


def test_pieces_are_bounded_even_within_one_event(monkeypatch):
    monkeypatch.setattr(bulk, "MOST_PAIRS", 1 << 12)
    many = 12_500
    ids = pa.array(range(many), pa.int64())
    index = palio.MatchIndex((number, f"x >= {-(number % 5)}") for number in range(many))
    events = pa.record_batch({"event_id": ["e", "f", "g"], "x": [1, -10, 1]})
    batches = list(bulk.match_in_memory(index, ids, [events]))
    assert max(batch.num_rows for batch in batches) == bulk.MOST_PAIRS
    found = pa.Table.from_batches(batches)
    assert found.num_rows == 2 * many
    assert set(found.column("event_id").to_pylist()) == {"e", "g"}


def test_what_a_worker_holds_is_bounded_whatever_comes_next():
    for subscriptions in (1, 10, 10_000, 200_000):
        step = bulk._next_step(1, subscriptions, subscriptions)
        for pairs_an_event in (0, subscriptions, 0, 1):
            assert step >= 1
            assert step == 1 or step * subscriptions <= 1 << 26
            step = bulk._next_step(step, step * pairs_an_event, subscriptions)


def test_a_result_larger_than_the_driver_takes_does_not_come_to_it(spark):
    """The session takes results of at most 8 MB (see conftest); this one has 16."""
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import Observation

    events = spark.range(1_000).select(functions.col("id").alias("event_id"), functions.lit(1).alias("x"))
    subscriptions = spark.range(1_000).select(
        functions.col("id").alias("subscription_id"), functions.lit("x = 1").alias("filter")
    )
    pairs = palio.spark.match(events, subscriptions)
    seen = Observation()
    counted = pairs.observe(seen, functions.count("*").alias("pairs"))
    counted.write.format("noop").mode("overwrite").save()
    assert seen.get["pairs"] == 1_000_000
    with pytest.raises(Py4JJavaError, match="maxResultSize"):
        pairs.toArrow()


# What cannot be read


def test_a_filter_that_cannot_be_read_is_an_error_or_left_out(events, spark):
    subscriptions = frame_of(spark, [*ENTRIES, ("bad", "price >"), ("none", None)])
    with pytest.raises(
        BadSubscriptions, match="2 filters cannot be read, for example that of subscription"
    ) as caught:
        palio.spark.match(events, subscriptions)
    assert caught.value.count == 2
    assert sorted(collected(palio.spark.match(events, subscriptions, invalid="skip", partitions=2))) == PAIRS
    found = {row["subscription_id"]: row["reason"] for row in palio.spark.unreadable(subscriptions).collect()}
    assert set(found) == {"bad", "none"}
    assert "expected a value" in found["bad"]
    with pytest.raises(ValueError, match='"error" or "skip"'):
        palio.spark.match(events, subscriptions, invalid="ignore")


def test_an_event_that_cannot_be_read_is_an_error_or_left_out(spark, shards):
    from pyspark.errors import PySparkException

    good = palio.Notification({"symbol": "ACME", "price": 101.5}).encode()
    rows = [(1, good), (2, b"\xc1nonsense"), (3, good), (4, b""), (5, None)]
    events = spark.createDataFrame(rows, "event_id int, payload binary")
    with pytest.raises(PySparkException, match=r"BadEvent: Event [24] cannot be read"):
        palio.spark.match(events, shards, partitions=1).collect()
    found = collected(palio.spark.match(events, shards, invalid="skip", partitions=1))
    assert sorted(found) == [(1, "a"), (1, "b"), (1, "d"), (3, "a"), (3, "b"), (3, "d"), (5, "c"), (5, "d")]
    assert sorted(row["event_id"] for row in palio.spark.unreadable(events).collect()) == [2, 4]


def test_many_events_that_cannot_be_read_are_found_in_one_pass():
    class Counting(palio.MatchIndex):
        rows = 0

        def match_batch(self, table):
            self.rows += table.num_rows
            return super().match_batch(table)

    count = 5_000
    index = Counting([(0, "price > 90")])
    payloads = [b"\xc1", palio.Notification({"price": 101.5}).encode()] * count
    batch = pa.record_batch([pa.array(range(2 * count)), pa.array(payloads)], ["event_id", "payload"])
    pairs = list(bulk.match_in_memory(index, pa.array(["a"]), [batch], skip=True))
    assert pa.Table.from_batches(pairs).column("event_id").to_pylist() == list(range(1, 2 * count, 2))
    assert index.rows == 3 * count  # all of them once, and those that can be read once more


def test_columns_that_no_attribute_can_be_are_named(spark, shards):
    events = spark.sql("select 1 event_id, cast(1.5 as decimal(5, 2)) price")
    with pytest.raises(palio.UnsupportedColumn, match=r"'price' has the type decimal128\(5, 2\)"):
        palio.spark.match(events, shards)
    events = spark.sql("select 1 event_id, timestamp_ntz '2026-01-01 00:00:00' price")
    with pytest.raises(palio.UnsupportedColumn, match="a time needs a zone"):
        palio.spark.match(events, shards)
    with pytest.raises(MissingColumn, match="events needs a column 'event_id'; it has price"):
        palio.spark.match(events.drop("event_id"), shards)
    with pytest.raises(MissingColumn, match="subscriptions needs a column 'filter'"):
        palio.spark.match(events, events.withColumnRenamed("event_id", "subscription_id"))


def test_a_stream_is_matched_against_shards(spark, shards, tmp_path):
    spark.createDataFrame(ROWS, "event_id long, symbol string, price double").write.parquet(
        str(tmp_path / "in")
    )
    stream = spark.readStream.schema("event_id long, symbol string, price double").parquet(str(tmp_path / "in"))
    query = (
        palio.spark.match(stream, shards, partitions=2)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(120)
    assert sorted(collected(spark.read.parquet(str(tmp_path / "out")))) == PAIRS
