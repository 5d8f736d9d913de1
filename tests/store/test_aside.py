"""What a store holds and nobody can read is put aside; the broker starts without it."""

from __future__ import annotations

import logging

import msgspec
import pytest
from sqlalchemy import create_engine, text

from palio.model.filter import Filter
from palio.routing.durable.effects import Spool
from palio.routing.occurrences import Stored
from palio.store import schema
from palio.store.aside import Aside, listed
from tests.model.test_written_out import BOTH, MANY, NEGATED
from tests.store.driving import Driven, envelope
from tests.store.test_schema import create_version_1

WRITTEN = Filter.parse("x >  3")


def change(url: str, statement: str) -> None:
    """Whatever `:damaged` stands for is replaced by bytes that mean nothing."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text(statement), {"damaged": b"\0"} if ":damaged" in statement else {})
    engine.dispose()


def aside_rows(url: str) -> list[dict[str, list[dict[str, object]]]]:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        found = [msgspec.msgpack.decode(row.content) for row in connection.execute(schema.aside.select())]
    engine.dispose()
    return found


@pytest.mark.parametrize("filter", [NEGATED, BOTH, MANY], ids=["negated", "both", "many"])
def test_a_filter_is_read_back_whatever_its_text_would_be(url: str, filter: str) -> None:
    wanted = Filter.parse(filter)
    with Driven(url) as driven:
        driven.do(Spool(1, "s", wanted), Spool(2, "moved here", Filter.of_form(wanted.form)))
    with Driven(url) as driven:
        assert [one.filter for one in driven.recovered.subscriptions] == [wanted, wanted]
        assert [one.filter.source for one in driven.recovered.subscriptions] == [filter, None]
        assert driven.store.statistics().aside == 0


def test_a_subscription_that_cannot_be_read_goes_aside_with_all_that_it_has(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    letters = ((1, 0, envelope(1)), (2, 3, envelope(2)))
    with Driven(url) as driven:
        driven.do(
            Spool(1, "good", WRITTEN, add=letters),
            Spool(2, "bad", WRITTEN, add=letters, dead=((3, 5, envelope(3)),), position=(("o", 7),)),
        )
    change(url, "UPDATE palio_subscriptions SET form = :damaged WHERE name = 'bad'")
    with caplog.at_level(logging.ERROR), Driven(url) as driven:
        (good,) = driven.recovered.subscriptions
        assert (good.name, good.spool) == ("good", letters)
        assert driven.store.statistics().aside == 1
        assert "durable subscription 'bad' cannot be read and was put aside" in caplog.text
        # The name is free again, and what is made anew has nothing of what was.
        assert driven.do(Spool(3, "bad", WRITTEN)) == [Stored(3)]
    (aside,) = listed(url)
    assert (aside.what, aside.name) == ("durable subscription", "bad")
    assert aside.reason.startswith("This is no filter as brokers write it:")
    (content,) = aside_rows(url)
    assert {table: len(rows) for table, rows in content.items()} == {
        "palio_subscriptions": 1,
        "palio_positions": 1,
        "palio_spool": 2,
        "palio_dead": 1,
    }
    with Driven(url) as driven:
        assert [(one.name, len(one.spool)) for one in driven.recovered.subscriptions] == [
            ("good", 2),
            ("bad", 0),
        ]
        assert driven.store.statistics().aside == 1


@pytest.mark.parametrize(("table", "what"), [("palio_spool", "delivery 2"), ("palio_dead", "dead letter 2")])
def test_a_letter_that_cannot_be_read_goes_aside_by_itself(url: str, table: str, what: str) -> None:
    letters = ((1, 0, envelope(1)), (2, 3, envelope(2)))
    with Driven(url) as driven:
        driven.do(Spool(1, "s", WRITTEN, **{"add" if table == "palio_spool" else "dead": letters}))
    change(url, f"UPDATE {table} SET envelope = :damaged WHERE delivery = 2")
    for _ in range(2):
        with Driven(url) as driven:
            (subscription,) = driven.recovered.subscriptions
            assert subscription.spool + subscription.dead == letters[:1]
    assert [(one.what, one.name) for one in listed(url)] == [(f"{what} of the durable subscription", "s")]
    (content,) = aside_rows(url)
    assert content[table][0]["delivery"] == 2


def test_text_of_an_earlier_version_becomes_a_form_or_goes_aside(url: str) -> None:
    create_version_1(url)
    change(url, "INSERT INTO palio_subscriptions VALUES (2, 1, 'odd', 'i', 2, 'x >>> 3', 0, NULL, 5)")
    for _ in range(2):
        with Driven(url) as driven:
            (subscription,) = driven.recovered.subscriptions
            assert (subscription.name, subscription.filter) == ("s", Filter.parse("x > 3"))
    (aside,) = listed(url)
    assert aside == Aside("durable subscription", "odd", aside.reason)
    assert "expected a value" in aside.reason


def test_nothing_is_aside_in_a_store_that_was_not_made_yet(tmp_path) -> None:
    assert listed(f"sqlite:///{tmp_path / 'none.db'}") == []
