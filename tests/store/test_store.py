"""Every store does what the core asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.model.filter import Filter
from palio.routing.durable.effects import Append, Read, Remove, SaveFact, Spool, Trim
from palio.routing.durable.facts import FactKind
from palio.routing.occurrences import Failed, Found, Stored
from palio.store import NoSuchJournal, StoreError, StoreInUse, StoreUnavailable
from palio.store.backend import Sync
from palio.store.opening import backend_of
from tests.store.driving import Driven, Place, append, envelope

EVERYTHING = Filter.parse("true")
ODD_NAME = "a\0b\\0c\\\\ü"


def test_a_new_store_is_empty_and_each_opening_counts(place: Place) -> None:
    for incarnation in (1, 2, 3):
        with Driven(place) as driven:
            assert driven.incarnation == incarnation
            assert driven.recovered.head == driven.recovered.trimmed == 0
            assert not driven.recovered.subscriptions


def test_each_opening_that_brings_something_is_in_the_lineage_of_the_journal(place: Place) -> None:
    ids = []
    for opening, (brings, at_least) in enumerate([(2, 0), (0, 0), (1, 7), (0, 0)], 1):
        with Driven(place, at_least=at_least) as driven:
            lineage, head = driven.recovered.lineage, driven.recovered.head
            ids.append(lineage[-1].id)
            assert lineage[-1].number == driven.incarnation
            if brings:
                driven.do(append(opening, head + 1, head + brings))
    assert [(one.number, one.id, one.begins) for one in lineage] == [
        (1, ids[0], 0),
        (7, ids[2], 2),
        (8, ids[3], 3),
    ]
    assert len({*ids}) == 4
    assert driven.recovered.opened_before == 7


def test_what_was_appended_is_found_after_a_restart(place: Place) -> None:
    with Driven(place) as driven:
        assert driven.do(append(1, 1, 5), append(2, 6)) == [Stored(1), Stored(2)]
    with Driven(place) as driven:
        assert driven.recovered.head == 6
        (found,) = driven.do(Read(7, Filter.parse("x >= 3"), 0, 6, 100))
        assert found == Found(7, 6, tuple(envelope(number) for number in range(3, 7)))


def test_a_gap_is_refused_and_so_is_all_that_follows(place: Place) -> None:
    with Driven(place) as driven:
        answers = driven.do(append(1, 1, 2), append(2, 4), append(3, 5), append(4, 3))
        assert [type(answer) for answer in answers] == [Stored, Failed, Failed, Stored]
        assert driven.store.statistics().head == 3


def test_a_read_ends_at_its_limit(place: Place) -> None:
    with Driven(place) as driven:
        driven.do(append(1, 1, 10))
        (found,) = driven.do(Read(2, EVERYTHING, 2, 9, 3))
        assert found == Found(2, 5, (envelope(3), envelope(4), envelope(5)))


def test_a_read_looks_at_a_bounded_part_and_goes_on_from_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palio.store.reading.MAX_SCANNED", 4)
    with Driven(place) as driven:
        driven.do(append(1, 1, 10))
        after, found = 0, []
        for token in range(2, 6):
            (page,) = driven.do(Read(token, Filter.parse("x > 8"), after, 10, 100))
            assert isinstance(page, Found)
            found += page.envelopes
            after = page.upto
            if after == 10:
                break
        assert found == [envelope(9), envelope(10)]


def test_what_is_older_is_passed_over_even_if_a_clock_was_set_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palio.store.schema.SPAN", 4)
    times = [100.0, 101.0, 500.0, 102.0, *[103.0] * 7, 600.0, 104.0]
    with Driven(place) as driven:
        envelopes = [envelope(number, at=time) for number, time in enumerate(times, 1)]
        driven.do(Append(1, tuple(envelopes), "p"))
        (found,) = driven.do(Read(2, EVERYTHING, 0, len(times), 100, since=200.0))
        assert found == Found(2, len(times), (envelopes[2], envelopes[11]))
        (found,) = driven.do(Read(3, EVERYTHING, 0, len(times), 100, since=700.0))
        assert found == Found(3, len(times), ())
        (found,) = driven.do(Read(4, EVERYTHING, 4, len(times), 100, since=200.0))
        assert found == Found(4, len(times), (envelopes[11],)), "the first of its span"


@pytest.mark.parametrize(
    ("sync", "of_sqlite", "of_postgresql"), [("full", 2, "on"), ("normal", 1, "off"), ("off", 0, "off")]
)
def test_what_is_committed_is_synced_as_the_setting_says(
    url: str, sync: Sync, of_sqlite: int, of_postgresql: str
) -> None:
    backend = backend_of(url, sync)
    sqlite = url.startswith("sqlite")
    with backend.engine.connect() as connection:
        said = connection.exec_driver_sql(
            "PRAGMA synchronous" if sqlite else "SHOW synchronous_commit"
        ).scalar()
    backend.engine.dispose()
    assert said == (of_sqlite if sqlite else of_postgresql)


def test_a_subscription_with_all_that_belongs_to_it(place: Place) -> None:
    letters = tuple((number, 0, envelope(number, "elsewhere")) for number in (1, 2, 3))
    created = Spool(
        1,
        ODD_NAME,
        Filter.parse('s = "it\'s" or x > 2'),
        ODD_NAME,
        3,
        12.5,
        "another",
        add=letters,
        position=(("elsewhere", 3), (ODD_NAME, 7)),
    )
    with Driven(place) as driven:
        driven.do(
            created,
            Spool(2, ODD_NAME, dead=((2, 5, letters[1][2]),), remove=(2,)),
            SaveFact(3, FactKind.READER.of(ODD_NAME), 9),
        )
    with Driven(place) as driven:
        (found,) = driven.recovered.subscriptions
        assert (found.name, found.identity, found.generation) == (ODD_NAME, ODD_NAME, 3)
        assert (found.filter, found.since, found.moving_to) == (created.filter, 12.5, "another")
        assert found.position == {"elsewhere": 3, ODD_NAME: 7}
        assert found.spool == (letters[0], letters[2])
        assert found.dead == ((2, 5, letters[1][2]),)
        assert found.next_delivery == 4
        assert driven.recovered.facts == ((FactKind.READER.of(ODD_NAME), 9),)
        driven.do(
            Remove(4, ODD_NAME),
            SaveFact(5, FactKind.READER.of(ODD_NAME), None),
            Spool(6, ODD_NAME, add=letters),
        )
    with Driven(place) as driven:
        assert driven.recovered.subscriptions == ()
        assert driven.recovered.facts == ()


def test_no_delivery_number_is_given_twice(place: Place) -> None:
    with Driven(place) as driven:
        driven.do(Spool(1, "s", EVERYTHING, add=((7, 0, envelope(1)),)), Spool(2, "s", remove=(7,)))
    with Driven(place) as driven:
        assert driven.recovered.subscriptions[0].next_delivery == 8


def test_ids_outlive_trimming_for_the_retention_time(place: Place) -> None:
    with Driven(place, retention=50.0) as driven:
        driven.do(Append(1, tuple(envelope(number, id=f"id {number}") for number in range(1, 101)), "p"))
        driven.do(Trim(90), SaveFact(2, FactKind.READER.of("r"), 90))
    with Driven(place, retention=50.0) as driven:
        assert driven.recovered.trimmed == 90
        expected = [("p", f"id {number}", number, 1_000.0 + number) for number in range(50, 101)]
        assert list(driven.recovered.recent) == expected
        (found,) = driven.do(Read(3, EVERYTHING, 0, 100, 1_000))
        assert isinstance(found, Found)
        assert [one.sequence for one in found.envelopes] == list(range(91, 101))


def test_as_many_ids_are_recovered_as_are_to_be_remembered(place: Place) -> None:
    with Driven(place) as driven:
        driven.do(Append(1, tuple(envelope(number, id=f"id {number}") for number in range(1, 11)), "p"))
    with Driven(place, remembered=3) as driven:
        assert [id for _, id, _, _ in driven.recovered.recent] == ["id 8", "id 9", "id 10"]


def test_trimming_is_done_by_and_by(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palio.store.writer.MIN_SWEPT", 10)
    with Driven(url) as driven:
        driven.do(append(1, 1, 95))
        driven.do(Trim(95), SaveFact(2, FactKind.READER.of("r"), 95))
        driven.wait_for(lambda: driven.store.statistics().swept == 95)
        assert driven.store.statistics().commits >= 10
    with Driven(url) as driven:
        assert (driven.recovered.head, driven.recovered.trimmed) == (95, 95)
        assert driven.do(append(3, 96)) == [Stored(3)]


def test_two_brokers_cannot_share_a_journal(place: Place) -> None:
    with Driven(place) as driven:
        with pytest.raises(StoreInUse, match=r"in use by process \d+"):
            Driven(place)
        assert driven.do(append(1, 1)) == [Stored(1)]
    with Driven(place) as driven:
        assert driven.recovered.head == 1


def test_a_store_that_has_to_be_present_is_not_created(url: str, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises((StoreUnavailable, NoSuchJournal)):
            Driven(url, present=True)
    assert not list(tmp_path.iterdir())
    with Driven(url) as driven:
        driven.do(append(1, 1))
    with Driven(url, present=True) as driven:
        assert driven.recovered.head == 1


def test_after_the_end_nothing_is_taken(place: Place) -> None:
    driven = Driven(place)
    driven.store.submit([append(1, 1)])
    assert driven.store.close()
    assert driven.answers == [Stored(1)]
    with pytest.raises(StoreError, match="closed"):
        driven.store.submit([append(2, 2)])


def test_statistics_tell_what_waits_and_what_was_done(place: Place) -> None:
    with Driven(place) as driven:
        driven.do(append(1, 1, 10), SaveFact(2, FactKind.READER.of("r"), 3))
        driven.wait_for(lambda: driven.store.statistics().queued == 0)
        statistics = driven.store.statistics()
        assert (statistics.writes, statistics.head, statistics.queued_bytes) == (2, 10, 0)
        assert statistics.commits >= 1
        assert statistics.bytes > 0
        assert statistics.waiting is statistics.last_error is None


def test_what_is_told_no_longer_counts_as_waiting(place: Place) -> None:
    """A broker that has stopped reading because much waits begins again when it hears that it was written."""
    with Driven(place) as driven:
        driven.do(append(1, 1, 10))
        driven.do(append(2, 11, 20))
        assert driven.waiting == [(0, 0), (0, 0)]
