"""Letters that several subscriptions wait for are kept once, for as long as one of them does."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from palio.model.filter import Filter
from palio.routing.durable.effects import Remove, Spool
from palio.routing.occurrences import Stored
from palio.store import schema
from palio.store.aside import listed
from palio.store.checksums import WRONG_CHECKSUM
from palio.store.letters import SHARED_LETTER_MISSING, shared_number
from palio.store.verifying import verify
from tests.store.driving import Driven, envelope
from tests.store.test_aside import aside_rows, change

EVERYTHING = Filter.parse("true")
NAMES = ["one", "two", "three"]


def large(number: int) -> Any:
    return envelope(number, payload=bytes([number]) * 1_500)


def subscribed() -> list[Spool]:
    return [Spool(token, name, EVERYTHING) for token, name in enumerate(NAMES, 1)]


def added(envelopes: list[Any], *, first: int = 1, names: list[str] = NAMES) -> list[Spool]:
    """The same for several subscriptions, as one event brings it."""
    letters = tuple([(number, 0, one) for number, one in enumerate(envelopes, first)])
    return [Spool(10 + token, name, add=letters) for token, name in enumerate(names)]


def rows_of(url: str) -> tuple[dict[int, int], list[int | None]]:
    """The sizes of the shared letters by number, and what the rows of the spools name, in their order."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        letters = {row.letter: len(row.envelope) for row in connection.execute(schema.letters.select())}
        spool = connection.execute(
            schema.spool.select().order_by(schema.spool.c.subscription, schema.spool.c.delivery)
        )
        named = [shared_number(row.envelope) for row in spool]
    engine.dispose()
    return letters, named


def assert_letters_are_named(url: str) -> None:
    letters, named = rows_of(url)
    assert set(letters) == {number for number in named if number is not None}


def spools(driven: Driven) -> dict[str, tuple[Any, ...]]:
    return {one.name: one.spool for one in driven.recovered.subscriptions}


def test_what_several_wait_for_is_there_once_until_the_last_has_it(url: str) -> None:
    events = [large(1), large(2)]
    with Driven(url) as driven:
        driven.do(*subscribed(), *added(events))
        letters, named = rows_of(url)
        assert [1_500 < size < 1_700 for size in letters.values()] == [True, True]
        assert named == [1, 2] * 3
        driven.do(Spool(20, "one", remove=(1,)), Spool(21, "two", remove=(1, 2)))
        assert (set(rows_of(url)[0]), rows_of(url)[1]) == ({1, 2}, [2, 1, 2])
        driven.do(Spool(22, "three", remove=(1,)))
        assert (set(rows_of(url)[0]), rows_of(url)[1]) == ({2}, [2, 2])
    for _ in range(2):
        with Driven(url) as driven:
            found = spools(driven)
            assert found == {"one": ((2, 0, events[1]),), "two": (), "three": ((2, 0, events[1]),)}
            assert found["one"][0][2] is found["three"][0][2]
    with Driven(url) as driven:  # numbers of letters that wait are not given again
        driven.do(*added([large(3)], first=3, names=["one", "two"]))
        assert rows_of(url)[1] == [2, 3, 3, 2]
        driven.do(Remove(30, "one"), Spool(31, "two", remove=(3,)))
        assert (set(rows_of(url)[0]), rows_of(url)[1]) == ({2}, [2])
        driven.do(Remove(32, "three"))
        assert rows_of(url) == ({}, [])


def test_what_one_waits_for_or_is_small_is_kept_where_it_was(url: str) -> None:
    with Driven(url) as driven:
        driven.do(*subscribed(), *added([large(1)], names=["one"]), *added([envelope(2)], names=["one", "two"]))
        assert rows_of(url) == ({}, [None, None])


def test_what_is_written_again_or_given_up_has_its_letter_itself(url: str) -> None:
    with Driven(url) as driven:
        driven.do(*subscribed(), *added([large(1)]))
        driven.do(Spool(20, "one", add=((1, 2, large(1)),)), Spool(21, "two", dead=((1, 5, large(1)),)))
        assert (set(rows_of(url)[0]), rows_of(url)[1]) == ({1}, [None, 1])
        driven.do(Spool(22, "three", remove=(1,)))
        assert rows_of(url) == ({}, [None])
    with Driven(url) as driven:
        assert spools(driven) == {"one": ((1, 2, large(1)),), "two": (), "three": ()}
        assert driven.recovered.subscriptions[1].dead == ((1, 5, large(1)),)


def test_a_group_that_could_not_be_written_changes_nothing(file_url: str, monkeypatch) -> None:
    with Driven(file_url) as driven:
        driven.do(*subscribed(), *added([large(1)]))
        backend = driven.store._backend  # type: ignore[attr-defined]
        drop, failures = backend.drop, [1, 2]

        def fails(*arguments: Any) -> None:
            drop(*arguments)
            if failures:
                failures.pop()
                raise OperationalError("", {}, _locked())

        monkeypatch.setattr(backend, "drop", fails)
        answers = driven.do(*added([large(2)], first=2), *[Spool(20, name, remove=(1,)) for name in NAMES])
        assert (failures, len(answers)) == ([], 6)
        assert (set(rows_of(file_url)[0]), rows_of(file_url)[1]) == ({2}, [2, 2, 2])
    with Driven(file_url) as driven:
        assert set(spools(driven).values()) == {((2, 0, large(2)),)}


def _locked() -> Exception:
    import sqlite3

    problem = sqlite3.OperationalError("database is locked")
    problem.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return problem


@pytest.mark.parametrize("damage", ["UPDATE palio_letters SET checksum = 5", "DELETE FROM palio_letters"])
def test_a_letter_that_is_damaged_goes_aside_for_all_who_share_it(url: str, damage: str) -> None:
    with Driven(url) as driven:
        driven.do(*subscribed(), *added([large(1), large(2)]))
    assert verify(url).is_sound
    change(url, f"{damage} WHERE letter = 1")
    reason = WRONG_CHECKSUM if "UPDATE" in damage else SHARED_LETTER_MISSING
    (verified,) = verify(url).journals
    assert (verified.letters, {one.reason for one in verified.findings}) == (6, {reason})
    assert [one.what for one in verified.findings] == [
        f"delivery 1 of the durable subscription {name!r}" for name in NAMES
    ]
    with Driven(url) as driven:
        assert set(spools(driven).values()) == {((2, 0, large(2)),)}
        gaps = [[(gap.after, gap.upto, gap.what) for gap in one.gaps] for one in driven.recovered.subscriptions]
        assert gaps == [[(0, 1, "deliveries")]] * 3
    assert [(one.name, one.reason) for one in listed(url)] == [(name, reason) for name in NAMES]
    kept = [len(content.get("palio_letters", ())) for content in aside_rows(url)]
    assert kept == ([1, 1, 1] if "UPDATE" in damage else [0, 0, 0])
    assert_letters_are_named(url)
    assert verify(url).is_sound


def test_a_subscription_goes_aside_with_the_letters_that_it_shares(url: str) -> None:
    with Driven(url) as driven:
        driven.do(*subscribed(), *added([large(1)]), *added([large(2)], first=2, names=["one"]))
    change(url, "UPDATE palio_subscriptions SET form = :damaged WHERE name = 'one'")
    with Driven(url) as driven:
        assert spools(driven) == {"two": ((1, 0, large(1)),), "three": ((1, 0, large(1)),)}
    (content,) = aside_rows(url)
    (letter,) = content["palio_letters"]
    assert [shared_number(row["envelope"]) for row in content["palio_spool"]] == [letter["letter"], None]  # type: ignore[arg-type]


def test_a_store_of_the_tenth_version_goes_on(url: str) -> None:
    with Driven(url) as driven:
        driven.do(*subscribed(), *added([envelope(1)]))
    change(url, "DROP TABLE palio_letters")
    change(url, "UPDATE palio_schema SET version = 10")
    with Driven(url) as driven:
        assert set(spools(driven).values()) == {((1, 0, envelope(1)),)}
        driven.do(*added([large(2)], first=2))
        assert rows_of(url)[1] == [None, 1] * 3


@pytest.mark.parametrize("seed", range(6))
def test_any_writes_leave_what_is_waited_for(file_url: str, seed: int) -> None:
    """A model of the spools beside it, over restarts and any grouping of effects."""
    chance = random.Random(seed)
    model: dict[str, dict[int, Any]] = {name: {} for name in NAMES}
    following = dict.fromkeys(NAMES, 1)
    token = shared = 0
    with Driven(file_url, sync="off") as driven:
        driven.do(*subscribed())
    for _ in range(6):
        with Driven(file_url, sync="off") as driven:
            for name, spool in spools(driven).items():
                assert {one: what for one, _, what in spool} == model[name]
            for _ in range(chance.randint(1, 10)):
                effects = []
                for _ in range(chance.randint(1, 4)):
                    token += 10
                    event = large(chance.randint(1, 50)) if chance.random() < 0.7 else envelope(token)
                    for name in chance.sample(NAMES, chance.randint(1, 3)):
                        gone = [one for one in model[name] if chance.random() < 0.4]
                        model[name] = {one: what for one, what in model[name].items() if one not in gone}
                        model[name][following[name]] = event
                        effects.append(
                            Spool(token, name, add=((following[name], 0, event),), remove=tuple(gone))
                        )
                        following[name] += 1
                assert set(map(type, driven.do(*effects))) == {Stored}
                shared += len(rows_of(file_url)[0])
        assert_letters_are_named(file_url)
    assert shared


def test_a_row_of_a_spool_has_a_letter_or_a_number() -> None:
    assert shared_number(msgspec.msgpack.encode(2**40)) == 2**40
    assert shared_number(msgspec.msgpack.encode([1])) is None
    for wrong in (b"", b"\xc1", msgspec.msgpack.encode("a")):
        with pytest.raises(msgspec.DecodeError):
            shared_number(wrong)
