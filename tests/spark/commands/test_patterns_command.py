"""`palio spark patterns` as users type it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import palio.spark
import palio.sync
import palio.testing
from palio.model.moments import parse_time
from palio.spark import jobs
from tests.spark.filling import fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

QUOTES = [
    {"symbol": "ACME", "price": 100.0},
    {"symbol": "PALI", "price": 5.0},
    {"symbol": "ACME", "price": 120.0},
]
JUMP = {"id": "jump", "pattern": "A[price > 0] then B[price > A.price * 1.1] within 5 min by symbol"}


@pytest.fixture
def patterns(tmp_path) -> str:
    path = tmp_path / "patterns.jsonl"
    path.write_text(json.dumps(JUMP) + "\n")
    return str(path)


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


@pytest.mark.slow
def test_parquet_at_once_closed_and_as_a_stream(spark, command, tmp_path):
    trades = [json.loads(line) for line in Path("examples/trades.jsonl").read_text().splitlines()]
    rows = [
        {**trade, "time": parse_time(trade["time"]["$time"]), "position": at} for at, trade in enumerate(trades)
    ]
    place, found = tmp_path / "trades", str(tmp_path / "found")
    place.mkdir()
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    pq.write_table(table, place / "trades.parquet")
    job = ("spark", "patterns", str(place), "-p", "examples/patterns.jsonl")
    for more in ((), ("--checkpoint", str(tmp_path / "state"))):
        result = command(*job, *more)
        assert result.exit_code == 0, result.output
        assert {one["pattern"] for one in lines(result)} == {"jump", "break-in", "unanswered"}
    assert command(*job, "-o", found, "--close").exit_code == 0
    assert spark.read.parquet(found).count() == 4


def test_a_journal_at_once_and_with_a_checkpoint(spark, command, tmp_path, patterns):
    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, QUOTES)
    at_once = command("spark", "patterns", url, "-p", patterns)
    assert at_once.exit_code == 0, at_once.output
    (line,) = lines(at_once)
    assert (line["pattern"], line["key"]) == ("jump", {"symbol": "ACME"})
    assert [one["id"] for one in line["events"]] == ["b/1", "b/3"]
    assert "1 match" in at_once.stderr
    state = str(tmp_path / "checkpoint")
    stream = ("spark", "patterns", url, "-p", patterns, "--checkpoint", state, "--delay", "1s")
    assert lines(command(*stream)) == [line]
    fill(url, [{"symbol": "PALI", "price": 9.0}], at=1_700_006_410.0)
    found = []
    goes_on = {"checkpoint": state, "delay": "1s", "each": found.append}
    assert jobs.patterns(spark, url, {"jump": JUMP["pattern"]}, **goes_on).matches == 1
    assert [[one["id"] for one in row["events"]] for row in found] == [["b/2", "b/4"]]
    assert jobs.patterns(spark, url, {"jump": JUMP["pattern"]}, **goes_on).matches == 0, "all is done"


def test_what_is_found_is_published_once_and_written(spark, command, tmp_path, patterns):
    url, found = f"sqlite:///{tmp_path}/palio.db", tmp_path / "found"
    fill(url, QUOTES)
    with palio.testing.broker(journal=True) as address:
        for _ in range(2):
            done = command("spark", "patterns", url, "-p", patterns, "--to", address, "-o", str(found))
            assert done.exit_code == 0, done.output
        (event,) = palio.spark.read(spark, address, filter='pattern.name = "jump"').collect()
    (row,) = spark.read.parquet(str(found)).collect()
    assert event["id"] == row["id"]
    said = palio.Notification.decode(bytes(event["payload"]))
    assert said["pattern.events"] == ("b/1", "b/3")


def test_what_is_wrong_is_a_sentence(spark, command, tmp_path, patterns):
    nowhere = command("spark", "patterns", str(tmp_path / "none"), "-p", patterns)
    assert (nowhere.exit_code, "there is no such file or folder" in nowhere.stderr) == (3, True)
    assert "needs a --checkpoint" in command("spark", "patterns", "x", "-p", patterns, "--follow").stderr
    bad = tmp_path / "bad"
    bad.write_text("A[x = 1] then B[x = 2]\n")
    assert "has no window" in command("spark", "patterns", "x", "-p", str(bad)).stderr
