"""Streams from journals, with offsets that are positions; and through a broker that is restarted meanwhile."""

import json
import sqlite3

import pytest

import palio
import palio.spark
import palio.sync
import palio.testing
from palio.spark.runtime.queries import run_to_end
from palio.spark.source import offsets
from palio.spark.source.journals import JournalStanding, Span, WantedEvents, open_journals
from tests.spark.filling import fill

pytest.importorskip("pyspark", reason="pyspark is not installed")


def finished(frame, folder):
    query = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    start = query.option("path", str(folder / "out")).trigger(availableNow=True).start
    return run_to_end(start, seconds=120)


def written(spark, folder):
    return sorted(row.x for row in spark.read.parquet(str(folder / "out")).collect())


def test_a_stream_goes_on_where_it_was_with_limits_and_says_how_far_it_is_behind(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, [{"x": n} for n in range(100)])

    def stream():
        return palio.spark.read_stream(
            spark, url, schema="x int", filter="x != 50", maxRowsPerTrigger=40, reader="query"
        )

    first = finished(stream(), tmp_path)
    assert written(spark, tmp_path) == [n for n in range(100) if n != 50]
    sources = [json.loads(progress.json)["sources"][0] for progress in first.recentProgress]
    ends = [one["endOffset"]["b"] for one in sources if one["numInputRows"]]
    assert ends == [40, 80, 100]
    assert sources[0]["latestOffset"] == {"b": 100}  # and so it is 60 behind
    with sqlite3.connect(tmp_path / "palio.db") as connection:
        (read,) = connection.execute(
            "SELECT value FROM palio_facts WHERE kind = 'held' AND subject = 'query'"
        ).fetchone()
        assert read in (80, 100)  # Spark tells of a batch when it begins with the next
    fill(url, [{"x": n} for n in range(100, 130)])
    finished(stream(), tmp_path)
    assert written(spark, tmp_path) == [n for n in range(130) if n != 50]


@pytest.mark.slow
def test_reading_below_what_was_trimmed_is_an_error_unless_one_wants_it(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, [{"x": n} for n in range(20)])
    finished(palio.spark.read_stream(spark, url, schema="x int"), tmp_path)
    fill(url, [{"x": n} for n in range(20, 40)], trim=30)
    with pytest.raises(Exception, match="from 21 on, but begins with 31"):
        finished(palio.spark.read_stream(spark, url, schema="x int"), tmp_path)
    finished(palio.spark.read_stream(spark, url, schema="x int", failOnDataLoss=False), tmp_path)
    assert written(spark, tmp_path) == [*range(20), *range(30, 40)]


@pytest.mark.slow
def test_a_broker_that_is_restarted_loses_and_doubles_nothing(spark, tmp_path):
    broker = palio.testing.broker(journal=True)
    with broker as address:
        with palio.sync.connect(address) as client:
            client.publish([{"x": n} for n in range(50)])
        finished(palio.spark.read_stream(spark, address, schema="x int"), tmp_path)
        broker._thread.run(broker.crash())
        broker._thread.run(broker.start())
        with palio.sync.connect(address) as client:
            client.publish([{"x": n} for n in range(50, 80)])
        finished(palio.spark.read_stream(spark, address, schema="x int"), tmp_path)
        assert written(spark, tmp_path) == list(range(80))
        crossed = palio.spark.Crossed()
        rows = palio.spark.read(spark, address, filter="x < 5", counter=crossed).collect()
        assert ([row.sequence for row in rows], crossed.rows) == ([1, 2, 3, 4, 5], 5)


def test_ranges_through_a_broker_and_what_is_missing():
    with palio.testing.broker(journal=True) as address:
        with palio.sync.connect(address) as client:
            client.publish([{"x": n} for n in range(10)])
        with open_journals(address) as journals:
            (standing,) = journals.standings()
            assert (standing.trimmed, standing.head) == (0, 10)
            (batch,) = journals.read(Span(standing.journal, 3, 7), WantedEvents())
            assert batch.column("sequence").to_pylist() == [4, 5, 6, 7]
            assert palio.Notification.decode(batch.column("payload")[0].as_py())["x"] == 3
            journals.hold("query", {standing.journal: 4}, {standing.journal: standing.lineage})


def test_offsets_are_divided_by_what_there_is():
    start, end = {"a": 10, "b": 0}, {"a": 20, "b": 30, "c": 5}
    assert sum(offsets.limited(start, end, 9).values()) - 10 == 9
    assert offsets.limited(start, end, 100) == end
    assert offsets.limited({"a": 0}, {"a": 3, "b": 3}, 1) in ({"a": 1, "b": 0}, {"a": 0, "b": 1})
    assert offsets.spans_between({"a": 5}, {"a": 12}, 3) == [
        Span("a", 5, 8),
        Span("a", 8, 11),
        Span("a", 11, 12),
    ]
    assert offsets.without_lost({"a": 5}, [JournalStanding("a", 7, 9), JournalStanding("b", 2, 4)]) == {
        "a": 7,
        "b": 2,
    }
