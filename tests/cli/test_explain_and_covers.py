"""`palio explain` and `palio covers` answer for people and, with --json, for programs."""

from __future__ import annotations

import json

import pytest

import palio


def test_explain_shows_each_condition_and_the_verdict(command):
    result = command("explain", "price > 100 and (not halted or tags has 'x')", '{"price": 101.5}')
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "✓ all of",
        "  ✓ price > 100  price is 101.5",
        "  ✓ any of",
        "    ✓ not",
        "      ✗ halted = true  halted is absent",
        '    ✗ tags has "x"  tags is absent',
        "",
        "The filter matches this event.",
    ]


def test_explain_says_no_with_its_exit_code_and_names_a_contradiction(command):
    no = command("explain", "price > 100", '{"price": "101"}')
    assert (no.exit_code, "The filter does not match this event." in no.stdout) == (1, True)
    never = command("explain", "x > 5 and x < 3", "{}")
    assert never.exit_code == 1
    assert "can match no event at all: `x > 5` and `x < 3` exclude each other." in never.stdout


def test_explain_as_json_keeps_the_kinds_of_values(command):
    event = '{"at": {"$time": "2024-05-01T00:00:00Z"}, "n": 9007199254740993}'
    result = command(
        "explain", "at > 2024-01-01T00:00:00Z and n = 1 and exists(gone)", "-", "--json", input=event
    )
    document = json.loads(result.stdout)
    assert (result.exit_code, document["holds"], document["join"]) == (1, False, "and")
    at, number, gone = document["parts"]
    assert (at["holds"], at["value"]) == (True, {"$time": "2024-05-01T00:00:00Z"})
    assert (number["holds"], number["value"]) == (False, 9007199254740993)
    assert (gone["holds"], gone["value"], gone["note"]) == (False, None, "gone is absent")


def test_explain_reads_a_file_whole_or_one_line_of_it(command, tmp_path):
    file = tmp_path / "event.json"
    file.write_text(
        '{\n  "specversion": "1.0", "id": "1", "source": "s",\n  "type": "t", "data": {"n": 1}\n}\n'
    )
    assert command("explain", "data.n = 1 and type = 't'", str(file)).exit_code == 0
    assert command("explain", "symbol = 'PALI'", "examples/events.jsonl", "--line", "2").exit_code == 0
    missing = command("explain", "symbol = 'PALI'", "examples/events.jsonl", "--line", "99")
    assert (missing.exit_code, missing.stderr) == (3, "examples/events.jsonl has no line 99.\n")
    assert command("explain", "x = 1", "{}", "--line", "2").exit_code == 2


def test_covers_says_yes_or_shows_an_event_that_proves_the_no(command):
    yes = command("covers", "price > 100", "price > 200 and symbol = 'A'")
    assert (yes.exit_code, yes.stdout) == (0, "Yes. Every event that OTHER selects, FILTER selects too.\n")
    same = command("covers", "int n >= 51", "int n > 50")
    assert (same.exit_code, same.stdout) == (0, "Yes. FILTER and OTHER select exactly the same events.\n")
    no = command("covers", "price > 200", "price > 100")
    assert no.exit_code == 1
    lead, example, overlap = no.stdout.splitlines()
    assert lead == "No. This event satisfies OTHER but not FILTER:"
    notification = palio.Notification.from_json(example)
    assert palio.Filter.parse("price > 100").matches(notification)
    assert not palio.Filter.parse("price > 200").matches(notification)
    assert overlap.startswith("They overlap")
    assert "They do not overlap" in command("covers", "x > 5", "x < 3").stdout


def test_covers_names_contradictions(command):
    result = command("covers", "x = 1", "x > 5 and x < 3")
    assert result.exit_code == 0
    assert "OTHER can never match: `x > 5` and `x < 3` exclude each other." in result.stdout
    assert "FILTER can never match" in command("covers", "x > 5 and x < 3", "x = 1").stdout


def test_covers_as_json(command):
    result = command("covers", "x > 5", "x < 3", "--json")
    document = json.loads(result.stdout)
    example = document.pop("counterexample")
    assert example["x"] < 3
    assert (result.exit_code, document) == (
        1,
        {
            "covers": False,
            "equal": False,
            "overlaps": False,
            "contradictions": {"filter": None, "other": None},
        },
    )


@pytest.mark.parametrize(
    "arguments", [("explain", "price grater 5", "{}"), ("covers", "x = 1", "price grater 5")]
)
def test_a_wrong_filter_is_shown_with_a_mark_under_the_mistake(command, arguments):
    result = command(*arguments)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.endswith("  price grater 5\n        ^\n")


def test_a_wrong_event_is_bad_input(command):
    for event in ("{", '{"x": NaN}', "no-such-file", "."):
        result = command("explain", "x = 1", event)
        assert (result.exit_code, result.stdout) == (3, ""), event
        assert len(result.stderr.splitlines()) == 1


def test_filters_of_others_are_explained_and_compared(command):
    explained = command("explain", "--dialect", "mqtt", "a/+?n>5", '{"topic": "a/b", "n": 6}')
    assert explained.exit_code == 0
    assert '✓ topic matches "a/*"  topic is "a/b"' in explained.stdout
    assert command("covers", "--dialect", "mqtt", "a/#", "a/+/b").exit_code == 0
    wrong = command("explain", "--dialect", "mqtt", "a/b#", "{}")
    assert (wrong.exit_code, wrong.stderr.splitlines()[0]) == (
        3,
        "Column 4 (mqtt): `#` stands for a whole level, between slashes.",
    )
    unknown = command("covers", "--dialect", "klingon", "a", "b")
    assert unknown.exit_code == 3
    assert "The filter dialect 'klingon' is not supported" in unknown.stderr


def test_translate_says_what_was_understood(command):
    said = command("translate", "--from", "eventbridge", '{"n": [{"exists": true}]}')
    assert (said.exit_code, said.stdout) == (0, "exists(n)\n")
    never = command("translate", "--from", "palio", "x > 5 and x < 3")
    assert (never.exit_code, never.stdout) == (1, "false\n")
    assert "This filter can never match" in never.stderr
    back = command("translate", "--from", "palio", "--to", "mqtt", 'topic matches "a/*" and x > 5')
    assert (back.exit_code, back.stdout) == (0, "a/+?x > 5\n")
    pattern = command("translate", "--from", "palio", "--to", "eventbridge", "absent(a) and (b = 5 or b has 5)")
    assert (pattern.exit_code, pattern.stdout) == (0, '{"a":[{"exists":false}],"b":[5]}\n')


def test_translate_refuses_what_cannot_be_said(command):
    refused = command("translate", "--from", "palio", "--to", "mqtt", "x > 5")
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert refused.stderr.startswith("In the dialect 'mqtt', `x > 5` cannot be said: every filter there is")
    refused = command("translate", "--from", "palio", "--to", "cloudevents", "x > 5")
    known = "palio, cesql, eventbridge, jms, mqtt"
    unwritten = f"Filters are not written in the dialect 'cloudevents'; there are {known}.\n"
    assert (refused.exit_code, refused.stderr) == (3, unwritten)
    unknown = command("translate", "--from", "klingon", "x > 5")
    assert unknown.exit_code == 3
    assert unknown.stderr.startswith("The filter dialect 'klingon' is not supported; there are palio, ")
