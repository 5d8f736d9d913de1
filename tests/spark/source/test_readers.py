"""What Spark asks of `format("palio")`, asked without Spark: offsets, partitions, rows, and the sink."""

from __future__ import annotations

import sqlite3

import pyarrow as pa
import pytest

import palio
import palio.spark
import palio.sync
import palio.testing
from palio.spark.errors import DataLoss, WrongOption
from palio.spark.source.journals import absolute
from tests.spark.filling import fill

datasource = pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows  # noqa: E402
from pyspark.sql.types import StructType  # noqa: E402

from palio.spark.source.format import BatchReader, PalioSource, PushingReader  # noqa: E402

X = StructType().add("x", "integer")


@pytest.fixture
def url(tmp_path) -> str:
    """A journal that begins with 11, and ends with 40."""
    place = f"sqlite:///{tmp_path}/palio.db"
    fill(place, [{"x": n} for n in range(1, 41)], trim=10)
    return place


def source(url: str, **options: str) -> PalioSource:
    return PalioSource({"url": url, **options})


def rows(reader, partitions) -> list[int]:
    return [x for one in partitions for batch in reader.read(one) for x in batch.column("x").to_pylist()]


def test_names_are_found_when_they_are_asked_for():
    assert palio.spark.__getattr__("jobs").__name__ == "palio.spark.jobs"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        palio.spark.__getattr__("nonsense")


def test_a_file_has_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("sqlite:///palio.db") == f"sqlite:///{tmp_path}/palio.db"
    for whole in ("sqlite:////data/palio.db", "palio://127.0.0.1:7070"):
        assert absolute(whole) == whole


def test_a_table_is_read_in_partitions_from_and_up_to(url):
    whole = source(url, rowsPerPartition="12").reader(X)
    assert type(whole) is BatchReader
    assert [one.value for one in whole.partitions()] == [("b", 10, 22), ("b", 22, 34), ("b", 34, 40)]
    assert rows(whole, whole.partitions()) == [*range(11, 41)]
    some = source(url, startingOffsets='{"b": 20}', endingOffsets='{"b": 25}', filter="x != 23").reader(X)
    assert rows(some, some.partitions()) == [21, 22, 24, 25]
    none = source(url, startingOffsets='{"b": 40}').reader(X)
    assert rows(none, none.partitions()) == []
    with pytest.raises(DataLoss, match="from 6 on, but begins with 11"):
        source(url, startingOffsets='{"b": 5}').reader(X).partitions()
    lossy = source(url, startingOffsets='{"b": 5}', failOnDataLoss="false").reader(X)
    assert rows(lossy, lossy.partitions()) == [*range(11, 41)]
    with pytest.raises(WrongOption, match="ends with 40, before 41"):
        source(url, endingOffsets='{"b": 41}').reader(X).partitions()


def test_conditions_of_spark_select_at_the_source(url):
    kept = [datasource.GreaterThan(("x",), 20), datasource.LessThan(("x",), 24)]
    reader = source(url, pushdown="true", filter="x != 22").reader(StructType().add("x", "long"))
    assert type(reader) is PushingReader
    assert list(reader.pushFilters(kept)) == kept, "Spark checks all of it again"
    assert rows(reader, reader.partitions()) == [21, 23]
    assert list(reader.pushFilters([])) == []
    assert rows(reader, reader.partitions()) == [n for n in range(11, 41) if n != 22]


def test_a_stream_goes_from_offset_to_offset(url):
    stream = source(url, maxRowsPerTrigger="8", reader="query").streamReader(X)
    start = stream.initialOffset()
    assert (start["b"], stream.reportLatestOffset()) == (10, {"b": 40})
    limit = stream.getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    end = stream.latestOffset(start, limit)
    assert end["b"] == 18
    assert rows(stream, stream.partitions(start, end)) == [*range(11, 19)]
    stream.prepareForTriggerAvailableNow()
    fill(url, [{"x": 41}])
    assert stream.latestOffset({"b": 38}, limit)["b"] == 40, "what came later is for the next query"
    stream.commit(end)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        held = "SELECT value FROM palio_facts WHERE kind = 'held' AND subject = 'query'"
        assert connection.execute(held).fetchone() == (18,)
    source(url).streamReader(X).commit(end)  # nobody asked for it to be kept


def test_a_stream_begins_where_it_is_told_and_misses_nothing_unasked(url):
    assert isinstance(source(url).streamReader(X).getDefaultReadLimit(), ReadAllAvailable)
    assert source(url, startingOffsets="latest").streamReader(X).initialOffset()["b"] == 40
    assert source(url, startingOffsets='{"b": 30}').streamReader(X).initialOffset()["b"] == 30
    early = {"b": 5}
    strict = source(url, startingOffsets='{"b": 5}').streamReader(X)
    lossy = source(url, startingOffsets='{"b": 5}', failOnDataLoss="false").streamReader(X)
    for ask in (
        strict.initialOffset,
        lambda: strict.latestOffset(early, ReadAllAvailable()),
        lambda: strict.partitions(early, {"b": 40}),
    ):
        with pytest.raises(DataLoss, match="from 6 on, but begins with 11"):
            ask()
    assert lossy.initialOffset()["b"] == 10
    assert lossy.latestOffset(early, ReadAllAvailable())["b"] == 40
    assert rows(lossy, lossy.partitions(early, {"b": 40})) == [*range(11, 41)]


@pytest.mark.parametrize("kind", ["writer", "streamWriter"])
def test_rows_that_a_task_sends_again_are_there_once(monkeypatch, kind):
    monkeypatch.setattr("palio.spark.source.sink.BATCH", 4)
    batches = [
        pa.RecordBatch.from_pydict({"x": numbers, "id": list(map(str, numbers))})
        for numbers in ([*range(10)], [*range(10, 20)], [*range(20, 30)])
    ]

    def failing():
        yield from batches[:2]
        raise RuntimeError("half-way")

    with palio.testing.broker(journal=True) as address:
        options = {"url": address, "idColumn": "id", "sink": "results"}
        schema = StructType().add("x", "long").add("id", "string")
        sink = getattr(PalioSource(options), kind)(schema, False)
        with pytest.raises(RuntimeError, match="half-way"):
            sink.write(failing())
        sent = sink.write(iter(batches))
        assert sent.events == 30
        if kind == "streamWriter":
            sink.commit([sent], 0)
            sink.abort([None], 1)
        with palio.sync.connect(address) as client:
            assert sorted(event["x"] for event in client.replay("true")) == [*range(30)]
