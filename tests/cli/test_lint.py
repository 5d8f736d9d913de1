"""`palio lint` finds what is wrong, useless or said twice, and misses none of what all pairs would show."""

from __future__ import annotations

import json
import random

import pytest

from palio import Filter
from palio.cli.demo.stocks import Market, filter_texts


def findings(result) -> list[tuple]:
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [(row["line"], row["id"], row["finding"], row.get("other")) for row in rows]


def test_the_examples_have_one_finding_of_each_kind(command):
    result = command("lint", "examples/filters.jsonl", "-a", "examples/advertisements.txt", "--json")
    assert result.exit_code == 1
    assert findings(result) == [
        (11, "desk-8", "covered", "desk-7"),
        (12, 12, "duplicate", "tech"),
        (13, "impossible", "contradictory", None),
        (14, "weather", "unadvertised", None),
    ]
    shown = command("lint", "examples/filters.jsonl")
    assert "examples/filters.jsonl:11  desk-8  covered\n" in shown.stdout
    assert "This filter is covered by 'desk-7' of line 2." in shown.stdout
    assert shown.stdout.endswith("3 findings (1 covered, 1 duplicate, 1 contradictory) in 9 filters.\n")


def test_lines_that_cannot_be_read_are_findings(command):
    doubled = '{"id": 1, "filter": "x > 5"}\n{"id": 1, "filter": "x < 3"}\n'
    text = "x grater 5\n" + doubled + '{"id": "e\\u001b[0m", "filter": "x >"}\n'
    result = command("lint", "-", input=text)
    assert result.exit_code == 1
    assert "  x grater 5\n    ^\n" in result.stdout
    assert "The id 1 is taken by line 2." in result.stdout
    assert "\x1b" not in result.stdout
    assert findings(command("lint", "-", "--json", input=text)) == [
        (1, 1, "syntax", None),
        (3, 1, "id", None),
        (4, "e\x1b[0m", "syntax", None),
    ]


def test_a_clean_file_is_clean_and_unreadable_input_is_told_apart(command, tmp_path):
    clean = command("lint", "-", input="x > 1\ny > 1\n")
    assert (clean.exit_code, clean.stdout) == (0, "No findings in 2 filters.\n")
    missing = command("lint", "no-such-file")
    assert (missing.exit_code, missing.stderr) == (3, "Cannot read no-such-file: there is no such file.\n")
    offers = tmp_path / "offers"
    offers.write_text("x >\n")
    assert command("lint", "-", "-a", str(offers), input="x > 1\n").exit_code == 3
    assert command("lint", "-", "-a", "-").exit_code == 2


def test_content_that_no_filter_can_look_into_is_found_by_examples_of_events(command, tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text('{"x": 1}\n{"x": 1, "items": [{"sku": "a"}]}\n')
    result = command("lint", "-", "-e", str(events), "--json", input='x = 1 and items.sku = "a"\nx = 2\n')
    [row] = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, row["line"], row["finding"]) == (1, 1, "unfilterable")
    assert row["message"] == (
        "This filter asks for items.sku, but items is a list of objects or of mixed values, "
        "which no filter can look into."
    )
    events.write_text("x\n")
    assert command("lint", "-", "-e", str(events), input="x = 2\n").exit_code == 3
    assert command("lint", "-", "-e", "-").exit_code == 2


def test_an_alternative_can_cover_with_attributes_that_the_other_does_not_name(command):
    """The search goes by attributes; a union of conjunctions may cover although none of them does."""
    text = "(x > 5 and z = 1 and a = 1) or (not x > 5 and z = 1)\nz = 1 and a = 1\nx = 1 or y = 2\ny = 2\n"
    assert findings(command("lint", "-", "--json", input=text)) == [
        (2, 2, "covered", 1),
        (4, 4, "covered", 3),
    ]


def test_the_findings_are_exactly_what_asking_all_pairs_gives(command):
    market = Market(5)
    texts = list(filter_texts(80, market, 5))
    chance = random.Random(5)
    texts += [f"{chance.choice(texts)} and volume > {chance.randint(0, 900)}" for _ in range(20)]
    texts += [f"({chance.choice(texts)}) or ({chance.choice(texts)})" for _ in range(20)]
    texts += ["exists(symbol)", "true", "symbol contains 'A'", "not exists(halted)"]
    filters = [Filter.parse(text) for text in texts]
    expected = {}
    for line, filter in enumerate(filters, 1):
        if filter in filters[: line - 1]:
            expected[line] = "duplicate"
        elif any(other != filter and other.covers(filter) for other in filters):
            expected[line] = "covered"
    assert set(expected.values()) == {"duplicate", "covered"}
    found = findings(command("lint", "-", "--json", input="\n".join(texts)))
    assert {line: kind for line, _, kind, _ in found} == expected
    assert all(filters[other - 1].covers(filters[line - 1]) for line, _, _, other in found)


def test_what_is_computed_for_every_event_is_told(command):
    text = "symbol = ACME\nnot a > b\nx = 1 and a > b\nprice > 2 * 3\n"
    result = command("lint", "-", "--json", input=text)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["line"], one["finding"]) for one in found] == [(1, "computed"), (2, "computed")]
    assert "`ACME = symbol` is computed for every event that has ACME, symbol," in found[0]["message"]
    assert "write a string in quotes" in found[0]["message"]
    assert "`not b < a` is computed for every event, some" in found[1]["message"]


def test_filters_that_nothing_finds_are_named(command):
    pytest.importorskip("palio.matching.core", reason="without the compiled core every filter is asked")
    text = (
        'x matches "*a*b*"\nz matches "*abc*d*"\nx regex "[a-z]+"\nx like "%a%b%" and y = 1\ny = 2 or x > "a"\n'
    )
    result = command("lint", "-", "--json", input=text)
    assert findings(result) == [(1, 1, "asked", None), (3, 3, "asked", None), (5, 5, "asked", None)]
    assert "nothing to be looked up by" in json.loads(result.stdout.splitlines()[0])["message"]
