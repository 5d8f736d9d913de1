"""The sink publishes each row once, however often a task or a query has to begin anew."""

from collections import Counter
from datetime import timedelta
from functools import partial

import pytest

import palio
import palio.spark
import palio.sync
import palio.testing
from palio.spark.errors import WrongOption
from palio.spark.runtime.queries import run_to_end
from palio.spark.source.sink import write_options
from tests.spark.filling import fill

pytest.importorskip("pyspark", reason="pyspark is not installed")


@pytest.fixture
def address():
    with palio.testing.broker(journal=True) as address:
        yield address


def published(address, filter="true"):
    with palio.sync.connect(address) as client:
        return [dict(event.attributes) for event in client.replay(filter)]


def failing_after(rows):
    """Passes on so many rows of each partition, and then fails."""

    def fail(batches):
        import pyarrow as pa

        left = rows
        for batch in batches:
            for start in range(0, batch.num_rows, 10):
                part = batch.slice(start, 10)
                if left <= 0:
                    raise RuntimeError("The task failed half-way.")
                left -= part.num_rows
                yield pa.RecordBatch.from_arrays(part.columns, schema=part.schema)

    return fail


def test_a_table_that_is_written_again_after_a_failure_is_there_once(spark, address):
    rows = [(n // 2, f"S{n // 2}") for n in range(200)]  # each row twice
    frame = spark.createDataFrame(rows, "x int, s string")
    failing = frame.mapInArrow(failing_after(30), "x int, s string")
    with pytest.raises(Exception, match="half-way"):
        palio.spark.write(failing, address, sink="results", id=None)
    palio.spark.write(frame.repartition(3), address, sink="results")
    found = Counter((event["x"], event["s"]) for event in published(address))
    assert found == Counter(rows)
    palio.spark.write(frame, address, sink="other results")
    assert len(published(address)) == 400


@pytest.fixture
def small_batches(spark):
    """A task's rows come in many batches, so that some are sent before the last is made."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "200")
    yield
    spark.conf.set(name, before)


def test_half_of_the_rows_of_a_task_are_sent_before_it_fails_and_recognised_later(
    spark, address, small_batches
):
    # Long enough that pipes between the processes are full before the failure.
    schema = "x int, key string, text string"
    rows = [(n, f"id {n}", "text " * 100) for n in range(5_000)]
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    failing = frame.mapInArrow(failing_after(3_000), schema)
    writer = failing.write.format("palio").option("url", address).option("idColumn", "key").mode("append")
    with pytest.raises(Exception, match="half-way"):
        writer.save()
    before = len(published(address))
    assert 0 < before < 5_000
    palio.spark.write(frame, address, sink="spark", id="key")
    assert sorted(event["x"] for event in published(address)) == list(range(5_000))


@pytest.mark.slow
def test_a_stream_that_is_restarted_in_mid_batch(spark, address, tmp_path):
    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, [{"x": n % 10} for n in range(100)])

    def start(fail):
        stream = palio.spark.read_stream(spark, url, schema="x int", maxRowsPerTrigger=40)
        stream = stream.mapInArrow(failing_after(20 if fail else 1_000), "x int")
        return palio.spark.write_stream(
            stream, address, sink="stream", checkpoint=str(tmp_path / "checkpoint"), availableNow=True
        )

    with pytest.raises(Exception, match="half-way"):
        run_to_end(partial(start, fail=True), seconds=120)
    run_to_end(partial(start, fail=False), seconds=120)
    assert Counter(event["x"] for event in published(address)) == Counter(n % 10 for n in range(100))


def test_encoded_notifications_are_published_as_they_are(spark, address):
    said = palio.Notification({"a": [1, 2], "b": b"raw"})
    frame = spark.createDataFrame([("one", bytearray(said.encode()))], "id string, payload binary")
    frame.write.format("palio").option("url", address).mode("append").save()
    assert published(address) == [dict(said.attributes)]


def test_what_an_event_has_beside_its_attributes_is_written_too(spark, address, tmp_path):
    url = f"sqlite:///{tmp_path}/palio.db"
    lines = {"x": 1, "lines": [{"sku": "a"}]}
    said = [
        palio.Notification({"x": 1}, priority=9, lifetime=timedelta(days=9)),
        palio.Notification({"x": 1}),
        palio.Notification({"x": 1}),
        palio.Notification(lines),
    ]
    fill(url, said)
    frame = palio.spark.read(spark, url, schema="_payload binary, _properties binary")
    for _ in range(2):  # the same ids again: nothing is there twice
        palio.spark.write(frame.repartition(3), address, sink="copies")
    with palio.sync.connect(address) as client:
        found = [event.notification for event in client.replay("true")]
    assert Counter((one.priority, one.lifetime, one.unindexed, one.payload) for one in found) == Counter(
        (one.priority, one.lifetime, one.unindexed, one.payload) for one in said
    )


def test_what_cannot_be_written_is_refused_with_a_sentence(spark, address):
    from pyspark.sql.types import StructType

    plain = StructType.fromDDL("x int")
    with pytest.raises(WrongOption, match="Every row needs an id"):
        write_options({"url": "palio://h"}, plain, overwrite=False)
    with pytest.raises(WrongOption, match=r"There is no such option\. Did you mean 'idColumn'"):
        write_options({"url": "palio://h", "idcolum": "x"}, plain, overwrite=False)
    with pytest.raises(WrongOption, match="use append"):
        write_options({"url": "palio://h", "idColumn": "x"}, plain, overwrite=True)
    with pytest.raises(WrongOption, match="at a broker"):
        write_options({"url": "sqlite:///x"}, plain, overwrite=False)
    with pytest.raises(WrongOption, match="PALIO_TOKEN"):
        write_options({"url": "palio://me:secret@h"}, plain, overwrite=False)
    frame = spark.createDataFrame([(1, None)], "x int, key string")
    with pytest.raises(Exception, match="A row has no id"):
        palio.spark.write(frame, address, sink="s", id="key")
    with pytest.raises(Exception, match="date32"):
        palio.spark.write(spark.sql("SELECT current_date() AS d"), address, sink="s")
