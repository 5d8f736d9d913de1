"""`verify` finds what is not as it was written, names it, and finds nothing in what is."""

from __future__ import annotations

import random
import threading

import pytest

from palio.model.filter import Filter
from palio.routing.durable.effects import Spool, Trim
from palio.store import NoSuchJournal, StoreTooOld, StoreUnavailable, WrongStoreUrl
from palio.store.checksums import WRONG_CHECKSUM
from palio.store.records import encode_body
from palio.store.verifying import Finding, VerifiedStore, verify
from tests.store.damage import change, damage_event, file_of, flip
from tests.store.driving import Driven, append, envelope
from tests.store.test_schema import create_version

EVERYTHING = Filter.parse("true")
EVENTS = 60


def fill(url: str) -> None:
    """Events in twelve groups, of which some are trimmed, and letters; in two lives."""
    for life in (0, 1):
        with Driven(url, sync="off") as driven:
            for group in range(6):
                first = 30 * life + 5 * group + 1
                driven.do(append(1, first, first + 4))
            letters = tuple((30 * life + n, 0, envelope(n)) for n in (1, 2, 3))
            driven.do(Spool(2, "s", EVERYTHING, add=letters[:2], dead=letters[2:]))
            driven.store.submit([Trim(7)])
            driven.wait_for(lambda driven=driven: driven.store.statistics().swept == 7)  # type: ignore[misc]


def found_in(url: str, **options: bool) -> list[tuple[str, str]]:
    return [(one.what, one.reason) for one in findings_of(verify(url, **options))]


def findings_of(verified: VerifiedStore) -> list[Finding]:
    return [*verified.findings, *[finding for one in verified.journals for finding in one.findings]]


def test_a_sound_store(url: str) -> None:
    fill(url)
    told = []
    verified = verify(url, deep=True, told=lambda *one: told.append(one))
    (journal,) = verified.journals
    assert verified.is_sound, verified
    assert (journal.broker, journal.first, journal.last, journal.events) == ("b", 8, EVENTS, EVENTS - 7)
    assert (journal.without_checksum, journal.letters, journal.aside) == (0, 6, 0)
    assert all(0 <= done <= total for _, done, total in told)
    assert {what for what, *_ in told} >= {"events of b", "delivery rows of b"}


SHAPES = {
    "a byte of an event": "",
    "a time": "UPDATE palio_journal SET time = time + 1 WHERE sequence = 33",
    "a publisher": "UPDATE palio_journal SET publisher = 'other' WHERE sequence = 33",
    "a missing event": "DELETE FROM palio_journal WHERE sequence = 33",
    "missing events": "DELETE FROM palio_journal WHERE sequence BETWEEN 30 AND 35",
    "the last events are missing": "DELETE FROM palio_journal WHERE sequence > 58",
    "events beyond the head": "UPDATE palio_brokers SET head = 58",
    "a head that came back older": "UPDATE palio_brokers SET head = 55, chain = (SELECT chain FROM "
    "palio_journal WHERE sequence = 50)",
    "a link": "UPDATE palio_journal SET chain = 17 WHERE sequence = 35",
    "the last link": "UPDATE palio_brokers SET chain = 17",
    "a checksum": "UPDATE palio_journal SET checksum = checksum + 1 WHERE sequence = 33",
    "a standing": "UPDATE palio_brokers SET trimmed = 5",
    "a lineage": "UPDATE palio_lineage SET begins = 61 WHERE begins = 30",
    "an opening that is not in the lineage": "UPDATE palio_brokers SET incarnation = incarnation + 1",
    "a letter": "UPDATE palio_spool SET checksum = 0 WHERE delivery = 32",
    "a dead letter": "UPDATE palio_dead SET checksum = 0 WHERE delivery = 33",
}
CHAIN = "They are not what was appended: the chain of checksums is broken."
EXPECTED = {
    "a byte of an event": [("event b/33", WRONG_CHECKSUM)],
    "a time": [("events b/31 to 35", CHAIN)],
    "a publisher": [("events b/31 to 35", CHAIN)],
    "a missing event": [("event b/33", "It is not there.")],
    "missing events": [("events b/30 to 35", "They are not there.")],
    "the last events are missing": [("events b/59 to 60", "They are not there.")],
    "events beyond the head": [
        ("events b/59 to 60", "The journal ends with 58."),
        ("event b/58", "The chain of checksums does not end with the one that the journal ends with."),
    ],
    "a head that came back older": [
        ("events b/56 to 60", "The journal ends with 55."),
        ("event b/55", "The chain of checksums does not end with the one that the journal ends with."),
    ],
    "a link": [("events b/31 to 35", CHAIN), ("events b/36 to 40", CHAIN)],
    "the last link": [
        ("event b/60", "The chain of checksums does not end with the one that the journal ends with.")
    ],
    "a checksum": [("event b/33", WRONG_CHECKSUM), ("events b/31 to 35", CHAIN)],
    "a standing": [("standing", "These cannot be: swept up to 7, trimmed up to 5, head 60.")],
    "a lineage": [("lineage", "Its incarnations are not those of this journal.")],
    "an opening that is not in the lineage": [("lineage", "Its incarnations are not those of this journal.")],
    "a letter": [("delivery 32 of the durable subscription 's'", WRONG_CHECKSUM)],
    "a dead letter": [("dead letter 33 of the durable subscription 's'", WRONG_CHECKSUM)],
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a sound store."""
    url = f"sqlite:///{tmp_path_factory.mktemp('filled')}/store.db"
    fill(url)
    return file_of(url).read_bytes()


@pytest.mark.parametrize("shape", SHAPES)
def test_each_kind_of_damage_is_found_and_named(
    file_url: str, filled: bytes, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_of(file_url).write_bytes(filled)
    if SHAPES[shape]:
        change(file_url, SHAPES[shape])
    else:
        damage_event(file_url, 33)
    for page in (2, 1_000):
        monkeypatch.setattr("palio.store.verifying.FIRST_BATCH", page)
        monkeypatch.setattr("palio.store.verifying.BATCH", page)
        assert found_in(file_url) == EXPECTED[shape]


def test_damage_in_a_database_of_a_server_is_found(database: str) -> None:
    fill(database)
    damage_event(database, 33)
    for shape in ("a time", "a missing event", "a letter"):
        change(database, SHAPES[shape].replace("33", "43"))
    assert found_in(database) == [
        ("event b/33", WRONG_CHECKSUM),
        ("event b/43", "It is not there."),
        *EXPECTED["a letter"],
    ]


def test_parts_of_a_file_that_sqlite_cannot_read_are_named(file_url: str) -> None:
    with Driven(file_url, sync="off") as driven:
        driven.do(*[append(1, 10 * group + 1, 10 * group + 10) for group in range(100)])
    file = file_of(file_url)
    content = bytearray(file.read_bytes())
    leaves = [at for at in range(4_096, len(content), 4_096) if content[at] == 0x0A]  # pages of the journal
    at = leaves[len(leaves) // 2]
    content[at : at + 64] = b"\xff" * 64
    file.write_bytes(content)
    verified = verify(file_url)
    named = [one for one in findings_of(verified) if one.first is not None]
    assert 10 < len(named) < 200
    assert all("malformed" in one.reason for one in named)
    first, last = named[0].first, named[-1].first
    assert first is not None
    assert last is not None
    assert [one.first for one in named] == [*range(first, last + 1)]
    assert verified.journals[0].events == 1_000 - len(named)
    assert verify(file_url, deep=True).findings


def test_whichever_byte_of_a_body_is_another_one_exactly_that_event_is_named(
    file_url: str, filled: bytes
) -> None:
    chance = random.Random(7)
    for _ in range(20):
        sequence = chance.randint(8, EVENTS)
        body = encode_body(envelope(sequence).notification.body)
        file_of(file_url).write_bytes(filled)
        flip(file_of(file_url), body, chance.randrange(len(body)))
        assert found_in(file_url) == [(f"event b/{sequence}", WRONG_CHECKSUM)]


def test_beside_a_broker_that_publishes_and_trims_all_is_well(url: str) -> None:
    fill(url)
    ended = threading.Event()
    with Driven(url) as driven:

        def work() -> None:
            for number in range(EVENTS + 1, 1_000_000):
                driven.do(append(number, number))
                driven.store.submit([Trim(number - 30)])
                if ended.is_set():
                    return

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(8):
                assert findings_of(verify(url)) == []
        finally:
            ended.set()
            thread.join()


def test_what_an_earlier_version_has_written_is_counted(url: str) -> None:
    create_version(url, 8)
    with pytest.raises(StoreTooOld, match="Start its broker once"):
        verify(url)
    with Driven(url) as driven:
        driven.do(append(1, 9_001, 9_010))
        driven.do(append(2, 9_011, 9_020))
    (journal,) = verify(url).journals
    assert (journal.events, journal.without_checksum, journal.findings) == (9_010, 8_990, ())
    change(url, "UPDATE palio_journal SET time = 0 WHERE sequence = 9015")
    assert found_in(url) == [("events b/9011 to 9020", CHAIN)]


def test_one_of_several_brokers(database: str) -> None:
    for name in ("one", "two"):
        with Driven(database, name) as driven:
            driven.do(append(1, 1, 3))
    assert [one.broker for one in verify(database).journals] == ["one", "two"]
    assert [one.broker for one in verify(database, "two").journals] == ["two"]
    with pytest.raises(NoSuchJournal, match="It has those of one, two"):
        verify(database, "three")


def test_what_is_no_store_is_told(tmp_path, file_url: str) -> None:
    with pytest.raises(StoreUnavailable, match="There is no such file"):
        verify(f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(WrongStoreUrl):
        verify("nonsense")
    file_of(file_url).touch()
    with pytest.raises(NoSuchJournal, match="It has none yet"):
        verify(file_url)
