"""`palio match` answers in JSON lines, line by line, whatever else the files hold."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

from palio.cli.input import lines

FILES = ("-f", "examples/filters.jsonl", "-e", "examples/events.jsonl")


def answers(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_each_event_gets_one_line_with_the_ids_of_its_filters(command):
    result = command("match", *FILES)
    assert result.exit_code == 0
    assert answers(result.stdout) == [
        {"event": 1, "matches": ["desk-7", "london-or-trading", "tech", 12]},
        {"event": 2, "matches": ["movers", "london-or-trading"]},
        {"event": 3, "matches": ["desk-7", "movers", "london-or-trading", "desk-8"]},
        {"event": 4, "id": "o-17", "matches": ["orders"]},
        {"event": 5, "item": 0, "id": "o-18", "matches": []},
        {"event": 5, "item": 1, "id": "o-19", "matches": ["orders"]},
        {"event": 6, "matches": []},
    ]
    assert "examples/filters.jsonl:13: This filter can never match" in result.stderr
    assert "7 events against 9 filters: 12 matches" in result.stderr
    assert "\x1b" not in result.output


def test_quiet_says_nothing_beside_the_answers_and_only_matching_leaves_out_the_others(command):
    result = command("match", *FILES, "--quiet", "--only-matching")
    assert result.stderr == ""
    assert [one["event"] for one in answers(result.stdout)] == [1, 2, 3, 4, 5]


def test_count_gives_one_object(command):
    (totals,) = answers(command("match", *FILES, "--totals").stdout)
    per_filter = {one["id"]: one["matches"] for one in totals.pop("per_filter")}
    assert totals == {"events": 7, "matched_events": 5, "filters": 9, "matches": 12, "bad_lines": 0}
    assert per_filter["desk-7"] == 2
    assert per_filter["weather"] == 0
    assert sum(per_filter.values()) == 12


def test_a_bad_line_is_named_and_the_rest_goes_on(program, tmp_path):
    filters, events = tmp_path / "filters", tmp_path / "events"
    filters.write_bytes(
        b"\xef\xbb\xbfx > 1\r\n"
        b"price grater 5\n"
        b'{"id": "a", "filter": 5}\n'
        b'{"id": "b", "filter": "x > 2"}\n'
        b'{"id": "b", "filter": "x > 3"}\n'
        b'{"id": [], "filter": "x > 3"}\n'
        b"\xff\n"
        b"   # a comment\n\n"
        b"{"
    )
    events.write_bytes(b'{"x": 3}\n{"x": NaN}\n[1]\n3\n{"x": "\xff"}\n{"a": 1, "a": 2}\n{"x": 2}')
    result = program("match", "-f", str(filters), "-e", str(events))
    assert result.returncode == 3
    assert answers(result.stdout) == [{"event": 1, "matches": [1, "b"]}, {"event": 7, "matches": [1]}]
    complaints = [line for line in result.stderr.splitlines() if line.startswith(str(tmp_path))]
    places = [f"{filters}:{line}: " for line in (2, 3, 5, 6, 7, 10)]
    places += [f"{events}:{line}: " for line in (2, 3, 4, 5, 6)]
    assert [found.startswith(place) for found, place in zip(complaints, places, strict=True)] == [True] * 11
    assert "  price grater 5\n        ^\n" in result.stderr
    assert "11 bad lines" in result.stderr
    assert "Traceback" not in result.stderr


def test_strict_refuses_what_filters_cannot_see_and_what_can_never_match(command, tmp_path):
    filters = tmp_path / "filters"
    filters.write_text("x > 1\nx > 5 and x < 3\n")
    event = '{"x": 2, "y": [[1]]}\n'
    lenient = command("match", "-f", str(filters), "-e", "-", input=event)
    assert (lenient.exit_code, answers(lenient.stdout)) == (0, [{"event": 1, "matches": [1]}])
    strict = command("match", "-f", str(filters), "-e", "-", "--strict", input=event)
    assert (strict.exit_code, strict.stdout) == (3, "")
    assert f"{filters}:2: " in strict.stderr
    assert "standard input:1: $.y" in strict.stderr


def test_gzip_is_read_by_its_content_from_files_and_from_standard_input(command, tmp_path):
    packed = gzip.compress(b'{"x": 1}\n{"x": 2}\n')
    filters, events = tmp_path / "filters.gz", tmp_path / "events"
    filters.write_bytes(gzip.compress(b"x > 1\n"))
    events.write_bytes(packed)
    expected = [{"event": 1, "matches": []}, {"event": 2, "matches": [1]}]
    assert answers(command("match", "-f", str(filters), "-e", str(events)).stdout) == expected
    arguments = [sys.executable, "-m", "palio.cli.main", "match", "-q", "-f", str(filters), "-e", "-"]
    piped = subprocess.run(arguments, input=packed, capture_output=True, check=True)
    assert answers(piped.stdout.decode()) == expected
    events.write_bytes(packed[:-9])
    broken = command("match", "-f", str(filters), "-e", str(events))
    assert broken.exit_code == 3
    assert "its gzip data is broken or ends too early" in broken.stderr


def test_a_line_that_is_too_long_is_skipped_without_being_kept(command, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 40)
    monkeypatch.setattr(lines, "_SKIPPED_AT_ONCE", 16)
    filters, events = tmp_path / "filters", tmp_path / "events"
    filters.write_text("exists(x)\n")
    fits = '{"x": "' + "y" * 31 + '"}'
    assert len(fits) == 40
    events.write_text(f'{fits}\n{fits} \n{{"x": "{"y" * 1000}"}}\n{{"x": 1}}\n')
    result = command("match", "-f", str(filters), "-e", str(events))
    assert result.exit_code == 3
    assert [one["event"] for one in answers(result.stdout)] == [1, 4]
    assert f"{events}:2: This line has more than 40 bytes; it is skipped." in result.stderr
    assert f"{events}:3: This line has more than" in result.stderr


def test_both_from_standard_input_is_wrong_usage(command):
    assert command("match", "-f", "-", "-e", "-").exit_code == 2


def test_real_stock_quotes(command, tmp_path, shared):
    with gzip.open(shared / "data" / "stockquotes.jsonl.gz", "rt") as file:
        quotes = [next(file) for _ in range(2000)]
    events, filters = tmp_path / "quotes", tmp_path / "filters"
    events.write_text("".join(quotes))
    filters.write_text(
        '{"id": "apple", "filter": "symbol = \\"AAPL\\" and close > 26"}\n'
        '{"id": "rising", "filter": "class = \\"STOCK\\" and close >= 10 and not symbol starts with \\"A\\""}\n'
        '{"id": "september", "filter": "date starts with \\"1984-09\\" and volume between 1000 and 50000"}\n'
    )
    found = {
        one["event"]: set(one["matches"])
        for one in answers(command("match", "-f", str(filters), "-e", str(events)).stdout)
    }
    assert len(found) == 2000
    for line, quote in enumerate(map(json.loads, quotes), start=1):
        expected = {
            "apple": quote["symbol"] == "AAPL" and quote["close"] > 26,
            "rising": quote["class"] == "STOCK" and quote["close"] >= 10 and quote["symbol"][0] != "A",
            "september": quote["date"].startswith("1984-09") and 1000 <= quote["volume"] <= 50000,
        }
        assert found[line] == {id for id, matches in expected.items() if matches}, quote


def test_filters_of_others_stand_in_a_line_as_they_are(command, tmp_path):
    filters, events = tmp_path / "filters.jsonl", tmp_path / "events.jsonl"
    filters.write_text(
        '{"source": ["a"]}\n{"id": "x", "filter": {"source": [{"prefix": "a"}]}}\n{"source": 5}\n'
    )
    events.write_text('{"source": "ab"}\n{"source": "a"}\n')
    result = command("match", "-f", str(filters), "-e", str(events), "--dialect", "eventbridge", "-q")
    assert [json.loads(line)["matches"] for line in result.stdout.splitlines()] == [["x"], [1, "x"]]
    assert result.exit_code == 3
    assert f"{filters}:3" in result.stderr
    assert "in `$.source`, expected an array" in result.stderr
    linted = command("lint", str(filters), "--dialect", "eventbridge", "--json")
    assert [json.loads(line)["finding"] for line in linted.stdout.splitlines()] == ["covered", "syntax"]
