"""Letters that several subscriptions wait for are kept once, for as long as one of them does."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from palio.model.filter import Filter
from palio.routing.durable.effects import Append, Remove, Spool, StoreEffect, Trim
from palio.routing.occurrences import Stored
from palio.store import letters, schema, writer
from palio.store.aside import listed
from palio.store.checksums import WRONG_CHECKSUM
from palio.store.letters import EVENT_MISSING, SHARED_LETTER_MISSING, shared_number
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


def events_of(url: str) -> list[int]:
    """The sequences of the events of which there are rows in the journal."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        found = list(connection.execute(schema.journal.select()))
    engine.dispose()
    return sorted([row.sequence for row in found])


def assert_letters_are_named(url: str) -> None:
    letters, named = rows_of(url)
    numbers = {number for number in named if number is not None}
    assert set(letters) == {number for number in numbers if number > 0}
    assert {-number for number in numbers if number < 0} <= set(events_of(url))


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


def published(*numbers: int) -> Append:
    """Large events of this broker, appended together."""
    return Append(100 + numbers[0], tuple(map(large, numbers)), "p")


def forwarded(*numbers: int, epoch: int = 7) -> list[Any]:
    """The same as they are forwarded from there."""
    return [msgspec.structs.replace(large(number), epoch=epoch) for number in numbers]


def swept_up_to(driven: Driven, sequence: int) -> None:
    driven.store.submit([Trim(sequence)])
    driven.wait_for(lambda: driven.store.statistics().swept == sequence)


def test_what_is_in_the_journal_is_there_once(url: str) -> None:
    events = forwarded(1, 2)
    with Driven(url) as driven:
        driven.do(*subscribed(), published(1, 2), *added(events), *added(forwarded(1), first=3, names=["one"]))
        assert rows_of(url) == ({}, [-1, -2, -1, -1, -2, -1, -2])
    assert verify(url).is_sound
    for _ in range(2):
        with Driven(url) as driven:
            found = spools(driven)
            assert found["two"] == ((1, 0, events[0]), (2, 0, events[1]))
            assert found["one"] == (*found["two"], (3, 0, events[0]))
            assert found["one"][0][2] is found["three"][0][2]
            driven.do(*[Spool(20 + token, name, remove=(1, 3)) for token, name in enumerate(NAMES)])
            assert rows_of(url) == ({}, [-2] * 3)
            driven.do(Spool(30, "one", add=((1, 0, large(3)),)), Spool(31, "one", add=((3, 0, events[0]),)))
            assert rows_of(url) == ({}, [None, -2, None, -2, -2])  # it was appended in another life
            driven.do(Spool(32, "one", add=((1, 0, large(3)), (3, 0, events[0]))))
            driven.do(*[Spool(40 + token, name, add=((1, 0, events[0]),)) for token, name in enumerate(NAMES)])
            driven.do(Spool(50, "one", add=((3, 0, events[0]),)))


def test_no_other_event_is_taken_for_that_of_the_journal(url: str) -> None:
    with Driven(url) as driven:
        driven.do(*subscribed(), published(1, 2, 3))
        other, travelled = forwarded(1, 2)
        other = msgspec.structs.replace(other, time=other.time + 1)
        travelled = msgspec.structs.replace(travelled, hops=1)
        elsewhere = msgspec.structs.replace(travelled, origin="elsewhere", hops=0)
        (first,), (last,) = forwarded(3), forwarded(3, epoch=8)
        driven.do(*added([other, travelled, elsewhere, first, last, *forwarded(4)], names=["one"]))
        assert rows_of(url) == ({}, [None, None, None, -3, None, None])
        swept_up_to(driven, 1)
        driven.store.submit([Trim(2), *added(forwarded(2), names=["two"])])
        driven.wait_for(lambda: driven.store.statistics().queued == 0)
        assert rows_of(url)[1][-1] is None
    with Driven(url) as driven:
        wanted = [other, travelled, elsewhere, first, last, *forwarded(4)]
        assert [what for *_, what in spools(driven)["one"]] == wanted


def test_what_is_swept_is_kept_for_those_who_wait_for_it(url: str) -> None:
    events = forwarded(1, 2, 3)
    with Driven(url) as driven:
        driven.do(*subscribed(), published(1, 2, 3), *added(events), *[Spool(20, "one", remove=(1, 2))])
        swept_up_to(driven, 2)
        assert events_of(url) == [3]
        letters, named = rows_of(url)
        assert ([1_500 < size < 1_700 for size in letters.values()], named) == (
            [True] * 2,
            [-3, 1, 2, -3, 1, 2, -3],
        )
        driven.do(Spool(21, "two", remove=(1,)), Spool(22, "three", remove=(1,)))
        assert set(rows_of(url)[0]) == {2}
    assert verify(url).is_sound
    with Driven(url) as driven:
        assert [what for *_, what in spools(driven)["three"]] == events[1:]
        swept_up_to(driven, 3)
        assert (set(rows_of(url)[0]), rows_of(url)[1]) == ({2, 3}, [3, 2, 3, 2, 3])
    with Driven(url) as driven:
        assert [what for *_, what in spools(driven)["three"]] == events[1:]
        driven.do(*[Remove(30 + token, name) for token, name in enumerate(NAMES)])
        assert rows_of(url) == ({}, [])


def test_who_is_far_behind_has_letters_for_a_while(file_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "UNNAMED", 3)
    events = forwarded(1, 2, 3, 4, 5)
    with Driven(file_url) as driven:
        driven.do(*subscribed(), published(1, 2, 3, 4, 5), *added(events[:2], names=["one"]))
        assert rows_of(file_url)[1] == [-1, -2]
        swept_up_to(driven, 1)
        driven.do(*added(events[2:], first=3, names=["one"]))
        assert rows_of(file_url)[1] == [1, -2, None, -4, -5]
    with Driven(file_url) as driven:
        assert [what for *_, what in spools(driven)["one"]] == events


@pytest.mark.parametrize("damage", ["UPDATE palio_journal SET checksum = 5", "DELETE FROM palio_journal"])
@pytest.mark.parametrize("sweeps", [False, True])
def test_an_event_that_is_damaged_goes_aside_for_all_who_wait_for_it(
    url: str, damage: str, sweeps: bool
) -> None:
    with Driven(url) as driven:
        driven.do(*subscribed(), published(1, 2), *added(forwarded(1, 2)))
        if sweeps:
            change(url, f"{damage} WHERE sequence = 1")
            swept_up_to(driven, 1)
    if not sweeps:
        change(url, f"{damage} WHERE sequence = 1")
    reason = WRONG_CHECKSUM if "UPDATE" in damage and not sweeps else EVENT_MISSING
    (verified,) = verify(url).journals
    letters = [one for one in verified.findings if one.what.startswith("delivery")]
    assert [(one.what, one.reason) for one in letters] == [
        (f"delivery 1 of the durable subscription {name!r}", reason) for name in NAMES
    ]
    with Driven(url) as driven:
        assert set(spools(driven).values()) == {((2, 0, *forwarded(2)),)}
        gaps = [[(gap.after, gap.upto, gap.what) for gap in one.gaps] for one in driven.recovered.subscriptions]
        assert gaps == [[(0, 1, "deliveries")]] * 3
    event = [("b/1", WRONG_CHECKSUM)] if "UPDATE" in damage and sweeps else []
    assert [(one.name, one.reason) for one in listed(url)] == [*event, *[(name, reason) for name in NAMES]]
    kept = sum([len(content.get("palio_journal", ())) for content in aside_rows(url)])
    assert kept == {(True, False): 3, (True, True): 1}.get(("UPDATE" in damage, sweeps), 0)


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
def test_any_writes_leave_what_is_waited_for(file_url: str, seed: int, monkeypatch) -> None:
    """A model of the spools beside it, over restarts, any grouping of effects, and whatever is swept."""
    monkeypatch.setattr(writer, "MIN_SWEPT", 2)
    monkeypatch.setattr(letters, "UNNAMED", 1)
    chance = random.Random(seed)
    model: dict[str, dict[int, Any]] = {name: {} for name in NAMES}
    following = dict.fromkeys(NAMES, 1)
    token = shared = named = head = 0
    with Driven(file_url, sync="off") as driven:
        driven.do(*subscribed())
    for _ in range(6):
        with Driven(file_url, sync="off") as driven:
            for name, spool in spools(driven).items():
                assert {one: what for one, _, what in spool} == model[name]
            for _ in range(chance.randint(1, 10)):
                effects: list[StoreEffect] = []
                for _ in range(chance.randint(1, 4)):
                    token += 10
                    event = large(chance.randint(1, 50)) if chance.random() < 0.7 else envelope(token)
                    if chance.random() < 0.5:
                        head += 1
                        effects.append(Append(token, (large(head),), "p"))
                        (event,) = forwarded(chance.randint(max(1, head - 3), head))
                    if chance.random() < 0.3:
                        effects.append(Trim(max(0, head - chance.randint(0, 5))))
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
                named += sum([(number or 0) < 0 for number in rows_of(file_url)[1]])
        assert_letters_are_named(file_url)
    assert shared
    assert named


def test_a_row_of_a_spool_has_a_letter_or_a_number() -> None:
    assert shared_number(msgspec.msgpack.encode(2**40)) == 2**40
    assert shared_number(msgspec.msgpack.encode([1])) is None
    assert shared_number(msgspec.msgpack.encode([2**40, 2**50])) == -(2**40)
    for wrong in (b"", b"\xc1", msgspec.msgpack.encode("a")):
        with pytest.raises(msgspec.DecodeError):
            shared_number(wrong)
