"""`format("palio")` reads journals of stores: all rows once, typed columns, filters at the source."""

import pytest

import palio
import palio.spark
from palio.spark.errors import DataLoss, WrongOption
from palio.spark.source.options import read_options
from tests.slices import sliced
from tests.spark.filling import MIDNIGHT, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

SCHEMA = "symbol string, price double, volume bigint"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/palio.db"
    fill(url, [{"symbol": f"S{n % 5}", "price": n * 0.5, "volume": n} for n in range(1_000)])
    return url


def sequences(frame):
    return sorted(row.sequence for row in frame.select("sequence").collect())


def test_every_event_is_there_once_in_partitions_by_sequence(spark, url):
    frame = palio.spark.read(spark, url, rowsPerPartition=300)
    assert frame.columns == ["journal", "sequence", "id", "time", "publisher", "payload"]
    from pyspark.sql import functions

    parts = frame.groupBy(functions.spark_partition_id()).agg(
        functions.min("sequence"), functions.max("sequence"), functions.count("*")
    )
    assert sorted(tuple(row)[1:] for row in parts.collect()) == [
        (1, 300, 300),
        (301, 600, 300),
        (601, 900, 300),
        (901, 1_000, 100),
    ]
    row = frame.where("sequence = 4").first()
    assert (row.journal, row.publisher, row.id) == ("b", "publisher", None)
    assert row.time.timestamp() == MIDNIGHT + 3
    assert palio.Notification.decode(bytes(row.payload)) == palio.Notification(
        {"symbol": "S3", "price": 1.5, "volume": 3}
    )


def test_filters_and_times_are_evaluated_at_the_source(spark, url):
    crossed = palio.spark.Crossed()
    frame = palio.spark.read(
        spark,
        url,
        schema=SCHEMA,
        filter='symbol = "S3" and price > 100',
        since=MIDNIGHT + 300,
        until=MIDNIGHT + 400,
        counter=crossed,
    )
    rows = frame.collect()
    assert [row.volume for row in rows] == list(range(303, 400, 5))
    assert (crossed.rows, crossed.unconverted) == (len(rows), 0)
    encoded = palio.spark.Crossed()
    assert palio.spark.read(spark, url, filter="volume < 7", counter=encoded).count() == 7
    assert (encoded.rows, encoded.unconverted) == (7, 0)


@pytest.mark.parametrize("pushdown", sliced([True, False], 1))
def test_several_conditions_on_the_same_journal_do_not_get_mixed_up(spark, url, pushdown):
    def read():
        return palio.spark.read(spark, url, schema=SCHEMA, pushdown=pushdown)

    high, low = read().where("volume > 990"), read().where("volume < 5")
    assert sorted(row.volume for row in high.union(low).collect()) == [*range(5), *range(991, 1_000)]
    joined = read().where("volume > 990").alias("a").join(read().where("price >= 499").alias("b"), "volume")
    assert sorted(row.volume for row in joined.collect()) == [998, 999]
    read().createOrReplaceTempView("events")
    assert spark.sql("SELECT count(*) FROM events WHERE symbol = 'S1' AND NOT volume < 500").first()[0] == 100
    assert read().where("volume = 7").count() == 1
    assert read().count() == 1_000
    if not pushdown:
        frame = read()
        both = frame.where("volume > 990").union(frame.where("volume < 5"))
        assert both.count() == 14
        assert frame.count() == 1_000
    assert read().where("price is null").count() == 0


def test_pushed_conditions_select_at_the_source(spark, url):
    frame = palio.spark.read(spark, url, schema=SCHEMA, pushdown=True).where("volume > 990 and symbol = 'S1'")
    assert [row.volume for row in frame.collect()] == [991, 996]
    assert rows_of_scan(frame) == 2
    other = palio.spark.read(spark, url, schema=SCHEMA).where("volume > 990 and symbol = 'S1'")
    assert (len(other.collect()), rows_of_scan(other)) == (2, 1_000)


def rows_of_scan(frame):
    """How many rows Spark's own counter says that the source gave."""
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    return leaf.metrics().apply("numOutputRows").value()


def test_what_does_not_convert_is_null_and_counted(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/palio.db"
    values = [1, 2.0, 2.5, "three", True, 2**53 + 1, 300, None]
    fill(url, [{"x": value, "n": number} for number, value in enumerate(values)])
    crossed = palio.spark.Crossed()
    schema = "n int, x double, _sequence bigint"
    rows = palio.spark.read(spark, url, schema=schema, counter=crossed).orderBy("n").collect()
    assert [row.x for row in rows] == [1.0, 2.0, 2.5, None, None, None, 300.0, None]
    assert [row._sequence for row in rows] == list(range(1, 9))
    assert (crossed.rows, crossed.unconverted) == (8, 3)
    small = palio.spark.read(spark, url, schema="n int, x tinyint, _unconverted int").orderBy("n").collect()
    assert [row.x for row in small] == [1, 2, None, None, None, None, None, None]
    assert [row._unconverted for row in small] == [0, 0, 1, 1, 1, 1, 1, 0]


def test_all_types_and_lists_and_variants(spark, tmp_path):
    from datetime import UTC, datetime

    url = f"sqlite:///{tmp_path}/palio.db"
    moment = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    event = {"b": True, "f": 1.5, "s": "ä", "t": moment, "r": b"\0\1", "l": ["x", "y"], "m": [1, 2], "v": 7}
    fill(url, [event, {"v": "text"}, {"l": [1]}])
    schema = "b boolean, f float, s string, t timestamp, r binary, l array<string>, m array<double>, v variant"
    frame = palio.spark.read(spark, url, schema=schema)
    first, second, third = frame.selectExpr("*", "cast(v as string) as w").drop("v").collect()
    assert (first.b, first.f, first.s, bytes(first.r), first.l) == (True, 1.5, "ä", b"\0\1", ["x", "y"])
    assert first.t.timestamp() == moment.timestamp()
    assert (first.m, first.w) == ([1.0, 2.0], "7")
    assert (second.w, second.l, third.l) == ("text", None, None)


def test_what_is_wrong_is_said_in_a_sentence(spark, url, tmp_path):
    for options, sentence in [
        ({"url": "postgresql://me:secret@host/db"}, "PGPASSWORD"),
        ({}, "Say which broker or store"),
        ({"url": url, "since": "yesterday"}, "is no time"),
        ({"url": url, "pushdown": "perhaps"}, "true or false"),
        ({"url": url, "startingOffsets": "7"}, "earliest, latest"),
    ]:
        with pytest.raises(WrongOption, match=sentence):
            read_options(options)
    with pytest.raises(palio.FilterSyntaxError):
        read_options({"url": url, "filter": "price >"})
    with pytest.raises(Exception, match=r"Column 8"):
        palio.spark.read(spark, url, filter="price >").count()
    with pytest.raises(Exception, match="cannot be read"):
        palio.spark.read(spark, url, schema="price decimal(3,1)").count()
    with pytest.raises(Exception, match="There is no such file"):
        palio.spark.read(spark, f"sqlite:///{tmp_path}/missing.db").count()


@pytest.mark.slow
def test_a_broker_that_is_not_there_is_named(spark):
    """After ten seconds, in which it may come back."""
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        palio.spark.read(spark, "palio://127.0.0.1:1").count()


def test_a_damaged_row_is_left_out(spark, tmp_path):
    import sqlite3

    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, [{"x": 1}, {"x": 2}, {"x": 3}])
    with sqlite3.connect(tmp_path / "palio.db") as connection:
        connection.execute("UPDATE palio_journal SET body = x'c1' WHERE sequence = 2")
    assert sequences(palio.spark.read(spark, url)) == [1, 3]


def test_what_was_trimmed_is_not_read_over(spark, tmp_path):
    from palio.spark.source.journals import Span, WantedEvents, open_journals

    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, [{"x": number} for number in range(10)], trim=4)
    assert sequences(palio.spark.read(spark, url)) == list(range(5, 11))
    with open_journals(url) as journals:
        with pytest.raises(DataLoss, match="from 3 on, but begins with 5"):
            list(journals.read(Span("b", 2, 10), WantedEvents()))
        (batch,) = journals.read(Span("b", 2, 10), WantedEvents(lossy=True))
        assert batch.num_rows == 6
