"""Files that are taken away beneath a store, and locks: nothing is confirmed that nobody would find again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from palio.model.filter import Filter
from palio.routing.durable.effects import Read
from palio.routing.occurrences import Failed, Found, Stored
from palio.store import Journal, StoreInUse
from palio.store.errors import StoreReplaced
from tests.store.damage import change, file_of
from tests.store.driving import Driven, append

EVERYTHING = Filter.parse("true")


def remove(file: Path) -> None:
    file.unlink()


def replace(file: Path) -> None:
    other = file.with_name("other")
    shutil.copy(file, other)
    os.replace(other, file)


def move_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("trouble", [remove, replace, move_folder])
@pytest.mark.parametrize("idle", [True, False], ids=["idle", "busy"])
def test_a_file_that_is_taken_away_breaks_the_store(
    tmp_path: Path,
    suffix: str,
    trouble: Callable[[Path], None],
    idle: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("palio.store.writer.LOOK_EVERY", 0.05 if idle else 60.0)
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / f"store.db{suffix}"
    driven = Driven(f"sqlite:///{tmp_path}/data/store.db")
    driven.do(append(1, 1))
    trouble(file)
    if not idle:
        (refused,) = driven.do(append(2, 2))
        assert isinstance(refused, Failed)
    driven.wait_for(lambda: bool(driven.errors))
    (problem,) = driven.errors
    assert isinstance(problem, StoreReplaced)
    assert str(file if trouble is not move_folder else tmp_path / "data" / "store.db") in str(problem)
    assert "palio journal restore" in str(problem)
    (refused,) = driven.do(append(3, 2))
    assert isinstance(refused, Failed)
    assert refused.reason == str(problem)
    assert not driven.store.close()


def test_files_that_stay_where_they_are_are_no_trouble(file_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palio.store.writer.LOOK_EVERY", 0.01)
    looks: list[None] = []
    with Driven(file_url) as driven:
        look = driven.store._backend.require_in_place
        monkeypatch.setattr(driven.store._backend, "require_in_place", lambda: (looks.append(None), look())[1])
        driven.do(append(1, 1))
        change(file_url, "PRAGMA wal_checkpoint(TRUNCATE)")
        driven.do(append(2, 2))
        change(file_url, "VACUUM")
        before = len(looks)
        driven.wait_for(lambda: len(looks) > before + 3)
        assert driven.do(append(3, 3)) == [Stored(3)]
        assert not driven.errors


_SECOND = """
import sys
from palio.store import SqlStore, StoreError
try:
    SqlStore.open(sys.argv[1], broker="b", completed=lambda _: None).close()
except StoreError as problem:
    sys.exit(f"{type(problem).__name__}: {problem}")
"""


def open_elsewhere(url: str) -> str:
    """What another process is told that opens the store as a broker; nothing if it may."""
    words = [sys.executable, "-W", "ignore", "-c", _SECOND, url]  # where no compiler was, Palio says so
    return subprocess.run(words, capture_output=True, text=True, check=False).stderr


def locks_of_sqlite(url: str) -> list[list[str]]:
    """Those that SQLite has on a database, in this process."""
    lines = [line.split()[1:] for line in Path("/proc/locks").read_text().splitlines()]
    ours = f":{file_of(url).stat().st_ino}"
    mine = [words for words in lines if words[0] == "POSIX" and words[3] == str(os.getpid())]
    return sorted(words for words in mine if words[4].endswith(ours))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the first one is stopped by the second")
def test_a_second_broker_is_refused_though_the_lock_file_is_gone(file_url: str) -> None:
    lock = Path(f"{file_of(file_url)}.lock")
    with Driven(file_url) as first:
        first.do(append(1, 1))
        lock.unlink()
        told = open_elsewhere(file_url)
        assert told.startswith("StoreInUse")
        assert f"in use by process {os.getpid()}. " in told
        before = locks_of_sqlite(file_url)
        assert before
        lock.unlink()
        with pytest.raises(StoreInUse, match="in use by process"):
            Driven(file_url)  # not in the same process, either; which must not cost the first one its own locks
        assert locks_of_sqlite(file_url) == before
        assert first.do(append(2, 2, 9)) == [Stored(2)]
        assert not first.errors
        assert first.incarnation == 1
    with Driven(file_url) as driven:
        (found,) = driven.do(Read(1, EVERYTHING, 0, 9, 100))
        assert isinstance(found, Found)
        assert len(found.envelopes) == 9


@pytest.mark.skipif(sys.platform != "linux", reason="there is no lock on the database elsewhere")
def test_who_reads_in_the_same_process_keeps_its_locks_when_a_store_is_closed(file_url: str) -> None:
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 5))
    with Journal(file_url) as journal:
        assert journal.range().last == 5
        with Driven(file_url) as driven:
            driven.do(append(1, 6))
        assert locks_of_sqlite(file_url)
        assert open_elsewhere(file_url) == ""  # who closes it there is not the last one, and leaves the log
        assert len(list(journal.read())) == 6
    with Driven(file_url):
        pass
    assert not locks_of_sqlite(file_url)


def test_who_was_replaced_in_the_same_file_writes_no_more(
    file_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files have no locks, and the lock file is gone: the second one begins, and the first one ends."""
    monkeypatch.setattr("palio.store.sqlite.fcntl.flock", lambda file, how: None)
    first = Driven(file_url)
    first.do(append(1, 1, 3))
    second = Driven(file_url)
    assert second.do(append(1, 4)) == [Stored(1)]
    (refused,) = first.do(append(2, 4))
    assert isinstance(refused, Failed)
    assert isinstance(first.errors[0], StoreInUse)
    assert second.do(append(2, 5)) == [Stored(2)]
    assert not first.store.close()
    assert second.store.close()
