"""Where tables come from: the ids of lines, and places that only look like folders."""

import gzip
import json

import pytest

import palio.spark
from palio.spark.errors import WrongOption
from palio.spark.runtime.folders import shared_folder
from palio.spark.tables import inputs
from palio.spark.tables.inputs import events_at, subscriptions_at

pytest.importorskip("pyspark", reason="pyspark is not installed")


@pytest.fixture
def small_blocks(spark, monkeypatch):
    """Spark reads a file in many blocks, several of them in one partition, however small it is."""
    monkeypatch.setattr(inputs, "SMALL_FILE", 0)
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = [spark.conf.get(name) for name in names]
    spark.conf.set(names[0], "1000")
    spark.conf.set(names[1], "0")
    yield
    for name, value in zip(names, before, strict=True):
        spark.conf.set(name, value)


def lines(first, last):
    """Lines whose lengths differ, with an empty one now and then."""
    return [
        json.dumps({"line": n, "text": "x" * (n * 37 % 101)}) if n % 5 else "" for n in range(first, last + 1)
    ]


def numbers(spark, place):
    rows = events_at(spark, str(place)).collect()
    said = [json.loads(palio.Notification.decode(bytes(row.payload)).to_json())["line"] for row in rows]
    return sorted(zip([int(row.event_id) for row in rows], said, strict=True))


def test_the_id_of_a_line_is_its_number_however_spark_divides_the_file(spark, tmp_path, small_blocks):
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(lines(1, 300)) + "\n")
    assert spark.read.text(str(file)).rdd.getNumPartitions() > 3
    assert numbers(spark, file) == [(n, n) for n in range(1, 301) if n % 5]
    packed = tmp_path / "events.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert numbers(spark, packed) == numbers(spark, file)


def test_lines_of_several_files_are_counted_through_in_the_order_of_their_names(spark, tmp_path, small_blocks):
    folder = tmp_path / "events.jsonl"
    folder.mkdir()
    (folder / "b.jsonl").write_text("\n".join(lines(31, 300)) + "\n")
    (folder / "a.jsonl").write_text("\n".join(lines(1, 30)) + "\n")
    assert numbers(spark, folder) == [(n, n) for n in range(1, 301) if n % 5]


def test_a_filter_without_an_id_has_the_number_of_its_line(spark, tmp_path, small_blocks):
    file = tmp_path / "filters.txt"
    file.write_text("".join(f"x > {n}\n" if n % 3 else "# a remark\n" for n in range(1, 400)))
    found = {row.subscription_id: row.filter for row in subscriptions_at(spark, str(file)).collect()}
    assert found == {str(n): f"x > {n}" for n in range(1, 400) if n % 3}


def test_a_small_file_has_the_lines_that_spark_would_find(spark, tmp_path, monkeypatch):
    """However they end, with a mark at its beginning, and also if there are none, or it is no text."""
    file, empty = tmp_path / "events.jsonl", tmp_path / "empty.jsonl"
    said = ['\ufeff{"line": 1}\r\n', "\r", '{"line": 3, "text": "a\u2028b\x85c"}\n', "\n", "{\n", '{"line": 6}']
    file.write_bytes("".join(said).encode())
    empty.touch()
    small = inputs.SMALL_FILE
    found = []
    for limit in (small, 0):
        monkeypatch.setattr(inputs, "SMALL_FILE", limit)
        found.append(events_at(spark, str(file)).orderBy("event_id").collect())
        assert events_at(spark, str(empty)).count() == 0
    assert found[0] == found[1]
    assert [(row.event_id, row.reason is None) for row in found[0]] == [
        ("1", True),
        ("3", True),
        ("5", False),
        ("6", True),
    ]
    monkeypatch.setattr(inputs, "SMALL_FILE", small)
    file.write_bytes(b'{"line": "\xff"}\n')
    with pytest.raises(Exception, match="can't decode byte 0xff"):
        events_at(spark, str(file)).collect()


def test_a_small_file_is_no_work_for_spark(spark, tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(lines(1, 30)))
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    begun = scheduler.numTotalJobs()
    assert numbers(spark, file) == [(n, n) for n in range(1, 31) if n % 5]
    assert scheduler.numTotalJobs() == begun
    folder = tmp_path / "folder.jsonl"
    folder.mkdir()
    file.rename(folder / "a.jsonl")
    assert numbers(spark, folder) == [(n, n) for n in range(1, 31) if n % 5]
    assert scheduler.numTotalJobs() > begun


@pytest.mark.parametrize("place", ["s3a://bucket/runs", "hdfs://name:8020/runs", "file://host/runs"])
def test_a_folder_that_python_cannot_reach_is_refused_and_not_made_here(spark, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    events = spark.createDataFrame([("e", "b", 1, 1)], "event_id string, journal string, sequence long, x int")
    filters = spark.createDataFrame([("f", "x > 0")], "subscription_id string, filter string")
    with pytest.raises(WrongOption, match="no folder of this machine"):
        palio.spark.build_shards(filters, storage=place)
    with pytest.raises(WrongOption, match="no folder of this machine"):
        palio.spark.match_new(events, filters, place)
    with pytest.raises(WrongOption, match="no folder of this machine"):
        palio.spark.matches(spark, place)
    assert not list(tmp_path.iterdir())


def test_a_file_url_is_a_folder(tmp_path):
    assert shared_folder("storage", f"file:{tmp_path}") == tmp_path
    assert shared_folder("storage", f"file://{tmp_path}") == tmp_path
    assert shared_folder("storage", tmp_path) == tmp_path
