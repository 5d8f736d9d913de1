"""Copies of a store: made while its broker runs, and brought back when it does not.

A copy is one file, of one moment: SQLite's online backup reads it in one transaction, so the broker writes on
beside it, and what is committed meanwhile is not in the copy. It is written under another name, synced, and
gets its own when it is complete: there is never half a copy.

A copy that is brought back is older than what other brokers have seen. It is marked, so that the log of the
broker says so; the next opening begins an incarnation in the lineage of its journal, as each does, by which
others notice. What was there is never overwritten: it is moved aside, with its log, and its name says when.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, inspect, make_url, select
from sqlalchemy.exc import SQLAlchemyError

from palio.store import schema
from palio.store.errors import (
    CopyRefused,
    NoCopiesHere,
    NoSuchJournal,
    StoreError,
    StoreThere,
    StoreUnavailable,
    WrongBroker,
    WrongStoreUrl,
    sentence,
)
from palio.store.opening import backend_of, refusal
from palio.store.records import from_column, to_column
from palio.store.sqlite import LOG_SUFFIXES
from palio.store.verifying import Told

# Pages that are copied between two reports: some milliseconds.
_PAGES = 1_024
_PART = ".part"  # what the name of a copy that is not complete ends with


class Copied(msgspec.Struct, frozen=True):
    """A copy that was made or brought back: where it is now, its size, and how far its journals are."""

    file: str
    bytes: int
    heads: Mapping[str, int]  # by the names of the brokers
    moved: str | None = None  # where that is that was there before


def back_up(url: str, file: str | Path, *, told: Told = lambda what, done, total: None) -> Copied:
    """Copy a store of SQLite, also that of a running broker, to a file that is not there yet.

    Raises `NoCopiesHere` for PostgreSQL, `CopyRefused`, and what opening a store raises.
    """
    store, copy = _path_of(url), Path(file)
    if not store.is_file():
        raise StoreUnavailable(str(store), "There is no such file.")
    if copy.exists():
        raise CopyRefused(str(copy), "There is something of that name. Move it away, or choose another one.")
    with _part_of(copy) as part:
        heads = _copy(store, part, told)
        _put_in_place(part, copy)
    return Copied(str(copy), copy.stat().st_size, heads)


def restore(
    file: str | Path, url: str, *, replace: bool = False, told: Told = lambda what, done, total: None
) -> Copied:
    """Bring a copy back as the store of a broker that does not run.

    A store that is there is moved aside if `replace` says so. Raises `StoreThere` if not, `StoreInUse` if the
    broker runs, `WrongBroker` if the store there is another one's, `NoCopiesHere` for PostgreSQL,
    `CopyRefused`, and what opening a store raises.
    """
    copy, store = Path(file), _path_of(url)
    if not copy.is_file():
        raise CopyRefused(str(copy), "There is no such file.")
    if store.exists() and store.samefile(copy):
        raise CopyRefused(str(copy), "It is the store itself.")
    heads = _heads(copy)
    name = next(iter(heads))
    moved = None
    with _locked(url, name):
        if store.stat().st_size:
            _require_same_broker(store, name)
            if not replace:
                raise StoreThere(str(store), _told(_heads_if_readable(store)))
            moved = store.with_name(f"{store.name}.{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
        with _part_of(store) as part:
            _copy(copy, part, told)
            _mark(part, copy)
            if moved is not None:
                _move_aside(store, moved)
            _put_in_place(part, store)
    return Copied(str(store), store.stat().st_size, heads, None if moved is None else str(moved))


def _path_of(url: str) -> Path:
    """The file of a store, whether it is there or not. Raises `NoCopiesHere` and `WrongStoreUrl`."""
    if not url.startswith("sqlite:"):
        raise NoCopiesHere(backend_of(url, writes=False).store)
    database = make_url(url).database
    if not database or database == ":memory:":
        raise WrongStoreUrl(url, "A store of SQLite is a file.")
    return Path(database)


# Reading


def _heads(file: Path) -> dict[str, int]:
    """How far the journals in a file are. Raises what opening a store raises."""
    with _reading(file) as connection:
        return _heads_of(connection, file)


def _heads_of(connection: Connection, file: Path) -> dict[str, int]:
    if not inspect(connection).has_table(schema.version.name):
        raise NoSuchJournal(str(file), None, ())
    schema.version_of(connection, str(file))
    there = schema.brokers.c
    rows = connection.execute(select(there.name, there.head)).all()
    if not rows:
        raise NoSuchJournal(str(file), None, ())
    return {from_column(name): head for name, head in rows}


def _heads_if_readable(file: Path) -> dict[str, int]:
    """The same of a store that may be damaged: that is why it is to be replaced."""
    with contextlib.suppress(StoreError):
        return _heads(file)
    return {}


def _told(heads: Mapping[str, int]) -> str:
    return "".join(f", with the journal of {name} up to {head:,}" for name, head in heads.items())


@contextlib.contextmanager
def _reading(file: Path) -> Iterator[Connection]:
    """A connection that sees one moment."""
    backend = backend_of(f"sqlite:///{file}", writes=False)
    try:
        with backend.reader() as connection, connection.begin():
            yield connection
    except SQLAlchemyError as problem:
        raise refusal(backend, problem) from None


def _require_same_broker(store: Path, name: str) -> None:
    owners = _heads_if_readable(store)
    if owners and name not in owners:
        raise WrongBroker(str(store), name, next(iter(owners)))


# Writing


@contextlib.contextmanager
def _locked(url: str, broker: str) -> Iterator[None]:
    """Be the only one at a store, whether there is one or not. Raises `StoreInUse`."""
    store = _path_of(url)
    was_there = store.exists()
    backend = backend_of(url)
    backend.lock(broker)
    try:
        yield
    finally:
        backend.unlock()
        if not was_there and store.exists() and not store.stat().st_size:
            store.unlink()  # it was made to be locked


@contextlib.contextmanager
def _part_of(file: Path) -> Iterator[Path]:
    """Where to write a file until it is complete; for its owner's eyes only. Raises `CopyRefused`."""
    part = file.with_name(file.name + _PART)
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield part
    except OSError as problem:
        raise CopyRefused(str(file), sentence(problem.strerror)) from None
    finally:
        for suffix in ("", *LOG_SUFFIXES):
            with contextlib.suppress(OSError):
                Path(f"{part}{suffix}").unlink(missing_ok=True)


def _copy(source: Path, part: Path, told: Told) -> dict[str, int]:
    """Copy what is in a file at one moment to another one, which has no log of its own then."""
    target = sqlite3.connect(part, isolation_level=None)
    try:
        target.execute("PRAGMA synchronous = OFF")  # it is synced once, in the end
        with _reading(source) as connection:
            heads = _heads_of(connection, source)  # from here on it is that moment
            driver: Any = connection.connection.driver_connection
            driver.backup(
                target, pages=_PAGES, progress=lambda _, left, total: told("pages", total - left, total)
            )
        target.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as problem:
        raise CopyRefused(str(part).removesuffix(_PART), sentence(problem)) from None
    finally:
        target.close()
    return heads


def _mark(part: Path, copy: Path) -> None:
    """Let who opens it next know that it is a copy; one of an earlier version is migrated for that."""
    backend = backend_of(f"sqlite:///{part}")
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    try:
        with contextlib.closing(backend.engine.connect()) as connection, connection.begin():
            schema.prepare(connection, str(copy))
            connection.execute(
                schema.brokers.update().values(restored=to_column(f"{copy.absolute()} on {when}"))
            )
    except SQLAlchemyError as problem:
        raise refusal(backend, problem) from None


def _move_aside(store: Path, moved: Path) -> None:
    """Give a store another name, with its log, which nothing else must be opened with."""
    for suffix in LOG_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{store}{suffix}", f"{moved}{suffix}")
    os.rename(store, moved)


def _put_in_place(part: Path, file: Path) -> None:
    """Sync what was written, and give it its name, which is synced, too."""
    _sync(part)
    os.replace(part, file)
    _sync(file.parent)


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
