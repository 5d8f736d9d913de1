"""`palio patterns` answers in JSON lines as soon as something is certain."""

from __future__ import annotations

import json

FILES = ("-p", "examples/patterns.jsonl", "-e", "examples/trades.jsonl")


def answers(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def constituents(text: str) -> list[tuple]:
    return [(one["pattern"], *(event["id"] for event in one["events"])) for one in answers(text)]


def test_each_match_gets_one_line_with_its_events(command):
    result = command("patterns", *FILES)
    assert result.exit_code == 0
    first = answers(result.stdout)[0]
    assert first["key"] == {"user": "ana"}
    assert first["time"] == "2026-07-02T10:01:00Z"
    content = {"time": {"$time": "2026-07-02T10:00:30Z"}, "what": "login failed", "user": "ana"}
    assert first["events"][0] == {"step": "failed", "id": "3", "time": "2026-07-02T10:00:30Z", "event": content}
    assert constituents(result.stdout) == [
        ("break-in", "3", "4", "7", "8"),
        ("jump", "1", "10"),
        ("unanswered", "9"),
    ]
    assert "13 events against 3 patterns: 3 matches" in result.stderr


def test_open_absences_are_decided_only_with_close(command):
    result = command("patterns", *FILES, "--close", "--quiet")
    assert constituents(result.stdout)[-1] == ("unanswered", "13")
    assert result.stderr == ""


def test_events_come_from_standard_input_with_a_time_of_another_name(command, tmp_path):
    events = "".join(
        json.dumps({"at": {"$time": f"2026-07-02T10:00:0{second}Z"}, "x": second}) + "\n"
        for second in (1, 3, 2)
    )
    patterns = tmp_path / "patterns"
    patterns.write_text("A[x > 0] then B[x > A.x] within 1 min order time\n")
    result = command("patterns", "-p", str(patterns), "-e", "-", "--time", "at", "--close", input=events)
    assert constituents(result.stdout) == [("1", "1", "3")]


def test_what_comes_too_late_is_counted(command, tmp_path):
    patterns, events = tmp_path / "patterns", tmp_path / "events"
    patterns.write_text("A[x > 0] then B[x > 0] within 1 min order time\n")
    lines = [f'{{"time": {{"$time": "2026-07-02T10:0{minute}:00Z"}}, "x": 1}}\n' for minute in (5, 1)]
    events.write_text("".join(lines))
    result = command("patterns", "-p", str(patterns), "-e", str(events))
    assert "0 matches" in result.stderr
    assert "1 late" in result.stderr
    assert (
        command("patterns", "-p", str(patterns), "-e", str(events), "--delay", "1h").stderr.count("late") == 0
    )


def test_a_bad_line_is_named_and_the_rest_goes_on(command, tmp_path):
    patterns, events = tmp_path / "patterns", tmp_path / "events"
    patterns.write_text('A[x > 0] within 1 min\nA[x > ] within 1 min\n{"id": "p", "pattern": "A[x > 0]"}\n')
    events.write_text('{"x": 1}\n{"time": {"$time": "2026-07-02T10:00:00Z"}, "x": 1}\n')
    result = command("patterns", "-p", str(patterns), "-e", str(events))
    assert result.exit_code == 3
    assert constituents(result.stdout) == [("1", "2")]
    assert f"{patterns}:2: Column 7: expected a value, found `]`." in result.stderr
    assert f"{patterns}:3: This pattern has no window" in result.stderr
    assert f"{events}:1: This event has no time in its attribute 'time'" in result.stderr


def test_what_timed_out_is_a_line_of_its_own_kind(command, tmp_path):
    patterns = tmp_path / "patterns.txt"
    patterns.write_text('A[t = "a"]+ next B[t = "b"] within 5 s timeout tell\n')
    events = tmp_path / "events.jsonl"
    said = [("a", 0), ("a", 1), ("b", 2), ("a", 3), ("c", 60)]
    events.write_text(
        "".join(
            f'{{"t": "{kind}", "time": {{"$time": "2026-01-01T00:00:{second:02}Z"}}}}\n'
            if second < 60
            else f'{{"t": "{kind}", "time": {{"$time": "2026-01-01T00:01:00Z"}}}}\n'
            for kind, second in said
        )
    )
    result = command("patterns", "-p", str(patterns), "-e", str(events))
    found = answers(result.stdout)
    assert [[event["id"] for event in one["events"]] for one in found] == [["1", "2", "3"], ["4"]]
    assert [one.get("timed_out") for one in found] == [None, True]
    assert found[1]["time"] == "2026-01-01T00:00:08Z"
    assert "1 match, 1 timed out" in result.stderr
