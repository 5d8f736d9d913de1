"""Copies are of one moment, made beside a broker that writes; what is brought back says that it is a copy."""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path

import pytest

from palio.model.filter import Filter
from palio.routing.durable.effects import Read, Spool
from palio.routing.occurrences import Found, Stored
from palio.store import Journal, NoSuchJournal, StoreInUse, StoreTooNew, StoreUnavailable, WrongBroker
from palio.store.copies import Copied, back_up, restore
from palio.store.errors import CopyRefused, NoCopiesHere, StoreCorrupt, StoreThere
from palio.store.verifying import verify
from tests.store.damage import change, file_of
from tests.store.driving import Driven, append, envelope
from tests.store.test_schema import create_version

EVERYTHING = Filter.parse("true")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "copies").mkdir()
    return tmp_path / "copies" / "copy.db"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_copy_of_a_running_broker_is_of_one_moment(file_url: str, copy: Path) -> None:
    ended = threading.Event()
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 2_000), Spool(2, "s", EVERYTHING))

        def work() -> None:
            for number in range(2_001, 1_000_000):
                letter = (number, 0, envelope(number))
                driven.do(append(number, number), Spool(2, "s", add=(letter,), position=(("b", number),)))
                if ended.is_set():
                    return

        thread = threading.Thread(target=work)
        thread.start()
        shown = []
        driven.wait_for(lambda: driven.store.statistics().head > 2_010)
        made = back_up(file_url, copy, told=lambda *one: shown.append(one))
        ended.set()
        thread.join()
    assert made == Copied(str(copy), copy.stat().st_size, made.heads)
    head = made.heads["b"]
    assert head > 2_000
    assert shown[-1][1] == shown[-1][2]
    assert names(copy.parent) == ["copy.db"]  # one file, and nothing beside it
    assert copy.stat().st_mode & 0o777 == 0o600
    assert verify(f"sqlite:///{copy}", deep=True).is_sound
    with Driven(f"sqlite:///{copy}") as driven:
        assert driven.recovered.head == head
        assert driven.recovered.subscriptions[0].position == {"b": head}


def test_what_was_brought_back_is_the_copy_and_says_so_once(
    file_url: str, copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = file_of(file_url)
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 5))
        back_up(file_url, copy)
        driven.do(append(2, 6, 9))
        lineage = driven.recovered.lineage
    with pytest.raises(StoreThere, match=r"with the journal of b up to 9\. It would be moved aside"):
        restore(copy, file_url)
    with Journal(file_url) as journal:
        assert journal.range().last == 9
    done = restore(copy, file_url, replace=True)
    assert (done.file, done.heads) == (str(store), {"b": 5})
    assert done.moved is not None
    with Journal(f"sqlite:///{done.moved}") as journal:
        assert journal.range().last == 9  # nothing is lost
    with caplog.at_level(logging.WARNING), Driven(file_url) as driven:
        assert driven.recovered.head == 5
        assert driven.recovered.lineage[0] == lineage[0]
        assert driven.recovered.lineage[-1].begins == 5
        assert driven.recovered.lineage[-1] not in lineage
        assert driven.do(append(1, 6)) == [Stored(1)]
    assert f"was restored from {copy} on 20" in caplog.text
    assert "It ends with 5." in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING), Driven(file_url):
        assert "restored" not in caplog.text
    assert verify(file_url).is_sound


def test_where_nothing_is_a_copy_is_brought_back_without_more_ado(file_url: str, copy: Path) -> None:
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 5))
        back_up(file_url, copy)
    elsewhere = f"sqlite:///{copy.parent}/new/palio.db"
    assert restore(copy, elsewhere) == Copied(f"{copy.parent}/new/palio.db", copy.stat().st_size, {"b": 5})
    with Driven(elsewhere) as driven:
        (found,) = driven.do(Read(1, EVERYTHING, 0, 5, 10))
        assert isinstance(found, Found)
        assert len(found.envelopes) == 5


def test_a_store_that_was_killed_goes_aside_with_its_log(file_url: str, copy: Path) -> None:
    store = file_of(file_url)
    killed = copy.parent / "killed.db"
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 5))
        back_up(file_url, copy)
        driven.do(append(2, 6, 9))
        for suffix in ("", "-wal"):  # as after kill -9
            shutil.copy(f"{store}{suffix}", f"{killed}{suffix}")
    done = restore(copy, f"sqlite:///{killed}", replace=True)
    with Journal(f"sqlite:///{killed}") as journal:
        assert journal.range().last == 5
    with Journal(f"sqlite:///{done.moved}") as journal:
        assert journal.range().last == 9


def test_while_its_broker_runs_nothing_is_brought_back(file_url: str, copy: Path) -> None:
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 5))
        back_up(file_url, copy)
        for gone in (False, True):
            if gone:
                Path(f"{file_of(file_url)}.lock").unlink()
            with pytest.raises(StoreInUse):
                restore(copy, file_url, replace=True)
        assert driven.do(append(2, 6)) == [Stored(2)]
    assert names(copy.parent) == ["copy.db"]


def test_a_damaged_store_is_replaced(file_url: str, copy: Path) -> None:
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 5))
        back_up(file_url, copy)
    file_of(file_url).write_bytes(b"This is no database at all. " * 1_000)
    with pytest.raises(StoreCorrupt):
        Driven(file_url)
    with pytest.raises(StoreThere):
        restore(copy, file_url)
    restore(copy, file_url, replace=True)
    with Driven(file_url) as driven:
        assert driven.recovered.head == 5


def test_a_copy_of_an_earlier_version_is_migrated(file_url: str, copy: Path) -> None:
    create_version(file_url, 7)
    back_up(file_url, copy)
    restore(copy, file_url, replace=True)
    with Driven(file_url) as driven:
        assert driven.recovered.head == 9_000


def test_copies_that_are_refused(file_url: str, copy: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="There is no such file"):
        back_up(file_url, copy)
    with pytest.raises(CopyRefused, match="There is no such file"):
        restore(copy, file_url)
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 5))
    with pytest.raises(CopyRefused, match="It is the store itself"):
        restore(file_of(file_url), file_url)
    with pytest.raises(CopyRefused, match="No such file or directory"):
        back_up(file_url, tmp_path / "none" / "copy.db")
    back_up(file_url, copy)
    with pytest.raises(CopyRefused, match="There is something of that name"):
        back_up(file_url, copy)
    other = f"sqlite:///{copy.parent}/other.db"
    with Driven(other, "other"):
        pass
    with pytest.raises(WrongBroker, match="belongs to the broker 'other', not to 'b'"):
        restore(copy, other, replace=True)
    text = copy.parent / "text"
    text.write_bytes(b"This is no database at all. " * 1_000)
    with pytest.raises(StoreCorrupt):
        restore(text, file_url, replace=True)
    text.write_bytes(b"")
    with pytest.raises(NoSuchJournal):
        restore(text, file_url, replace=True)
    change(f"sqlite:///{copy}", "UPDATE palio_schema SET version = 99")
    with pytest.raises(StoreTooNew):
        restore(copy, file_url, replace=True)
    with Driven(file_url) as driven:
        assert driven.recovered.head == 5
    assert not [name for name in (*names(tmp_path), *names(copy.parent)) if ".part" in name]


def test_a_server_makes_its_copies_itself(copy: Path) -> None:
    pytest.importorskip("psycopg")
    url = "postgresql://somebody:secret@host/palio"
    for problem in (lambda: back_up(url, copy), lambda: restore(copy, url)):
        with pytest.raises(NoCopiesHere, match="pg_dump") as caught:
            problem()
        assert "secret" not in str(caught.value)
