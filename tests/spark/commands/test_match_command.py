"""`palio spark match` and `package` as they are typed: the examples of the help, and what may be wrong."""

from __future__ import annotations

import json

from palio.cli.main import Commands

FILES = ("-e", "examples/events.jsonl", "-f", "examples/filters.jsonl")
JOBS = ("archive", "forget", "match", "package", "experiments")


def test_every_job_is_there():
    assert set(JOBS) <= set(Commands()["spark"].commands)


def test_it_answers_as_palio_match_does(spark, command):
    bulk = command("spark", "match", *FILES).stdout.splitlines()
    found = [(one["event_id"], one["subscription_id"]) for one in map(json.loads, bulk)]
    alone = command("match", "-q", "-f", FILES[3], "-e", FILES[1]).stdout.splitlines()
    wanted = [
        (one.get("id", str(one["event"])), str(id)) for one in map(json.loads, alone) for id in one["matches"]
    ]
    assert sorted(found) == sorted(wanted)
    assert len(found) > 10


def test_pairs_go_to_parquet_and_nothing_is_overwritten_unasked(spark, command, tmp_path):
    arguments = ("spark", "match", *FILES, "-o", str(tmp_path / "pairs"))
    assert "12 pairs" in command(*arguments).stderr
    refused = command(*arguments)
    assert (refused.exit_code, "already exists" in refused.stderr) == (3, True)
    assert command(*arguments, "--overwrite").exit_code == 0
    assert spark.read.parquet(str(tmp_path / "pairs")).count() == 12


def test_what_cannot_be_read_ends_it_or_goes_into_quarantine(spark, command, tmp_path):
    events, filters = tmp_path / "events.jsonl", tmp_path / "filters.jsonl"
    events.write_text('{"x": 1}\n{"x": \n{"x": 3}\n')
    filters.write_text('{"id": "a", "filter": "x > 0"}\n# a note\n{"id": "b", "filter": "x >"}\n')
    arguments = ("spark", "match", "-e", str(events), "-f", str(filters))
    result = command(*arguments)
    assert result.exit_code == 3
    assert "Event 2 cannot be read" in result.stderr
    result = command(*arguments, "--quarantine", str(tmp_path / "aside"))
    assert result.exit_code == 0, result.stderr
    assert sorted(json.loads(line)["event_id"] for line in result.stdout.splitlines()) == ["1", "3"]
    bad = spark.read.parquet(str(tmp_path / "aside" / "events")).collect()
    assert [row["event_id"] for row in bad] == ["2"]
    worse = spark.read.parquet(str(tmp_path / "aside" / "subscriptions")).collect()
    assert [row["subscription_id"] for row in worse] == ["b"]


def test_wrong_places_are_named(spark, command, tmp_path):
    result = command("spark", "match", "-e", str(tmp_path / "none"), "-f", FILES[3])
    assert (result.exit_code, "there is no such file" in result.stderr) == (3, True)
    result = command("spark", "match", *FILES, "--new", "-o", str(tmp_path / "out"))
    assert (result.exit_code, "which have positions" in result.stderr) == (3, True)
    assert command("spark", "match", *FILES, "--new").exit_code == 2
    assert command("spark", "match", *FILES, "--master", "local", "--remote", "sc://x").exit_code == 2
    assert command("spark", "match", *FILES, "--conf", "nonsense").exit_code == 2


def test_a_task_that_fails_says_why_in_one_sentence(spark, command, tmp_path):
    spark.createDataFrame([(1, b"\xc1")], "event_id int, payload binary").write.parquet(
        str(tmp_path / "events")
    )
    result = command("spark", "match", "-e", str(tmp_path / "events"), "-f", FILES[3])
    assert result.exit_code == 3
    assert result.stderr.strip().splitlines()[-1].startswith("The job failed: Event 1 cannot be read")
