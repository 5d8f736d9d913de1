"""`palio family`: from a schema to documents that are read, and what is refused on the way."""

from __future__ import annotations

import json

import pytest

from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA

ADD = ("family", "add", "card", "--schema", "card.xsd", "--path", "price=/card/price", "--key", "/card/code")


@pytest.fixture
def folder(tmp_path, monkeypatch, command):
    (tmp_path / "card.xsd").write_bytes(CARD_SCHEMA)
    (tmp_path / "broken.xsd").write_text("<xs:schema")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_family_from_its_first_document_to_its_end(command, live, folder):
    added = command(*ADD)
    assert (added.exit_code, "The family card has 1 path, in revision 1." in added.stderr) == (0, True)
    (folder / "c1.xml").write_bytes(card())
    assert command("pub", "--xml", "c1.xml").exit_code == 0
    assert "urn:test:card" in command("family", "ls").stdout
    assert [row["name"] for row in rows(command("family", "ls", "--json"))] == ["card"]
    [shown] = rows(command("family", "show", "card", "--schema-to", "out"))
    assert (shown["key"], shown["schemas"]) == (["/card/code"], ["card.xsd"])
    assert (folder / "out" / "card.xsd").read_bytes() == CARD_SCHEMA
    assert [row["expression"] for row in rows(command("family", "paths", "card", "--json"))] == ["/card/price"]
    every = command("family", "paths", "card", "--all").stdout
    assert "/card/brand" in every
    assert "card.price" in every
    changed = command("family", "change", "card", "--path", "brand=/card/brand")
    assert "2 paths, in revision 2" in changed.stderr
    dry = command("family", "change", "card", "--without", "brand", "--dry-run")
    assert "/card/brand would be gone" in dry.stdout
    assert "Nothing was changed" in dry.stderr
    refused = command("family", "change", "card", "--without", "brand")
    assert (refused.exit_code, "/card/brand would be gone" in refused.stderr) == (3, True)
    forced = command("family", "change", "card", "--without", "brand", "--force")
    assert "1 path, in revision 3" in forced.stderr
    assert command("family", "remove", "card").exit_code == 1
    assert command("family", "remove", "card", "--yes").exit_code == 0
    assert "0 families" in command("family", "ls").stderr


def test_publishers_register_where_a_family_wants_it(command, live, folder):
    assert command(*ADD, "--registered").exit_code == 0
    (folder / "c1.xml").write_bytes(card())
    refused = command("pub", "--xml", "c1.xml")
    assert (refused.exit_code, "palio family register" in refused.stderr) == (3, True)
    handle = command("family", "register", "card").stdout
    assert command("family", "register", "card").stdout == handle
    assert command("pub", "--xml", "c1.xml").exit_code == 0
    assert handle.strip() in command("family", "publishers", "card").stdout
    assert [row["handle"] for row in rows(command("family", "publishers", "card", "--json"))] == [
        handle.strip()
    ]
    assert "Not registered" in command("family", "withdraw", "card").stderr
    assert "No publishers" in command("family", "publishers", "card").stdout


@pytest.mark.usefixtures("live", "folder")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--schema", "none.xsd"), 2, "does not exist"),
        (("--schema", "broken.xsd"), 3, "The schema 'broken.xsd'"),
        (("--path", "/card/colour"), 3, "Did you mean /card/code?"),
        (("--path", "/card["), 3, "stands where a name is expected"),
        (("--path", "price:money=/card/price"), 3, "says 'money'; there are int"),
        (("--key", "/card/brand"), 3, "a key finds one"),
        (("--prefix", "c"), 3, "is no prefix with its namespace"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_added(command, arguments, code, said):
    result = command(*(ADD if arguments[0] != "--schema" else ("family", "add", "card", *ADD[5:])), *arguments)
    assert (result.exit_code, said in " ".join(result.stderr.split())) == (code, True), result.stderr
    assert rows(command("family", "ls", "--json")) == []


def test_the_place_of_a_mistake_in_a_path_is_shown(command, live, folder):
    wrong = command(*ADD, "--path", "/card/price[")
    assert wrong.stderr.splitlines()[1:] == ["  /card/price[", "              ^"]


def test_a_family_that_is_there_or_not_there(command, live, folder):
    assert command(*ADD).exit_code == 0
    again = command(*ADD)
    assert (again.exit_code, "There is a family 'card' already" in again.stderr) == (3, True)
    root = command("family", "add", "other", *ADD[3:])
    assert (root.exit_code, "are of 'card' already" in root.stderr) == (3, True)
    for words in (
        ("show", "cart"),
        ("paths", "cart"),
        ("change", "cart", "--path", "/a"),
        ("remove", "cart", "--yes"),
    ):
        missing = command("family", *words)
        assert (missing.exit_code, "no family of documents called 'cart'" in missing.stderr) == (3, True)
    assert command("family", "change", "card", "--without", "/card/stock").exit_code == 3


def test_a_schema_of_several_files_is_handed_over_as_a_folder(command, live, folder):
    (folder / "parts" / "inner").mkdir(parents=True)
    (folder / "card.xsd").write_bytes(
        CARD_SCHEMA.replace(
            b'<xs:element name="card">',
            b"<xs:include schemaLocation='parts/inner/types.xsd'/><xs:element name='card'>",
        )
        .replace(b"xs:decimal", b"c:money")
        .replace(b"<xs:schema", b"<xs:schema xmlns:c='urn:test:card'")
    )
    (folder / "parts" / "inner" / "types.xsd").write_text(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:test:card'>"
        "<xs:simpleType name='money'><xs:restriction base='xs:decimal'/></xs:simpleType></xs:schema>"
    )
    assert command(*ADD, "--schema", "parts").exit_code == 0
    [path] = rows(command("family", "paths", "card", "--json"))
    assert path["kind"] == "float"
