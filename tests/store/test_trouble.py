"""Full disks, lost connections, damaged files: what is said is true, and what can go on goes on."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, make_url

from palio.model.filter import Filter
from palio.routing.durable.effects import Append, Read, SaveFact, Spool, Trim
from palio.routing.durable.facts import FactKind
from palio.routing.occurrences import Failed, Found, Stored
from palio.store import StoreCorrupt, StoreInUse, StoreUnavailable, WrongBroker, WrongStoreUrl
from palio.store.postgresql import Postgresql
from tests.store.cluster import Cluster
from tests.store.driving import Driven, append, envelope
from tests.store.halving import Halving

EVERYTHING = Filter.parse("true")
LARGE = b"x" * 10_000


class Quota:
    """Limits how many pages a file of SQLite may have, from the next connection on, and at once."""

    def __init__(self, driven: Driven) -> None:
        self._pages = 2**30
        self._driven = driven

        @event.listens_for(driven.store._backend.engine, "connect")
        def connected(connection: sqlite3.Connection, record: Any) -> None:
            connection.execute(f"PRAGMA max_page_count = {self._pages}")

    def set(self, pages: int) -> None:
        self._pages = pages
        connection = self._driven.store._writer._connection
        if connection is not None:
            raw: Any = connection.connection.dbapi_connection
            raw.execute(f"PRAGMA max_page_count = {pages}")


def large(token: int, first: int, count: int = 20) -> Append:
    return Append(token, tuple(envelope(first + number, payload=LARGE) for number in range(count)), "p")


def test_a_full_disk_refuses_appends_lets_others_wait_and_goes_on(file_url: str) -> None:
    with Driven(file_url) as driven:
        quota = Quota(driven)
        driven.do(large(1, 1), Spool(2, "s", EVERYTHING))
        quota.set(1)  # no more than there are
        letters = tuple((number, 0, envelope(number, "elsewhere", payload=LARGE)) for number in range(1, 20))
        driven.store.submit(
            [Spool(3, "s", add=letters), large(4, 21), SaveFact(5, FactKind.READER.of("r"), 1), large(6, 41)]
        )
        driven.wait_for_answers(4)
        refused = driven.answers[2:]
        assert [type(answer) for answer in refused] == [Failed, Failed]
        assert all("is full" in answer.reason for answer in refused if isinstance(answer, Failed))
        driven.wait_for(lambda: driven.store.statistics().waiting is not None)
        driven.store.submit([large(7, 21)])  # while others wait, it is refused without waiting behind them
        assert isinstance(driven.wait_for_answers(5)[4], Failed)
        quota.set(2**30)
        assert driven.wait_for_answers(7)[5:] == [Stored(3), Stored(5)]
        assert driven.do(large(8, 21)) == [Stored(8)]
        statistics = driven.store.statistics()
        assert (statistics.waiting, statistics.refused, statistics.head) == (None, 3, 40)
    with Driven(file_url) as driven:
        assert driven.recovered.head == 40
        assert driven.recovered.subscriptions[0].spool == letters


def test_closing_does_not_wait_for_room(file_url: str) -> None:
    driven = Driven(file_url)
    driven.do(large(1, 1), Spool(2, "s", EVERYTHING))
    Quota(driven).set(1)
    driven.store.submit([Spool(3, "s", add=((1, 0, envelope(1, payload=LARGE * 10)),))])
    driven.wait_for(lambda: driven.store.statistics().waiting is not None)
    assert not driven.store.close()
    with Driven(file_url) as driven:
        assert driven.recovered.subscriptions[0].spool == ()


def test_what_was_trimmed_makes_room(file_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palio.store.writer.MIN_SWEPT", 10)
    with Driven(file_url) as driven:
        quota = Quota(driven)
        driven.do(large(1, 1, 40))
        quota.set(1)
        assert isinstance(driven.do(large(2, 41))[0], Failed)
        driven.do(Trim(40), SaveFact(3, FactKind.READER.of("r"), 40))
        driven.wait_for(lambda: driven.store.statistics().swept == 40)
        assert driven.do(large(4, 41)) == [Stored(4)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if mount is None or os.geteuid() or subprocess.run([mount, *options], check=False).returncode:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk}/store.db"
    (small_disk / "ballast").write_bytes(bytes(400_000))
    with Driven(url) as driven:
        confirmed = 0
        for token in range(1, 200):
            (answer,) = driven.do(large(token, confirmed + 1, 2))
            if isinstance(answer, Failed):
                assert "full" in answer.reason
                break
            confirmed += 2
        else:
            pytest.fail("the disk was never full")
        (small_disk / "ballast").unlink()
        assert driven.do(large(1_000, confirmed + 1, 2)) == [Stored(1_000)]
        (found,) = driven.do(Read(1_001, EVERYTHING, 0, confirmed + 2, 1_000))
        assert isinstance(found, Found)
        assert [one.sequence for one in found.envelopes] == list(range(1, confirmed + 3))


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_in_doubt_is_looked_up(url: str, committed: bool) -> None:
    with Driven(url) as driven:
        driven.do(append(1, 1, 3))
        dialect = driven.store._backend.engine.dialect
        original, failures = dialect.do_commit, [1]

        def lost(connection: Any) -> None:
            if not failures:
                return original(connection)
            failures.pop()
            if committed:
                original(connection)
            error = dialect.dbapi.OperationalError("The connection is lost")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error

        dialect.do_commit = lost  # type: ignore[method-assign]
        assert driven.do(append(2, 4, 6), SaveFact(3, FactKind.READER.of("r"), 2), append(4, 7)) == [
            Stored(2),
            Stored(3),
            Stored(4),
        ]
        assert not failures
        assert driven.do(append(5, 8)) == [Stored(5)]
    with Driven(url) as driven:
        assert driven.recovered.head == 8
        (found,) = driven.do(Read(1, EVERYTHING, 0, 8, 100))
        assert isinstance(found, Found)
        assert [one.sequence for one in found.envelopes] == list(range(1, 9))


def cut(cluster: Cluster) -> None:
    """End all connections of brokers."""
    cluster.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'palio %'"
    )


def test_a_lost_connection_loses_nothing(cluster: Cluster, database: str) -> None:
    with Driven(database) as driven:
        for token in range(1, 30):
            driven.store.submit([append(token, token)])
            if token % 10 == 0:
                cut(cluster)
        driven.wait_for_answers(29)
        assert driven.answers == [Stored(token) for token in range(1, 30)]


def test_while_the_server_is_away_appends_are_refused_after_a_while(
    cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palio.store.writer.GRACE", 0.2)
    with Driven(database) as driven:
        driven.do(append(1, 1))
        cluster.stop()
        try:
            driven.store.submit([SaveFact(2, FactKind.READER.of("r"), 1), append(3, 2)])
            refused = driven.wait_for_answers(2)[1]
            assert isinstance(refused, Failed)
            assert refused.token == 3
            assert "cannot be reached" in refused.reason
        finally:
            cluster.start()
        assert driven.wait_for_answers(3)[2] == Stored(2)
        assert driven.do(append(4, 2)) == [Stored(4)]


@pytest.mark.parametrize("still_there", [True, False])
def test_who_was_replaced_meanwhile_writes_no_more(cluster: Cluster, database: str, still_there: bool) -> None:
    with Driven(database) as old:
        old.do(append(1, 1))
        cut(cluster)
        new = Driven(database)
        new.do(append(1, 2))
        if not still_there:
            new.store.close()
        assert isinstance(old.do(append(2, 2))[0], Failed)
        assert isinstance(old.errors[0], StoreInUse)
        assert isinstance(old.do(append(3, 2))[0], Failed)
        new.store.close()
    assert not old.store.close()


def test_who_was_replaced_notices_it_though_it_has_nothing_to_write(
    cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palio.store.writer.LOOK_EVERY", 0.05)
    with monkeypatch.context() as still:  # it does not look
        still.setattr(Postgresql, "is_connected", lambda *_: True)
        old = Driven(database)
        old.do(append(1, 1))
        cut(cluster)
        new = Driven(database)
        assert not old.errors
    with new:
        old.wait_for(lambda: bool(old.errors))
        assert isinstance(old.errors[0], StoreInUse)
        assert new.do(append(1, 2)) == [Stored(1)]
    assert not old.store.close()


def test_who_has_nothing_to_write_and_lost_its_connection_takes_its_lock_again(
    cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palio.store.writer.LOOK_EVERY", 0.05)
    locked = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
    with Driven(database) as driven:
        before = cluster.execute(locked)
        cut(cluster)
        driven.wait_for(lambda: cluster.execute(locked) not in (before, []))
        with pytest.raises(StoreInUse):
            Driven(database)
        assert driven.do(append(1, 1)) == [Stored(1)]
        assert not driven.errors


@pytest.fixture
def halving(cluster: Cluster, tmp_path: Path) -> Iterator[Halving]:
    way = Halving(tmp_path, cluster.folder)
    yield way
    way.close()


def test_what_is_half_open_is_taken_over_by_whom_it_belongs_to(
    cluster: Cluster, database: str, halving: Halving
) -> None:
    """The server still waits for the connection that holds the lock, and its owner knows that it is its own."""
    url = database.replace(str(cluster.folder), str(halving.folder))
    with Driven(url) as driven:
        for token in (1, 2, 3):
            assert driven.do(append(token, token)) == [Stored(token)]
            halving.halve()
        assert driven.do(append(4, 4)) == [Stored(4)]
        assert not driven.errors
        with pytest.raises(StoreInUse, match=rf"in use by process {os.getpid()}\b"):
            Driven(database)  # of the same process, and yet another one
    with Driven(database) as driven:
        assert driven.recovered.head == 4


def test_what_is_half_open_and_anothers_stays_anothers(
    cluster: Cluster, database: str, halving: Halving
) -> None:
    url = database.replace(str(cluster.folder), str(halving.folder))
    with Driven(url) as driven:
        driven.do(append(1, 1))
        halving.halve()
        with pytest.raises(StoreInUse):
            Driven(database)
        assert driven.do(append(2, 2)) == [Stored(2)]


def test_who_ends_in_order_has_let_go_before(database: str) -> None:
    """Whoever opens the store then does not depend on when the server notices that a connection ended."""
    one, another = Postgresql(make_url(database), "full"), Postgresql(make_url(database), "full")
    seen = []

    def ending(connection: Any, record: Any) -> None:
        another.lock("b")
        seen.append(connection.closed)

    one.lock("b")
    event.listen(one.engine, "close", ending)
    one.unlock()
    another.unlock()
    assert seen == [False]


def test_brokers_share_a_database(database: str) -> None:
    with Driven(database, "one") as one, Driven(database, "two") as two:
        one.do(
            append(1, 1, 3),
            Spool(2, "s", EVERYTHING, add=((1, 0, envelope(1)),)),
            SaveFact(3, FactKind.READER.of("r"), 1),
        )
        two.do(append(1, 1, 2))
    with Driven(database, "two") as two:
        assert (two.recovered.head, two.recovered.subscriptions, two.recovered.facts) == (2, (), ())


def test_a_file_belongs_to_one_broker(file_url: str) -> None:
    with Driven(file_url, "one"):
        pass
    with pytest.raises(WrongBroker, match="belongs to the broker 'one', not to 'two'"):
        Driven(file_url, "two")
    with Driven(file_url, "one") as driven:
        assert driven.incarnation == 2


# Damage


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def test_a_file_is_for_its_owners_eyes_only_whatever_the_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        with Driven(f"sqlite:///{tmp_path}/palio.db") as driven:
            driven.do(append(1, 1))
            names = {file.name for file in tmp_path.iterdir()}
            assert names == {"palio.db", "palio.db-shm", "palio.db-wal", "palio.db.lock"}
            assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    finally:
        os.umask(before)
    # Who opens it to others has a reason.
    (tmp_path / "palio.db").chmod(0o640)
    with Driven(f"sqlite:///{tmp_path}/palio.db"):
        assert (tmp_path / "palio.db").stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_no_database(file_url: str) -> None:
    path_of(file_url).write_bytes(b"This is no database at all. " * 100)
    with pytest.raises(StoreCorrupt, match="is damaged"):
        Driven(file_url)


def test_a_torn_file(file_url: str) -> None:
    with Driven(file_url) as driven:
        driven.do(large(1, 1), Spool(2, "s", EVERYTHING, add=((1, 0, envelope(1, payload=LARGE)),)))
    content = path_of(file_url).read_bytes()
    path_of(file_url).write_bytes(content[:4_096] + b"\xff" * (len(content) - 4_096))
    with pytest.raises(
        StoreCorrupt, match="`palio journal verify` says what is lost of it, and `palio journal restore`"
    ):
        Driven(file_url)


@pytest.mark.parametrize("wrong", ["", "nonsense", "mysql://host/database", "sqlite://", "sqlite:///:memory:"])
def test_urls_that_name_no_store(wrong: str) -> None:
    with pytest.raises(WrongStoreUrl, match="Write sqlite:///"):
        Driven(wrong)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreUnavailable, match="cannot be opened") as caught:
        Driven(f"postgresql://somebody:secret@/none?host={tmp_path}")
    assert "secret" not in str(caught.value)
    assert str(caught.value).count("The store") == 1
