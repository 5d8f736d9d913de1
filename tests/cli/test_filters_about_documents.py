"""Filters with XPaths on the command line: with families of a broker, and of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import palio
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA, WANTED

pytest.importorskip("lxml.etree", reason="lxml is not installed")

FILES = ("--family", "examples/xml/card.json")
CHEAP = 'family card where xpath("/card/price") < 10'
NO_BROKER = ("--server", "127.0.0.1:1")


@pytest.fixture
def cards(live, command):
    """Arguments that name a broker with the family."""

    async def add():
        async with palio.connect(f"palio://{live.server}") as client:
            await client.families.add("card", **WANTED)

    live.do(add())
    return ("--server", live.server)


def test_explain_reads_a_document_and_a_filter_about_it(command):
    found = command(
        "explain",
        f"{CHEAP} and card.brand = 'Acme' and xpath('/card/stock') > 1",
        "examples/xml/c1.xml",
        *FILES,
    )
    assert found.exit_code == 1
    assert "✓ `/card/price` < 10  `/card/price` is 9.5\n" in found.stdout
    assert "✗ `/card/stock` > 1  `/card/stock` is absent\n" in found.stdout
    assert command("explain", CHEAP, "examples/xml/c1.xml", *FILES).exit_code == 0
    assert command("explain", CHEAP, '{"xml.family": "card", "/card/price": 10.5}', *FILES).exit_code == 1


def test_covers_and_lint_know_families_of_files(command, tmp_path):
    assert command("covers", "family card", CHEAP, *FILES).exit_code == 0
    assert (
        command("covers", CHEAP, "family card where card.price < 5 and card.brand = 'x'", *FILES).exit_code == 0
    )
    assert command("covers", CHEAP, "family card where card.price < 15", *FILES).exit_code == 1
    lines = [
        "family card",
        CHEAP,
        "family card where card.prize < 1",
        "family card where card.brand = 5",
        "x > 1",
    ]
    file = tmp_path / "filters.txt"
    file.write_text("\n".join(lines))
    found = command("lint", str(file), "--json", *FILES)
    findings = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(one["line"], one["finding"]) for one in findings] == [(2, "covered"), (3, "syntax"), (4, "syntax")]
    assert "Did you mean card.price?" in findings[1]["message"]
    assert "never the number 5" in findings[2]["message"]


def test_a_file_that_is_no_family_is_told(command, tmp_path):
    file = tmp_path / "card.json"
    for content, said in (
        ("{", "describes no family"),
        ('{"name": "card"}', "schemas"),
        ("[]", "describes no family"),
    ):
        file.write_text(content)
        found = command("covers", CHEAP, CHEAP, "--family", str(file))
        assert (found.exit_code, said in found.stderr) == (3, True), found.stderr
    file.write_text(Path("examples/xml/card.json").read_text())  # without its schema
    assert "card.xsd cannot be read" in command("covers", CHEAP, CHEAP, "--family", str(file)).stderr


def test_without_files_the_broker_is_asked(command, cards, tmp_path):
    (tmp_path / "c.xml").write_bytes(card(price=5))
    (tmp_path / "o.xml").write_bytes(b"<other/>")
    assert command("explain", CHEAP, str(tmp_path / "c.xml"), *cards).exit_code == 0
    new = 'family card where xpath("/card/stock") is null'
    assert command("explain", new, str(tmp_path / "c.xml"), *cards).exit_code == 0
    assert "there are card" in command("explain", CHEAP, str(tmp_path / "o.xml"), *cards).stderr
    assert command("covers", "family card", CHEAP, *cards).exit_code == 0
    refused = command("covers", "family kard", CHEAP, *cards)
    assert (refused.exit_code, "there are card" in refused.stderr) == (3, True)
    assert json.loads(command("family", "show", "card", *cards).stdout)["paths"][2:] == []  # nothing was added


def test_what_the_broker_shows_is_a_file_that_is_read(command, cards, tmp_path):
    shown = command("family", "show", "card", "--schema-to", str(tmp_path), *cards)
    (tmp_path / "card.json").write_text(shown.stdout)
    assert (tmp_path / "card.xsd").read_bytes() == CARD_SCHEMA
    assert command("covers", "family card", CHEAP, "--family", str(tmp_path / "card.json")).exit_code == 0


def test_a_broker_is_asked_only_where_a_filter_needs_it(command):
    assert command("covers", "x > 1", "x > 2", *NO_BROKER).exit_code == 0
    assert command("covers", 'xml.family = "card"', 'xml.family = "card" and x = 1', *NO_BROKER).exit_code == 0
    assert command("covers", "family card", CHEAP, *NO_BROKER).exit_code == 4


def test_documents_are_subscribed_to_replayed_and_tried_by_xpath(command, cards, live, tmp_path):
    for price in (5, 15):
        (tmp_path / f"{price}.xml").write_bytes(card(f"c{price}", price=price))
        assert command("pub", "--xml", str(tmp_path / f"{price}.xml"), *cards).exit_code == 0
    for arguments in (("sub", CHEAP, "--since", "all", "--count", "1"), ("replay", CHEAP, "--since", "all")):
        found = command(*arguments, *cards)
        assert found.exit_code == 0, found.stderr
        assert [json.loads(line)["xml.key"] for line in found.stdout.splitlines()] == ["c5"]
    assert json.loads(command("backtest", CHEAP, "--since", "all", "--json", *cards).stdout)["events"] == 1
    refused = command("sub", "family card where card.prize < 1", *cards)
    assert (refused.exit_code, "Did you mean card.price?" in refused.stderr) == (3, True)
