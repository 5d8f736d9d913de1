"""`palio doc`: what is current, what was, and the end of it."""

from __future__ import annotations

import json

import palio
from tests.broker.documents.cards import PRICE, card, know_cards


def publish(live, *documents):
    async def work():
        await know_cards(live.broker)
        async with palio.connect(f"palio://{live.server}") as client:
            for one in documents:
                await client.publish_document(one)

    live.do(work())


def rows_of(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_current_documents_are_shown_listed_and_withdrawn(command, live):
    publish(live, card("c1", price=1), card("c2", price=2), card("c1", price=3))
    assert command("doc", "get", "card", "c1").stdout == card("c1", price=3).decode()
    known = json.loads(command("doc", "get", "card", "c1", "--json", "--at-least", "siena/3").stdout)
    assert (known["event"], known["revision"], known["attributes"][PRICE]) == ("siena/3", 1, 3.0)
    listed = [json.loads(line)["key"] for line in command("doc", "ls", "card", "--json").stdout.splitlines()]
    assert listed == ["c1", "c2"]
    shown = command("doc", "ls", "--filter", f"`{PRICE}` < 3")
    assert ("c2" in shown.stdout, "c1" in shown.stdout, "1 document." in shown.stderr) == (True, False, True)
    for text in ("card.price < 3", 'xpath("/c:card/c:price") < 3', "card.price < 1 or card.price = 2"):
        assert [row["key"] for row in rows_of(command("doc", "ls", "card", "--filter", text, "--json"))] == [
            "c2"
        ]
    everywhere = command("doc", "ls", "--filter", "family card where card.price < 3", "--json")
    assert [row["key"] for row in rows_of(everywhere)] == ["c2"]
    for words in (("ls", "kard"), ("get", "kard", "c1"), ("ls", "kard", "--filter", "price < 3")):
        absent = command("doc", *words)
        assert (absent.exit_code, "no family of documents called 'kard'; there are card" in absent.stderr) == (
            1,
            True,
        )
    absent = command("doc", "get", "card", "c9")
    assert (absent.exit_code, "no current document" in absent.stderr) == (1, True)
    assert command("doc", "get", "card", "c1", "--at-least", "3").exit_code == 3
    assert "Withdrawn as siena/4." in command("doc", "withdraw", "card", "c1", "--yes").stderr
    assert "was withdrawn" in command("doc", "get", "card", "c1").stderr


def test_sub_begins_with_the_current_documents(command, live):
    publish(live, card("c1", price=1), card("c2", price=2), card("c1", price=3))
    wanted = ("sub", f"`{PRICE}` < 5", "--retroactive", "--count", "2", "--timeout", "30s")
    shown = command(*wanted).stdout.splitlines()  # the version that is not current would come first
    assert [json.loads(line)[PRICE] for line in shown] == [3.0, 2.0]
    assert command("sub", "--retroactive").exit_code == 2


def test_history_has_all_versions_and_what_they_change(command, live):
    lines = [b'<card xmlns="urn:test:card">\n<code>c1</code>\n<price>%d</price>\n</card>' % n for n in (1, 2)]
    publish(live, lines[0], card("c2"), lines[1])
    command("doc", "withdraw", "card", "c1", "--yes")
    rows = [json.loads(line) for line in command("doc", "history", "card", "c1", "--json").stdout.splitlines()]
    assert [(row["event"], row["withdrawn"]) for row in rows] == [
        ("siena/1", False),
        ("siena/3", False),
        ("siena/4", True),
    ]
    changed = command("doc", "history", "card", "c1", "--diff").stdout.splitlines()
    assert changed.index("-<price>1</price>") + 1 == changed.index("+<price>2</price>")
    assert changed[-1] == "-</card>"
    assert "withdrawn" in command("doc", "history", "card", "c1").stdout
    assert command("doc", "history", "card", "c7").exit_code == 1
