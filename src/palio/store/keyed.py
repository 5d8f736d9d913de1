"""Keyed records in a database: written in the transaction of the append that they belong to, read beside it.

A record has a kind, whose records are listed together, and a key. Keys are kept as bytes: both databases order
them as such, which is the order of code points, whatever their collations are.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql import Select

from palio.routing.durable.effects import KeyedRecord
from palio.store.backend import Backend
from palio.store.opening import backend_of, refusal
from palio.store.records import to_column
from palio.store.schema import records as table

_DROP = text("DELETE FROM palio_records WHERE broker = :broker AND kind = :kind AND key = :key")
_BEYOND = b"\xff"  # no text has this byte: what begins with a prefix is smaller than the prefix with it


def write(
    backend: Backend, connection: Connection, broker: int, changes: Mapping[tuple[str, str], bytes | None]
) -> None:
    """Put records of a broker, and remove those without a value."""
    puts: list[tuple[Any, ...]] = []
    drops = []
    for (kind, key), value in changes.items():
        if value is not None:
            puts.append((broker, to_column(kind), key.encode(), value))
        else:
            drops.append({"broker": broker, "kind": to_column(kind), "key": key.encode()})
    if puts:
        backend.record(connection, puts)
    if drops:
        connection.execute(_DROP, drops)


def all_of(connection: Connection, broker: int, kind: str) -> tuple[KeyedRecord, ...]:
    """All records of a kind, in the order of their keys."""
    rows = connection.execute(_of(broker, kind).order_by(table.c.key))
    return tuple([KeyedRecord(kind, bytes(row.key).decode(), bytes(row.value)) for row in rows])


def _of(broker: int, kind: str) -> Select[Any]:
    return select(table.c.key, table.c.value).where(table.c.broker == broker, table.c.kind == to_column(kind))


class KeyedReader:
    """Reads the records of a broker, in any thread, on a connection of its own that cannot write."""

    def __init__(self, url: str, broker: int) -> None:
        self._backend = backend_of(url, writes=False)
        self._broker = broker
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def value(self, kind: str, key: str) -> bytes | None:
        """The value of a record. Raises `StoreUnavailable`."""
        rows = self._read(self._of(kind).where(table.c.key == key.encode()))
        return bytes(rows[0].value) if rows else None

    def page(self, kind: str, prefix: str, after: str | None, limit: int) -> list[KeyedRecord]:
        """Some records, in the order of their keys. Raises `StoreUnavailable`."""
        wanted = self._of(kind).order_by(table.c.key).limit(limit)
        if prefix:
            beginning = prefix.encode()
            wanted = wanted.where(table.c.key >= beginning, table.c.key < beginning + _BEYOND)
        if after is not None:
            wanted = wanted.where(table.c.key > after.encode())
        return [KeyedRecord(kind, bytes(row.key).decode(), bytes(row.value)) for row in self._read(wanted)]

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _of(self, kind: str) -> Select[Any]:
        return _of(self._broker, kind)

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
