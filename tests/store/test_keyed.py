"""Keyed records: current values, written together with the events that made them so, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine

from palio.model.filter import Filter
from palio.routing.durable.effects import MAX_KEY, Append, InvalidRecord, KeyedRecord, Read, Trim
from palio.routing.occurrences import Failed, Found, Stored
from palio.store import schema
from palio.store.aside import listed
from palio.store.checksums import WRONG_CHECKSUM
from palio.store.letters import EVENT_MISSING
from palio.store.memory import MemoryPlace
from palio.store.records import decode_letter
from palio.store.verifying import verify
from tests.store.driving import Driven, Place, append, envelope
from tests.store.test_aside import change
from tests.store.test_schema import create_version
from tests.store.test_trouble import LARGE, Quota

ODD = ["", "\0", "\\", "a", "a\0", "a\\", "ab", "b", "ü", "\uffff", "\U0001f40e"]


def put(token: int, key: str, value: bytes | None, kind: str = "document", *, events: Any = ()) -> Append:
    return Append(token, tuple(events), "p", (KeyedRecord(kind, key, value),))


def keys(driven: Driven, kind: str = "document", **page: Any) -> list[str]:
    return [record.key for record in driven.store.records(kind, **page)]


def test_a_record_is_put_replaced_and_removed(place: Place) -> None:
    with Driven(place) as driven:
        assert driven.store.record("document", "a") is None
        assert driven.do(put(1, "a", b"one"), put(2, "b", b"")) == [Stored(1), Stored(2)]
        assert driven.store.record("document", "a") == b"one"
        assert driven.store.record("document", "b") == b""
        assert driven.store.record("channel", "a") is None
        driven.do(put(3, "a", b"two"), put(4, "b", None), put(5, "never", None))
    with Driven(place) as driven:
        assert driven.store.records("document") == [KeyedRecord("document", "a", b"two")]
        assert driven.recovered.head == 0


def test_the_last_word_counts_however_effects_are_grouped(place: Place) -> None:
    with Driven(place) as driven:
        changes = (KeyedRecord("document", "a", b"1"), KeyedRecord("document", "a", None))
        driven.do(Append(1, (), "", (*changes, KeyedRecord("document", "a", b"2"))), put(2, "b", b"1"))
        driven.do(put(3, "b", None), put(4, "b", b"2"), put(5, "c", b"1"), put(6, "c", None))
        assert [record.value for record in driven.store.records("document")] == [b"2", b"2"]


def named(token: int, key: str, *sequences: int, size: int = 1_500) -> Append:
    """Events, the last of which is the value of a record."""
    events = tuple([envelope(one, payload=bytes([one]) * size) for one in sequences])
    return Append(token, events, "p", (KeyedRecord("document", key, None, sequences[-1]),))


def values(driven: Driven) -> dict[str, Any]:
    """What records say, found one by one and as a page."""
    page = driven.store.records("document")
    assert [driven.store.record("document", one.key) for one in page] == [one.value for one in page]
    return {one.key: decode_letter(one.value or b"")[0] for one in page}


def rows_of(place: Place) -> dict[str, tuple[int, int | None]]:
    """Of each record, how many bytes its row has of its own, and which event it names."""
    assert isinstance(place, str)
    engine = create_engine(place.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        found = list(connection.execute(schema.records.select()))
    engine.dispose()
    return {bytes(row.key).decode(): (len(row.value), row.event) for row in found}


def test_the_value_of_a_record_is_an_event_that_is_appended_with_it(place: Place) -> None:
    appends = [named(1, "a", 1), named(2, "b", 2, 3), named(3, "c", 4, size=10), named(4, "a", 5)]
    events = {one.sequence: one for append in appends for one in append.envelopes}
    with Driven(place) as driven:
        driven.do(*appends)
        assert values(driven) == {"a": events[5], "b": events[3], "c": events[4]}
        assert driven.do(named(5, "d", 9)) == [Failed(5, "It does not follow what is on disk.")]
        driven.do(put(6, "b", None))
    with Driven(place) as driven:
        assert values(driven) == {"a": events[5], "c": events[4]}
        driven.do(named(7, "c", 6), put(8, "a", b"else"))
        assert driven.store.record("document", "a") == b"else"


def test_an_event_that_is_swept_stays_the_value_of_its_record(url: str) -> None:
    appends = [
        named(1, "a", 1),
        named(2, "b", 2),
        named(3, "a", 3),
        named(4, "c", 4),
        named(5, "d", 5, size=10),
    ]
    wanted = {key: appends[at].envelopes[-1] for key, at in (("a", 2), ("b", 1), ("c", 3), ("d", 4))}
    with Driven(url) as driven:
        driven.do(*appends)
        rows = rows_of(url)
        assert {key: row for key, row in rows.items() if key != "d"} == {"a": (0, 3), "b": (0, 2), "c": (0, 4)}
        assert (rows["d"][0] > 10, rows["d"][1]) == (True, None)
        driven.store.submit([Trim(3)])
        driven.wait_for(lambda: driven.store.statistics().swept == 3)
        rows = rows_of(url)
        assert ({key for key in rows if rows[key][1] is None}, rows["c"]) == ({"a", "b", "d"}, (0, 4))
        assert values(driven) == wanted
    with Driven(url) as driven:
        assert values(driven) == wanted
        driven.do(named(6, "b", 6))
        assert rows_of(url)["b"] == (0, 6)


def test_a_record_whose_event_is_lost_is_not_there_any_more(url: str) -> None:
    with Driven(url) as driven:
        driven.do(*[named(at, key, at) for at, key in enumerate("abcde", 1)])
    assert verify(url).is_sound
    change(url, "DELETE FROM palio_journal WHERE sequence IN (1, 2, 4)")
    (verified,) = verify(url).journals
    assert [(one.what, one.reason) for one in verified.findings if one.what.startswith("record")] == [
        (f"record {key!r} of the kind 'document'", EVENT_MISSING) for key in "abd"
    ]
    with Driven(url) as driven:
        assert [driven.store.record("document", key) is None for key in "abcde"] == [
            True,
            True,
            False,
            True,
            False,
        ]
        for limit in (1, 2, 3, 9):
            found: list[str] = []
            while page := keys(driven, after=found[-1] if found else None, limit=limit):
                assert len(page) == min(limit, 2 - len(found))
                found += page
            assert found == ["c", "e"]


def test_a_record_whose_event_is_damaged_is_not_there_any_more(url: str) -> None:
    with Driven(url) as driven:
        driven.do(named(1, "a", 1), named(2, "b", 2))
        change(url, "UPDATE palio_journal SET checksum = 5 WHERE sequence = 1")
        for swept in (0, 2):
            driven.store.submit([Trim(swept)])
            driven.wait_for(lambda swept=swept: driven.store.statistics().swept == swept)  # type: ignore[misc]
            assert (driven.store.record("document", "a"), keys(driven)) == (None, ["b"])
    assert [(one.name, one.reason) for one in listed(url)] == [("b/1", WRONG_CHECKSUM)]


def test_records_of_the_twelfth_version_stay(url: str) -> None:
    with Driven(url) as driven:
        driven.do(put(1, "a", b"one"))
    change(url, "DROP INDEX palio_records_of_events")
    change(url, "ALTER TABLE palio_records DROP COLUMN event")
    change(url, "UPDATE palio_schema SET version = 12")
    with Driven(url) as driven:
        assert driven.store.record("document", "a") == b"one"
        driven.do(named(2, "b", 1))
        assert rows_of(url) == {"a": (3, None), "b": (0, 1)}


def test_records_are_listed_in_the_order_of_their_bytes_page_by_page(place: Place) -> None:
    with Driven(place) as driven:
        driven.do(*[put(token, key, key.encode()) for token, key in enumerate(reversed(ODD), 1)])
        driven.do(put(100, "a", b"", "other"))
        assert sorted(ODD, key=str.encode) == keys(driven)
        found: list[str] = []
        while page := keys(driven, after=found[-1] if found else None, limit=2):
            assert len(page) <= 2
            found += page
        assert found == keys(driven)
        assert keys(driven, prefix="a") == ["a", "a\0", "a\\", "ab"]
        assert keys(driven, prefix="a", after="a", limit=2) == ["a\0", "a\\"]
        assert keys(driven, prefix="\U0001f40e") == ["\U0001f40e"]
        assert keys(driven, prefix="x") == []
        assert all(record.value == record.key.encode() for record in driven.store.records("document"))


def test_records_are_there_with_the_events_of_the_same_append_or_not_at_all(place: Place) -> None:
    with Driven(place) as driven:
        driven.do(put(1, "a", b"1", events=[envelope(1)]))
        # The second does not follow, so neither is its record changed.
        answers = driven.do(put(2, "a", b"2", events=[envelope(7)]), put(3, "b", b"3", events=[envelope(2)]))
        assert [type(answer) for answer in answers] == [Failed, Stored]
        assert driven.store.record("document", "a") == b"1"
        assert driven.store.record("document", "b") == b"3"
        (found,) = driven.do(Read(4, Filter.parse("true"), 0, 9, 100))
        assert isinstance(found, Found)
        assert [one.sequence for one in found.envelopes] == [1, 2]


def test_a_crash_in_memory_loses_both_or_neither() -> None:
    place = MemoryPlace()
    driven = Driven(place)
    driven.do(put(1, "a", b"1", events=[envelope(1)]))
    driven.store.complete = lambda: None  # type: ignore[attr-defined]
    driven.store.submit([put(2, "a", b"2", events=[envelope(2)])])
    driven.store.crash()  # type: ignore[attr-defined]
    with Driven(place) as driven:
        assert (driven.recovered.head, driven.store.record("document", "a")) == (1, b"1")


def test_what_the_disk_has_no_room_for_is_refused_with_its_records(file_url: str) -> None:
    with Driven(file_url) as driven:
        quota = Quota(driven)
        driven.do(append(1, 1), put(2, "a", b"1"))
        quota.set(1)
        events = [envelope(number, payload=LARGE) for number in range(2, 22)]
        (answer,) = driven.do(put(3, "a", b"2", events=events))
        assert isinstance(answer, Failed)
        (answer,) = driven.do(put(4, "b", LARGE * 20))
        assert isinstance(answer, Failed)
        assert driven.all_records() == {("document", "a"): b"1"}
        quota.set(2**30)
        assert driven.do(put(5, "a", b"2", events=events)) == [Stored(5)]
        assert driven.store.record("document", "a") == b"2"


def test_brokers_that_share_a_database_have_records_of_their_own(database: str) -> None:
    with Driven(database, "b") as one, Driven(database, "c") as other:
        one.do(put(1, "a", b"one"))
        other.do(put(1, "a", b"other"))
        assert (one.store.record("document", "a"), other.store.record("document", "a")) == (b"one", b"other")
        other.do(put(2, "a", None))
        assert keys(one) == ["a"]


def test_a_store_from_before_there_were_records_is_migrated(url: str) -> None:
    create_version(url, 6)
    for value in (b"first", b"second"):
        with Driven(url) as driven:
            assert driven.recovered.head == 9_000
            driven.do(put(1, "a", value))
            assert driven.store.record("document", "a") == value


@pytest.mark.parametrize(
    ("kind", "key"), [("", "a"), ("k", "x" * (MAX_KEY + 1)), ("k", "ü" * 513), ("k", "\ud800")]
)
def test_what_no_store_could_keep_is_no_record(kind: str, key: str) -> None:
    with pytest.raises(InvalidRecord):
        KeyedRecord(kind, key, b"")


def test_the_longest_keys_are_kept(place: Place) -> None:
    with Driven(place) as driven:
        longest = "".join(chr(0x100 + number % 1_000) for number in range(MAX_KEY // 2))
        driven.do(put(1, longest, b"x" * 100_000, longest))
        assert driven.store.records(longest, prefix=longest) == [KeyedRecord(longest, longest, b"x" * 100_000)]
