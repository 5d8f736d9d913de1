"""Stores of earlier versions are brought up to date; those of later ones are left alone."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.attempts import Failure
from palio.protocol.durable.lineage import Incarnation, JournalGap
from palio.protocol.durable.retry import Retry
from palio.protocol.envelope import Envelope
from palio.routing.configuration import Configuration
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import Read, SaveFact, Spool
from palio.routing.durable.facts import FactKind
from palio.routing.durable.home.endings import FOR_GOOD
from palio.routing.occurrences import Found, Open, Stored
from palio.routing.router import Router
from palio.store import StoreTooNew, schema
from palio.store.errors import StoreTooOld
from palio.store.records import encode_body, encode_letter
from palio.store.retention_holds import hold
from tests.store.driving import Driven, append, envelope

# What the first version created. `{bytes}` and `{number}` are the types that differ.
VERSION_1 = """
CREATE TABLE palio_schema (version INTEGER NOT NULL);
CREATE TABLE palio_brokers (broker {number} PRIMARY KEY, name TEXT NOT NULL UNIQUE, incarnation BIGINT NOT NULL,
    groups BIGINT NOT NULL, head BIGINT NOT NULL, trimmed BIGINT NOT NULL, swept BIGINT NOT NULL);
CREATE TABLE palio_journal (broker BIGINT NOT NULL, sequence BIGINT NOT NULL, time FLOAT NOT NULL,
    publisher TEXT NOT NULL, id TEXT, body {bytes} NOT NULL, PRIMARY KEY (broker, sequence));
CREATE TABLE palio_ids (broker BIGINT NOT NULL, sequence BIGINT NOT NULL, time FLOAT NOT NULL,
    publisher TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (broker, sequence));
CREATE TABLE palio_readers (broker BIGINT NOT NULL, reader TEXT NOT NULL, sequence BIGINT NOT NULL,
    PRIMARY KEY (broker, reader));
CREATE TABLE palio_subscriptions (subscription {number} PRIMARY KEY, broker BIGINT NOT NULL, name TEXT NOT NULL,
    identity TEXT NOT NULL, generation BIGINT NOT NULL, filter TEXT NOT NULL, since FLOAT NOT NULL,
    moving_to TEXT, next_delivery BIGINT NOT NULL, UNIQUE (broker, name));
CREATE TABLE palio_positions (subscription BIGINT NOT NULL, origin TEXT NOT NULL, sequence BIGINT NOT NULL,
    PRIMARY KEY (subscription, origin));
CREATE TABLE palio_spool (subscription BIGINT NOT NULL, delivery BIGINT NOT NULL, attempts BIGINT NOT NULL,
    envelope {bytes} NOT NULL, PRIMARY KEY (subscription, delivery));
CREATE TABLE palio_dead (subscription BIGINT NOT NULL, delivery BIGINT NOT NULL, attempts BIGINT NOT NULL,
    envelope {bytes} NOT NULL, PRIMARY KEY (subscription, delivery));
INSERT INTO palio_schema VALUES (1);
INSERT INTO palio_brokers VALUES (1, 'b', 7, 3, 9000, 10, 10);
INSERT INTO palio_subscriptions VALUES (1, 1, 's', 'i', 2, 'x > 3', 0, NULL, 5);
INSERT INTO palio_positions VALUES (1, 'b', 4)
"""


def create_version_1(url: str) -> None:
    """A store with a journal of 8,990 notifications, and a subscription with one letter."""
    lite = url.startswith("sqlite")
    script = VERSION_1.format(
        bytes="BLOB" if lite else "BYTEA", number="INTEGER" if lite else "BIGSERIAL"
    ).replace("FLOAT", "FLOAT" if lite else "DOUBLE PRECISION")
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for statement in script.split(";"):
            connection.execute(text(statement))
        rows = [
            {
                "sequence": number,
                "time": float(number),
                "id": f"id {number}",
                "body": encode_body(Notification({"x": number}).body),
            }
            for number in range(11, 9_001)
        ]
        connection.execute(
            text("INSERT INTO palio_journal VALUES (1, :sequence, :time, 'p', :id, :body)"), rows
        )
        connection.execute(
            text("INSERT INTO palio_spool VALUES (1, 4, 1, :letter)"), {"letter": encode_letter(envelope(4))}
        )
    engine.dispose()


def create_version(url: str, version: int) -> None:
    """A store of the first version, migrated to another one."""
    create_version_1(url)
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for step in schema.MIGRATIONS[: version - 1]:
            step(connection)
        connection.execute(schema.version.update().values(version=version))
    engine.dispose()


def test_a_store_of_the_first_version_is_migrated(url: str) -> None:
    create_version_1(url)
    for incarnation in (8, 9):
        with Driven(url, retention=100.0) as driven:
            assert driven.incarnation == incarnation
            assert driven.recovered.head == 9_000
            assert [sequence for _, _, sequence, _ in driven.recovered.recent] == list(range(8_900, 9_001))
            (subscription,) = driven.recovered.subscriptions
            assert subscription.spool == ((4, 1, envelope(4)),)
            assert (subscription.linger, subscription.retry, subscription.failures) == (None, None, ())
            (found,) = driven.do(Read(1, Filter.parse("true"), 0, 9_000, 100, since=8_999.0))
            last = [
                Envelope("b", number, float(number), 0, "b", Notification({"x": number}))
                for number in (8_999, 9_000)
            ]
            assert found == Found(1, 9_000, tuple(last))
    with Driven(url) as driven:
        assert driven.do(append(1, 9_001)) == [Stored(1)]
        failures = ((4, (Failure(1.0, "desk", "rejected", "no"),)),)
        wish = Spool(2, "s", Filter.parse("x > 3"), retry=Retry(attempts=2))
        assert driven.do(wish, Spool(3, "s", dead=((4, 1, envelope(4)),), failures=failures)) == [
            Stored(2),
            Stored(3),
        ]
    with Driven(url) as driven:
        (subscription,) = driven.recovered.subscriptions
        assert (subscription.retry, subscription.failures) == (Retry(attempts=2), failures)


# What the fifth version called the facts of a broker, and what they are. Names may have been escaped.
CURSORS = {
    "ended: 17a b 3 10": FactKind.ENDED.of("17a b 3 10"),
    "17a b 3 9 @elsewhere": FactKind.READER.of("17a b 3 9", "elsewhere"),
    "17a @b 3 9 @a\\\\b\\0": FactKind.READER.of("17a @b 3 9", "a\\b\0"),
    "held: lake @home": FactKind.HELD.of("lake @home"),
    "ended: 17a b 3 11 @next": FactKind.ENDED.of("17a b 3 11", "next"),
    "paused: i": FactKind.PAUSED.of("i"),
    "known: a": FactKind.KNOWN.of("a"),
    "forgotten: known: c": FactKind.FORGOTTEN.of("known: c"),
    "introduced: a": FactKind.INTRODUCED.of("a"),
}


def create_version_5(url: str, more: int = 0) -> None:
    """A store of the first version, migrated to the fifth, with all kinds of cursors."""
    create_version(url, 5)
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        rows = [{"name": name, "value": value} for value, name in enumerate(CURSORS, 4)]
        rows[0]["value"] = FOR_GOOD
        rows += [{"name": f"more {number} @elsewhere", "value": number} for number in range(more)]
        connection.execute(text("INSERT INTO palio_readers VALUES (1, :name, :value)"), rows)
    engine.dispose()


def test_cursors_of_the_fifth_version_become_facts(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_hundreds = str(schema._CURSORS).replace("LIMIT 10000", "LIMIT 100")
    assert in_hundreds != str(schema._CURSORS)
    monkeypatch.setattr(schema, "_CURSORS", text(in_hundreds))
    create_version_5(url, more=250)
    wanted = {fact: value for value, fact in enumerate(CURSORS.values(), 4)}
    wanted[FactKind.ENDED.of("17a b 3 10")] = FOR_GOOD
    wanted |= {FactKind.READER.of(f"more {number}", "elsewhere"): number for number in range(250)}
    for _ in range(2):
        with Driven(url) as driven:
            assert dict(driven.recovered.facts) == wanted
    with Driven(url) as driven:
        driven.do(SaveFact(1, FactKind.HELD.of("lake @home"), 20), SaveFact(2, FactKind.PAUSED.of("i"), None))
    wanted[FactKind.HELD.of("lake @home")] = 20
    del wanted[FactKind.PAUSED.of("i")]
    with Driven(url) as driven:
        assert dict(driven.recovered.facts) == wanted


def test_a_broker_knows_after_the_migration_what_it_knew(url: str) -> None:
    create_version_5(url)
    with Driven(url) as driven:
        router = Router(
            Configuration(broker="b", incarnation=driven.incarnation, durable=DurableSettings()),
            recovered=driven.recovered,
        )
        router.handle(Open(), "operator", 0.0)
    durable = router.durable
    assert durable is not None
    assert durable.journal.readers == {"17a b 3 9": 5, "17a @b 3 9": 6}
    assert durable.journal.at_home("elsewhere") == ["17a b 3 9"]
    assert durable.journal.held == {"lake @home": 7}
    assert [durable.parts.endings.has_ended(f"17a b 3 {number}") for number in (10, 11)] == [True, False]
    assert ("17a b 3 11", "next") in durable.parts.endings.whereabouts()
    assert durable.homes.subscriptions["s"].paused
    assert set(durable.topology.versions) == {"a", "b"}
    assert durable.topology.forgotten == {"known: c": 11}


def test_a_journal_is_held_only_in_a_store_that_is_up_to_date(url: str) -> None:
    create_version_5(url)
    with pytest.raises(StoreTooOld):
        hold(url, "b", "lake", 3)
    with Driven(url):
        pass
    hold(url, "b", "lake", 3)
    with Driven(url) as driven:
        assert dict(driven.recovered.facts)[FactKind.HELD.of("lake")] == 3


def test_what_a_store_of_the_seventh_version_has_is_of_no_known_lineage(url: str) -> None:
    create_version(url, 7)
    with Driven(url) as driven:
        (subscription,) = driven.recovered.subscriptions
        assert (subscription.position, subscription.lineages, subscription.gaps) == ({"b": 4}, {}, ())
        (first,) = driven.recovered.lineage
        assert (first.number, first.begins, driven.recovered.opened_before) == (8, 9_000, 7)
        driven.do(append(1, 9_001, 9_003))
        theirs = (Incarnation(1, "ab", 0), Incarnation(4, "cd", 17))
        gaps = (JournalGap("elsewhere", 3, None, 12.5),)
        position = (("b", 9_001), ("elsewhere", 3))
        driven.do(
            Spool(2, "s", position=position, lineages=(("b", (first,)), ("elsewhere", theirs)), gaps=gaps),
            Spool(3, "s", position=(("elsewhere", 18),)),
        )
    with Driven(url) as driven:
        (subscription,) = driven.recovered.subscriptions
        assert subscription.position == {"b": 9_001, "elsewhere": 18}
        assert subscription.lineages == {"b": (first,), "elsewhere": theirs}
        assert subscription.gaps == gaps
        driven.do(Spool(2, "s", position=(("b", 9_002),), lineages=(("b", ()),), gaps=()))
    with Driven(url) as driven:
        (subscription,) = driven.recovered.subscriptions
        assert (subscription.lineages, subscription.gaps) == ({"elsewhere": theirs}, ())


def test_what_a_store_of_the_eighth_version_has_is_read_without_checksums(url: str) -> None:
    create_version(url, 8)
    everything = Filter.parse("true")
    letters = ((4, 1, envelope(4)), (5, 0, envelope(5)))
    for head in (9_000, 9_001):
        with Driven(url) as driven:
            (found,) = driven.do(Read(1, everything, 8_998, 9_010, 100))
            assert isinstance(found, Found)
            assert [one.sequence for one in found.envelopes] == [*range(8_999, head + 1)]
            assert driven.do(append(2, head + 1), Spool(3, "s", add=letters[1:])) == [Stored(2), Stored(3)]
    with Driven(url) as driven:
        assert driven.recovered.subscriptions[0].spool == letters
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT checksum, chain FROM palio_journal WHERE sequence >= 8999 ORDER BY sequence")
        ).all()
        assert [(row.checksum is None, row.chain is None) for row in rows] == [(True, True)] * 2 + [
            (False, False)
        ] * 2
        assert connection.execute(text("SELECT chain FROM palio_brokers")).scalar_one() == rows[-1].chain
        kept = connection.execute(text("SELECT checksum FROM palio_spool ORDER BY delivery")).scalars().all()
        assert [one is None for one in kept] == [True, False]
    engine.dispose()


def test_a_store_of_a_later_version_is_refused_and_left_alone(url: str) -> None:
    with Driven(url) as driven:
        driven.do(append(1, 1))
        with driven.store._backend.engine.begin() as connection:
            connection.execute(schema.version.update().values(version=99))
    with pytest.raises(StoreTooNew, match=rf"version 99 .* knows up to {schema.VERSION}\.") as caught:
        Driven(url)
    assert (caught.value.version, caught.value.known) == (99, schema.VERSION)
    with pytest.raises(StoreTooNew):  # and it is not locked
        Driven(url)
