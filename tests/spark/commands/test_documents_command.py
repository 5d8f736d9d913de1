"""`palio spark documents` as users type it, with the families of a broker that has them."""

from __future__ import annotations

import json

import pytest

import palio.sync
import palio.testing
from tests.broker.documents.cards import card
from tests.spark.filling import numbers

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("lxml")


def test_documents_with_paths_that_came_later(spark, command, tmp_path):
    def said(*arguments: str) -> list[dict]:
        result = command("spark", "documents", *arguments)
        assert result.exit_code == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    with palio.testing.broker(name="siena", journal=True) as address:
        with palio.sync.connect(address) as client:
            prefixes = {"c": "urn:test:card"}
            client.families.add("card", (), [], key=["/c:card/c:code"], prefixes=prefixes)
            for code, price in (("a", 7), ("b", 12), ("a", 9)):
                client.publish_document(card(code, price=price))
            client.publish(numbers(2))
        rows = said(address, "--family", "card", "--path", "price:float,single=/c:card/c:price")
        assert [(row["key"], row["price"], row["event_id"]) for row in rows] == [
            ("a", 9.0, "siena/3"),
            ("b", 12.0, "siena/2"),
        ]
        assert rows[0]["bytes"] == len(card("a", price=9))
        assert [row["event_id"] for row in said(address, "--key", "a", "--versions")] == ["siena/1", "siena/3"]
        filters = tmp_path / "filters.jsonl"
        filters.write_text("family card where xpath('/c:card/c:brand') = 'Acme' and xml.key = 'b'\n")
        wanted = said(address, "-f", str(filters))
        assert wanted == [{"event_id": "siena/2", "subscription_id": "1"}]


def test_what_cannot_be_asked_is_a_sentence(spark, command, tmp_path):
    def complained(*arguments: str) -> str:
        result = command("spark", "documents", *arguments)
        assert result.exit_code == 3, result.stdout
        return result.stderr

    assert "documents are in a lake or in journals" in complained(str(tmp_path), "--family", "card")
    assert "name a broker" in complained(str(tmp_path), "--path", "/card/price")
    assert "all current documents" in complained("-f", "examples/filters.jsonl", "--versions")
