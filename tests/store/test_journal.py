"""A journal can be read beside its broker, and without it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from palio.model.filter import Filter
from palio.routing.durable.effects import Append, SaveFact, Trim
from palio.routing.durable.facts import FactKind
from palio.store import (
    Journal,
    JournalTrimmed,
    NoSuchJournal,
    Range,
    StoreTooOld,
    StoreUnavailable,
    journals_in,
)
from tests.store.driving import Driven, append, envelope


def sequences(journal: Journal, text: str = "true", **options: float) -> list[int]:
    return [entry.sequence for entry in journal.read(Filter.parse(text), **options)]  # type: ignore[arg-type]


def test_what_was_published_is_read_beside_a_running_broker(url: str) -> None:
    with Driven(url) as driven, Journal(url) as journal:
        assert journal.range() == Range("b", 1, 0)
        assert sequences(journal) == []
        driven.do(append(1, 1, 5))
        assert journal.range() == Range("b", 1, 5)
        (entry,) = journal.read(Filter.parse("x = 3"))
        assert (entry.sequence, entry.time, entry.publisher) == (3, 1_003.0, "publisher")
        assert entry.notification == envelope(3).notification
        assert sequences(journal, "x > 1", after=2, upto=4) == [3, 4]
        assert sequences(journal, since=1_002.0, until=1_004.0) == [2, 3]
        driven.do(append(2, 6))
        assert sequences(journal) == [1, 2, 3, 4, 5, 6]


def test_reading_goes_page_by_page_up_to_what_was_there_when_it_began(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palio.store.reading.BATCH", 10)
    with Driven(url) as driven, Journal(url) as journal:
        driven.do(append(1, 1, 95))
        reading = journal.read()
        first = next(reading).sequence
        driven.do(append(2, 96, 120))
        assert [first, *[entry.sequence for entry in reading]] == list(range(1, 96))


def test_a_reader_that_is_too_slow_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palio.store.reading.BATCH", 10)
    with Driven(url) as driven, Journal(url) as journal:
        driven.do(append(1, 1, 50))
        reading = journal.read()
        assert next(reading).sequence == 1
        driven.do(Trim(30), SaveFact(2, FactKind.READER.of("r"), 30))
        with pytest.raises(JournalTrimmed, match="trimmed up to 30"):
            list(reading)
        assert sequences(journal) == list(range(31, 51))
        assert journal.range() == Range("b", 31, 50)


def test_spans_that_are_too_old_are_passed_over(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palio.store.schema.SPAN", 4)
    times = [1.0, 2.0, 900.0, *[3.0] * 20, 901.0, 4.0]
    with Driven(url) as driven, Journal(url) as journal:
        envelopes = [envelope(number, at=time) for number, time in enumerate(times, 1)]
        driven.do(Append(1, tuple(envelopes), "p"))
        assert sequences(journal, since=800.0) == [3, 24]
        assert sequences(journal, since=902.0) == []
        assert sequences(journal, after=3, since=800.0) == [24]  # which is the first of its span


def test_a_journal_is_named_where_there_are_several(database: str) -> None:
    with Driven(database, "one") as one, Driven(database, "two"):
        one.do(append(1, 1))
    with Journal(database, "one") as journal:
        assert sequences(journal) == [1]
    with pytest.raises(NoSuchJournal, match="It has those of one, two"):
        Journal(database)
    with pytest.raises(NoSuchJournal, match="no journal of the broker 'three'"):
        Journal(database, "three")


def test_reading_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no such file"):
        Journal(f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []
    sqlite3.connect(tmp_path / "empty.db").execute("VACUUM")
    with pytest.raises(NoSuchJournal, match="It has none yet"):
        Journal(f"sqlite:///{tmp_path}/empty.db")


def test_a_store_that_was_not_migrated_is_not_read(file_url: str) -> None:
    path = file_url.removeprefix("sqlite:///")
    with Driven(file_url):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE palio_schema SET version = 1")
    connection.close()
    with pytest.raises(StoreTooOld, match="Start its broker once"):
        Journal(file_url)


def test_rows_as_they_are_stored_and_what_is_gone(url: str) -> None:
    with Driven(url) as driven, Journal(url) as journal:
        driven.do(append(1, 1, 25))
        found = list(journal.rows(after=3, upto=20, limit=10))
        assert [[row[0] for row in rows] for rows in found] == [list(range(4, 14)), list(range(14, 21))]
        assert found[0][0][1:4] == (1_004.0, "publisher", None)
        driven.store.submit((Trim(10),))
        driven.do(append(2, 26))
        with pytest.raises(JournalTrimmed):
            list(journal.rows(after=3, upto=20, limit=10))
        (rows,) = journal.rows(after=3, upto=20, limit=10, lossy=True)
        assert rows[0][0] == 11
    assert journals_in(url) == ["b"]


def test_nothing_is_trimmed_that_is_held_whoever_asks(url: str) -> None:
    with Driven(url) as driven, Journal(url) as journal:
        driven.do(append(1, 1, 20), SaveFact(2, FactKind.HELD.of("lake"), 7))
        driven.store.submit((Trim(15),))
        driven.do(append(3, 21))
        assert journal.range().first == 8
