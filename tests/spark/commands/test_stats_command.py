"""`palio spark stats` as users type it: the examples of the help, what it writes, and what may be wrong."""

from __future__ import annotations

import json

import pytest

import palio
import palio.spark
from palio.broker.settings import Settings, WrongSetting, require_files
from tests.spark.filling import fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

FILES = ("examples/events.jsonl", "-f", "examples/filters.jsonl")


def test_the_journal_beyond_a_lake_is_looked_at_too(spark, command, tmp_path):
    url, lake, place = f"sqlite:///{tmp_path}/palio.db", str(tmp_path / "lake"), str(tmp_path / "r.html")
    fill(url, [{"x": 1}] * 5)
    palio.spark.archive(spark, url, lake)
    fill(url, [{"x": 2}] * 3)
    result = command("spark", "stats", url, "--lake", lake, "-o", place)
    assert json.loads(result.stdout) == {"events": 8, "attributes": 1, "subscriptions": None, "report": place}


def test_lines_that_are_no_events_are_told(spark, command, tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text('{"x": 1}\n{"x": \n{"x": 3}\n')
    result = command("spark", "stats", str(events), "-o", str(tmp_path / "r.html"))
    assert json.loads(result.stdout)["events"] == 2
    assert "1 event could not be read" in result.stderr


def test_what_is_wrong_is_a_sentence(spark, command, tmp_path):
    def said(*arguments: str) -> str:
        result = command("spark", "stats", *arguments, "-o", str(tmp_path / "r.html"))
        assert result.exit_code == 3, result.output
        return result.stderr

    assert "there is no such file" in said(str(tmp_path / "none"))
    assert "There are no events" in said("examples/events.jsonl", "--filter", 'symbol = "NOBODY"')
    assert "Column" in said("examples/events.jsonl", "--filter", "price >")
    assert "have no time" in said("examples/events.jsonl", "--since", "7d")
    assert "cannot be read" in said("examples/events.jsonl", "--since", "yesterdayish")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "There are no subscriptions" in said("examples/events.jsonl", "-f", str(empty))
    assert not (tmp_path / "r.html").exists()


def test_hints_that_cannot_be_used_are_a_wrong_setting(command, tmp_path):
    bad = tmp_path / "hints.json"
    bad.write_text("{}")
    with pytest.raises(WrongSetting, match="has no hints that can be used"):
        require_files(Settings(hints=str(bad)))
    config = tmp_path / "palio.toml"
    config.write_text(f'hints = "{bad}"\n')
    result = command("config", "check", str(config))
    assert (result.exit_code, "has no hints that can be used" in result.stderr) == (3, True)
    started = command("up", "--hints", str(bad), "--listen", "127.0.0.1:0", "--http", "off", "--no-journal")
    assert (started.exit_code, "has no hints that can be used" in started.stderr) == (3, True)
