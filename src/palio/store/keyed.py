"""Keyed records in a database: written in the transaction of the append that they belong to, read beside it.

A record has a kind, whose records are listed together, and a key. Keys are kept as bytes: both databases order
them as such, which is the order of code points, whatever their collations are.

The value of a record may be an event that was appended with it. Then the record names it by its sequence, and
whoever reads the record reads the event in the same moment. Before the event is swept, the record is given its
bytes, in the same transaction (`keep_named`). If the disk has lost or damaged the event, there is no such
record any more.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql import Select

from palio.routing.durable.effects import KeyedRecord
from palio.store import aside
from palio.store.backend import Backend
from palio.store.checksums import WRONG_CHECKSUM, is_intact
from palio.store.opening import backend_of, refusal
from palio.store.records import encode_event, to_column
from palio.store.schema import journal
from palio.store.schema import records as table

RecordChange: TypeAlias = bytes | int | None  # the value, the sequence of the event that is it, or nothing

_DROP = text("DELETE FROM palio_records WHERE broker = :broker AND kind = :kind AND key = :key")
_NAMED = (
    select(table.c.kind, table.c.key, table.c.event, journal.c.time, journal.c.body, journal.c.checksum)
    .join(journal, (journal.c.broker == table.c.broker) & (journal.c.sequence == table.c.event))
    .where(table.c.broker == bindparam("broker"), table.c.event <= bindparam("upto"))
)
_GIVE = text(
    "UPDATE palio_records SET value = :value, event = NULL "
    "WHERE broker = :broker AND kind = :kind AND key = :key"
)
_BEYOND = b"\xff"  # no text has this byte: what begins with a prefix is smaller than the prefix with it


def write(
    backend: Backend, connection: Connection, broker: int, changes: Mapping[tuple[str, str], RecordChange]
) -> None:
    """Put records of a broker, and remove those without a value."""
    puts: list[tuple[Any, ...]] = []
    drops = []
    for (kind, key), value in changes.items():
        if isinstance(value, int):
            puts.append((broker, to_column(kind), key.encode(), b"", value))
        elif value is not None:
            puts.append((broker, to_column(kind), key.encode(), value, None))
        else:
            drops.append({"broker": broker, "kind": to_column(kind), "key": key.encode()})
    if puts:
        backend.record(connection, puts)
    if drops:
        connection.execute(_DROP, drops)


def keep_named(connection: Connection, broker: int, name: str, upto: int) -> int:
    """Give the records that name events up to a sequence their bytes. Returns how many these are."""
    given = []
    for row in connection.execute(_NAMED, {"broker": broker, "upto": upto}).all():
        if _is_lost(row):
            aside.put_event(connection, broker, name, row.event, WRONG_CHECKSUM)
            continue
        value = encode_event(name, row.event, row.time, bytes(row.body))
        given.append({"broker": broker, "kind": row.kind, "key": row.key, "value": value})
    if given:
        connection.execute(_GIVE, given)
    return sum([len(one["value"]) for one in given])


def all_of(connection: Connection, broker: int, kind: str) -> tuple[KeyedRecord, ...]:
    """All records of a kind, in the order of their keys."""
    rows = connection.execute(_of(broker, kind).order_by(table.c.key))
    return tuple([KeyedRecord(kind, bytes(row.key).decode(), bytes(row.value)) for row in rows])


def _of(broker: int, kind: str) -> Select[Any]:
    return select(table.c.key, table.c.value).where(table.c.broker == broker, table.c.kind == to_column(kind))


def _is_lost(row: Any) -> bool:
    """Whether a record names an event that is not there, or not as it was written."""
    return row.event is not None and not (row.body and is_intact(row.event, row.body, row.checksum))


class KeyedReader:
    """Reads the records of a broker, in any thread, on a connection of its own that cannot write."""

    def __init__(self, url: str, broker: int, name: str) -> None:
        self._backend = backend_of(url, writes=False)
        self._broker = broker
        self._name = name
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def value(self, kind: str, key: str) -> bytes | None:
        """The value of a record. Raises `StoreUnavailable`."""
        rows = self._read(self._of(kind).where(table.c.key == key.encode()))
        return self._value(rows[0]) if rows and not _is_lost(rows[0]) else None

    def page(self, kind: str, prefix: str, after: str | None, limit: int) -> list[KeyedRecord]:
        """Some records, in the order of their keys. Raises `StoreUnavailable`."""
        wanted = self._of(kind).order_by(table.c.key)
        if prefix:
            beginning = prefix.encode()
            wanted = wanted.where(table.c.key >= beginning, table.c.key < beginning + _BEYOND)
        last = None if after is None else after.encode()
        page: list[KeyedRecord] = []
        while (asked := limit - len(page)) > 0:  # a page has fewer only if it is the last one
            rest = wanted if last is None else wanted.where(table.c.key > last)
            rows = self._read(rest.limit(asked))
            there = [row for row in rows if not _is_lost(row)]
            page += [KeyedRecord(kind, bytes(row.key).decode(), self._value(row)) for row in there]
            if len(rows) < asked:
                break
            last = bytes(rows[-1].key)
        return page

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _of(self, kind: str) -> Select[Any]:
        named = (journal.c.broker == table.c.broker) & (journal.c.sequence == table.c.event)
        event = table.c.event, journal.c.time, journal.c.body, journal.c.checksum
        found = select(table.c.key, table.c.value, *event).select_from(table.outerjoin(journal, named))
        return found.where(table.c.broker == self._broker, table.c.kind == to_column(kind))

    def _value(self, row: Any) -> bytes:
        if row.event is None:
            return bytes(row.value)
        return encode_event(self._name, row.event, row.time, bytes(row.body))

    def _read(self, wanted: Select[Any]) -> Sequence[Any]:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._backend.reader()
                with self._connection.begin():
                    return self._connection.execute(wanted).all()
            except SQLAlchemyError as problem:
                self._disconnect()  # the next one is tried on another connection
                raise refusal(self._backend, problem) from None

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
