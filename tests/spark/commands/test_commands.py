"""`palio spark archive`, `palio spark forget` and `palio journal` as users type them."""

import json

import pytest

import palio.sync
import palio.testing
from tests.spark.filling import backup, come_back, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def test_archive_trim_and_forget(spark, command, tmp_path):
    url, lake = f"sqlite:///{tmp_path}/palio.db", str(tmp_path / "lake")
    fill(url, [{"x": n, "class": "a"} for n in range(40)])
    done = command("spark", "archive", url, "--lake", lake)
    assert done.exit_code == 0, done.output
    counts = {"version": 2, "events": 40, "quarantined": 0, "files": 1, "merged": 0, "swept": 0}
    assert lines(done)[0] == counts | {"gaps": []}
    fill(url, [{"x": n, "class": "a"} for n in range(40, 50)])
    trimmed = command("journal", "trim", "--store", url, "--yes")
    assert lines(trimmed) == [{"journal": "b", "first": 41, "last": 50}]
    assert "has read up to 40: 10 events are kept for it" in trimmed.stderr
    assert command("spark", "archive", url, "--lake", lake, "--compact").exit_code == 0
    refused = command("spark", "forget", "x < 5", "--lake", lake)
    assert (refused.exit_code, "add --yes" in refused.stderr) == (1, True)
    forgotten = command("spark", "forget", "x < 5", "--lake", lake, "--grace", "0s", "--yes")
    assert lines(forgotten)[0]["events"] == 5
    assert palio.spark.read_lake(spark, lake).count() == 45
    assert lines(command("journal", "trim", "--store", url, "--yes")) == [
        {"journal": "b", "first": 51, "last": 50}
    ]


def test_an_archive_says_that_a_journal_came_back_older(spark, command, tmp_path):
    url, lake = f"sqlite:///{tmp_path}/palio.db", str(tmp_path / "lake")
    fill(url, [{"x": n} for n in range(10)])
    copy = backup(url)
    fill(url, [{"x": n} for n in range(10, 20)])
    assert command("spark", "archive", url, "--lake", lake).exit_code == 0
    come_back(url, copy)
    fill(url, [{"x": n} for n in range(100, 105)])
    done = command("spark", "archive", url, "--lake", lake)
    (gap,) = lines(done)[0]["gaps"]
    assert (lines(done)[0]["events"], gap["origin"], gap["after"], gap["upto"]) == (5, "b", 20, None)
    assert "The journal of b came back older than it was: what it had after 20 may be missing." in done.stderr
    assert done.exit_code == 0


def test_what_is_wrong_is_a_sentence(spark, command, tmp_path):
    missing = command("spark", "archive", f"sqlite:///{tmp_path}/none.db", "--lake", str(tmp_path / "lake"))
    assert (missing.exit_code, "There is no such file" in missing.stderr) == (6, True)
    assert "There is no lake" in command("spark", "forget", "x = 1", "--lake", str(tmp_path / "x")).stderr
    assert "not both" in command("journal", "trim", "--store", "sqlite:///x", "--server", "h:1").stderr


def test_a_running_broker_trims_its_journal(command):
    with palio.testing.broker(journal=True) as address:
        with palio.sync.connect(address) as client:
            client.publish([{"x": n} for n in range(10)])
            client.hold("query", 4)
        listed = command("journal", "list", "--server", address)
        assert lines(listed) == [{"journal": "broker", "first": 1, "last": 10}]
        trimmed = command("journal", "trim", "--server", address, "--yes")
        assert lines(trimmed) == [{"journal": "broker", "first": 5, "last": 10}]
        assert "reader query has read up to 4: 6 events are kept for it." in trimmed.stderr
        assert command("journal", "release", "query", "--server", address).exit_code == 1
        assert command("journal", "release", "query", "--server", address, "--yes").exit_code == 0
        trimmed = command("journal", "trim", "--server", address, "--yes")
        assert lines(trimmed) == [{"journal": "broker", "first": 11, "last": 10}]
