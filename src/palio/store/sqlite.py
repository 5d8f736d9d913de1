"""SQLite: one file for a broker, written ahead.

Settings, and why:

- `journal_mode=WAL`: a commit appends to one file and syncs it once; readers never wait for the writer.
- `synchronous=FULL` ("full"): each commit is synced, so what was confirmed survives a loss of power. With
  NORMAL ("normal") only checkpoints are: a crash of the process loses nothing, a loss of power may lose the
  last commits, and the file stays whole. With OFF ("off") a loss of power may also damage the file.
- `wal_autocheckpoint`: a page that changes often in between is copied to the file once. 16 MB keep the pause
  of a checkpoint short.
- `journal_size_limit`: after a burst, the log goes back to a size that does not hurt.
- `cache_size`: the pages at the ends of journal and spools stay in memory.

Two brokers in one file would give sequences twice. The lock is on a file of its own beside it, as SQLite's own
locks are gone between transactions; it ends with the process, however that ends, and names it. Somebody may
remove that file. So there is another lock on the database itself, by flock, which on Linux has nothing to do
with the locks that SQLite takes in the same file. Where there is no such lock, a second broker begins another
life, and the first one finds that out with its next commit (fencing).

1. Nothing is confirmed that lies in a file which nobody will find: the names of the database, of its log and of
   the index of its log still lead to the files that are open, after each commit and before it is told, and now
   and then when there is nothing to do. Without the index, others would make another one and overwrite the log.
2. A file descriptor of the database is never closed while this process has the database open by SQLite: that
   would take away SQLite's own locks of this process, so that others remove the log beneath it. It stays open
   then, for as long as the process lives.
3. What the disk has made of a text is read as a text: one that is no UTF-8 any more does not keep anybody from
   reading the rows around it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, TextClause, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from palio.store.backend import Backend, Columns, Rows, Sync, Trouble, WriteFailure
from palio.store.errors import (
    StoreInUse,
    StoreReplaced,
    StoreUnavailable,
    WrongBroker,
    WrongStoreUrl,
    sentence,
)
from palio.store.schema import operations

CHECKPOINT_PAGES = 4_096
LOG_BYTES = 64 << 20
CACHE_KIB = 32 << 10
LOG_SUFFIXES = ("-wal", "-shm")  # of the log, and of the index of the log
BUSY_SECONDS = 5.0  # somebody looks into the file with another tool

# How the system says that a name leads nowhere.
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)

# Rows that one statement takes. Each statement lets go of the interpreter once, and has to wait for it again
# where the broker is busy, up to half a millisecond: so few large ones. Numbers that halve, and a few for the
# rest, which is filled up with rows that count for nothing, give few texts, each prepared once.
MOST_ROWS = 512
_RESTS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# Statements that stay prepared: for each of some ten kinds there is one of each of these sizes.
_PREPARED = 256

_text = partial(str, encoding="utf-8", errors="replace")

# Whatever fails, all of the transaction is undone: so SQLite need not note, in a file of its own for each
# statement, how to undo that alone (`OR FAIL`).
_APPEND = "INSERT OR FAIL INTO palio_journal (broker, sequence, time, publisher, id, body, checksum, chain) "
_APPEND_EARLIER = _APPEND.replace(", chain)", ")")
_LOG = f"INSERT OR FAIL INTO palio_operations ({', '.join(operations.columns.keys())}) "
_SPOOL = "INSERT OR FAIL INTO palio_spool (subscription, delivery, attempts, envelope, checksum) "
_PUT = "INSERT INTO {} (subscription, delivery, attempts, envelope, checksum) "
_IN_PLACE = (
    " ON CONFLICT (subscription, delivery) DO UPDATE "
    "SET attempts = excluded.attempts, envelope = excluded.envelope, checksum = excluded.checksum"
)
_RECORD = "INSERT OR FAIL INTO palio_records (broker, kind, key, value, event) "
_RECORD_BEFORE = "DELETE FROM palio_records WHERE broker = ? AND kind = ? AND key IN "
_SHARE = "INSERT OR FAIL INTO palio_letters (broker, letter, envelope, checksum) "
_UNSHARE = "DELETE FROM palio_letters WHERE broker = ? AND letter IN "
_DROP = "DELETE FROM {} WHERE subscription = ? AND delivery IN "


class Sqlite(Backend):
    """A file."""

    def __init__(self, url: URL, sync: Sync, *, writes: bool = True, create: bool = True) -> None:
        if not url.database or url.database == ":memory:":
            raise WrongStoreUrl(str(url), "A store of SQLite is a file.")
        self.path = Path(url.database)
        self.store = str(self.path)
        self._locks: list[int] = []  # file descriptors
        self._in_place: dict[str, tuple[int, int]] = {}  # names of files, and to what they are to lead
        if writes and create:
            self._make_file()
        elif not self.path.exists():
            raise StoreUnavailable(self.store, "There is no such file.")
        how = {"check_same_thread": False, "timeout": BUSY_SECONDS, "cached_statements": _PREPARED}
        self.engine = create_engine(url, poolclass=NullPool, connect_args=how)

        @event.listens_for(self.engine, "connect")
        def connected(connection: sqlite3.Connection, record: Any) -> None:
            connection.isolation_level = None  # transactions begin and end where we say so
            connection.text_factory = _text
            if not writes:
                connection.execute("PRAGMA query_only = ON")
                return
            for setting in (
                "journal_mode = WAL",
                f"synchronous = {sync.upper()}",
                f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
                f"journal_size_limit = {LOG_BYTES}",
                f"cache_size = -{CACHE_KIB}",
            ):
                connection.execute(f"PRAGMA {setting}")

        @event.listens_for(self.engine, "begin")
        def began(connection: Connection) -> None:
            # A writer that begins as a reader can find that it may not go on.
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    def _make_file(self) -> None:
        """A new one is for its owner's eyes only, whatever the folder; so are the files beside it.

        SQLite gives its logs the permissions of the database. Those of one that is there are somebody's choice.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError as problem:
            raise StoreUnavailable(self.store, sentence(problem.strerror)) from None

    def lock(self, broker: str) -> None:
        try:
            file = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise StoreUnavailable(self.store, sentence(problem.strerror)) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            holder = os.pread(file, 64, 0).decode(errors="replace").strip()
            os.close(file)
            if problem.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreUnavailable(self.store, sentence(problem.strerror)) from None
            raise StoreInUse(self.store, broker, f"process {holder}" if holder else None) from None
        self._locks.append(file)
        try:
            self._lock_database(broker)
        except OSError as problem:
            self.unlock()
            raise StoreUnavailable(self.store, sentence(problem.strerror)) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)

    def _lock_database(self, broker: str) -> None:
        """Lock the database itself, as somebody may have removed the other lock."""
        file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        found = os.fstat(file)
        try:
            if sys.platform == "linux":  # elsewhere it would be in the way of SQLite's own locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            if problem.errno == errno.EWOULDBLOCK:
                holder = next(iter(_holders("FLOCK", found.st_ino)), None)
                _let_go(file)
                self.unlock()
                raise StoreInUse(self.store, broker, f"process {holder}" if holder else None) from None
            # A file on a server: there it takes a file that is open for writing, and would be in SQLite's way.
        self._locks.append(file)
        self._in_place[str(self.path)] = found.st_dev, found.st_ino

    def unlock(self) -> None:
        while self._locks:
            _let_go(self._locks.pop())

    def require_in_place(self) -> None:
        for name, known in self._in_place.items():
            try:
                found = os.stat(name)
            except OSError as problem:
                if problem.errno in _GONE:
                    raise StoreReplaced(self.store, name, "removed") from None
                continue  # nobody knows; SQLite says when it cannot go on
            if (found.st_dev, found.st_ino) != known:
                raise StoreReplaced(self.store, name, "replaced")

    def connect(self) -> Connection:
        logs = [f"{os.path.realpath(self.path)}{suffix}" for suffix in LOG_SUFFIXES]
        for name in logs:
            self._in_place.pop(name, None)
        self.require_in_place()  # SQLite would make a new one
        connection = self.engine.connect()
        try:
            with connection.begin():  # from now on they are the same for as long as it is connected
                there = {name: os.stat(name) for name in logs if os.path.exists(name)}
        except BaseException:
            connection.close()
            raise
        self._in_place |= {name: (found.st_dev, found.st_ino) for name, found in there.items()}
        return connection

    def reader(self) -> Connection:
        return self.engine.connect()

    def prepare(self, connection: Connection) -> None:
        pass  # the transaction has begun as a writer

    def claim(self, broker: str, others: Sequence[str]) -> None:
        if others:
            raise WrongBroker(self.store, broker, others[0])

    def trouble(self, problem: BaseException) -> Trouble:
        cause = problem.orig if isinstance(problem, DBAPIError) else problem
        code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        match code:
            case sqlite3.SQLITE_FULL:
                return Trouble(WriteFailure.FULL, f"The disk of the store {self.store} is full.")
            case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN:
                # A quota or a limit on the size of files shows up here too.
                return Trouble(
                    WriteFailure.FULL, f"The store {self.store} cannot be written: {sentence(cause)}"
                )
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return Trouble(WriteFailure.AWAY, f"Another program keeps the store {self.store} locked.")
        return Trouble(WriteFailure.BROKEN, sentence(cause))

    def execute(self, connection: Connection, statement: TextClause, rows: Columns | Sequence[Columns]) -> int:
        driver: Any = connection.connection.driver_connection
        if not isinstance(rows, dict) and len(rows) == 1:  # as most often, and less work
            rows = rows[0]
        carry_out = driver.execute if isinstance(rows, dict) else driver.executemany
        changed: int = carry_out(statement.text, rows).rowcount
        return changed

    def append(self, connection: Connection, rows: Rows, chain: int) -> None:
        if len(rows) > _RESTS[-1]:  # to make all rows wider takes longer than a statement
            _insert(connection, _APPEND_EARLIER, rows[:-1])
            rows = rows[-1:]
        _insert(connection, _APPEND, [*[(*row, None) for row in rows[:-1]], (*rows[-1], chain)])

    def log(self, connection: Connection, rows: Rows) -> None:
        _insert(connection, _LOG, rows)

    def spool(self, connection: Connection, rows: Rows) -> None:
        _insert(connection, _SPOOL, rows)

    def record(self, connection: Connection, rows: Rows) -> None:
        before: dict[tuple[Any, ...], list[Any]] = {}
        for broker, kind, key, *_ in rows:
            before.setdefault((broker, kind), []).append(key)
        for owner, keys in before.items():
            _delete(connection, _RECORD_BEFORE, owner, keys)
        _insert(connection, _RECORD, rows)

    def share(self, connection: Connection, rows: Rows) -> None:
        _insert(connection, _SHARE, rows)

    def unshare(self, connection: Connection, broker: int, letters: Sequence[int]) -> None:
        _delete(connection, _UNSHARE, (broker,), list(letters))

    def put(self, connection: Connection, table: str, rows: Rows) -> None:
        _insert(connection, _PUT.format(table), rows, _IN_PLACE)

    def drop(self, connection: Connection, table: str, rows: Rows) -> None:
        deliveries: dict[Any, list[Any]] = {}
        for subscription, delivery in rows:
            deliveries.setdefault(subscription, []).append(delivery)
        for subscription, gone in deliveries.items():
            _delete(connection, _DROP.format(table), (subscription,), gone)


def _let_go(file: int) -> None:
    """Release a lock, and close the file if nothing else goes with that (2)."""
    fcntl.flock(file, fcntl.LOCK_UN)
    if os.getpid() not in _holders("POSIX", os.fstat(file).st_ino):
        os.close(file)


def _holders(kind: str, inode: int) -> list[int]:
    """The processes that have locks of a kind on a file, as far as the system tells."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return []
    # 3: FLOCK ADVISORY WRITE 1234 08:02:131090 0 EOF; a process that cannot be seen from here is 0.
    found = [line.split() for line in lines]
    of_file = [words for words in found if words[1] == kind and words[5].rpartition(":")[2] == str(inode)]
    return [int(words[4]) for words in of_file if words[4] != "0"]


def _insert(connection: Connection, into: str, rows: Rows, then: str = "") -> None:
    execute = _executed(connection)
    for part, size in _parts(list(rows)):
        columns, nothing = len(part[0]), size - len(part)
        text = _inserting(into, columns, size, nothing > 0) + then
        execute(text, (*chain.from_iterable(part), *[None] * (columns * nothing)))


@lru_cache(maxsize=_PREPARED)
def _inserting(into: str, columns: int, size: int, is_filled_up: bool) -> str:
    """A statement that takes so many rows, of which those that begin with NULL may count for nothing."""
    values = "VALUES " + ", ".join([f"({', '.join('?' * columns)})"] * size)
    return into + (f"SELECT * FROM ({values}) WHERE column1 IS NOT NULL" if is_filled_up else values)


def _executed(connection: Connection) -> Callable[[str, tuple[Any, ...]], object]:
    """The driver's own way, by which a statement of a few rows takes half as long."""
    driver: Any = connection.connection.driver_connection
    execute: Callable[[str, tuple[Any, ...]], object] = driver.execute
    return execute


def _delete(connection: Connection, statement: str, owner: tuple[Any, ...], keys: list[Any]) -> None:
    execute = _executed(connection)
    for part, size in _parts(keys):
        text = f"{statement}({', '.join('?' * size)})"
        execute(text, (*owner, *part, *part[-1:] * (size - len(part))))


def _parts(rows: list[Any]) -> Iterator[tuple[list[Any], int]]:
    """What one statement takes each, and how many rows it has."""
    at = 0
    while left := len(rows) - at:
        size = min(MOST_ROWS, 1 << left.bit_length() - 1)
        if left <= _RESTS[-1]:
            size = _RESTS[bisect_left(_RESTS, left)]
        yield rows[at : at + size], size
        at += min(size, left)
