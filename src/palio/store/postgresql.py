"""PostgreSQL: a database that several brokers may share.

The one writer of a broker is whoever holds an advisory lock, which lives as long as its connection. A broker
whose connection was lost takes the lock again, and then looks whether somebody else was there meanwhile.

A connection may be lost at this end only: the server waits on, for minutes or hours, and so does the lock. So
each opening of a store has a word of its own, by chance, which its connections bear in their names. Who finds
the lock with that word has found itself: it ends the connection that nobody is at any more, and takes the lock
when the server has let it go; whatever was under way is committed by then, or gone. The lock of anybody else,
be it of the same machine or process, is left alone.

The setting `sync` is `synchronous_commit`: "full" leaves what the server is configured for (on by default),
"normal" and "off" let the server confirm before it has written, which a crash of the server makes untrue.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from palio.store.backend import Backend, Rows, Sync, Trouble, WriteFailure
from palio.store.errors import StoreInUse, StoreUnavailable, WrongStoreUrl, sentence
from palio.store.records import to_column
from palio.store.schema import operations

log = logging.getLogger("palio.store")

CONNECT_SECONDS = 5
# How long the server may take to end a connection; after that it is away, as far as we are concerned.
END_SECONDS = 10.0
_PAUSE = 0.05
_ALONE = "alone"  # what a connection is told to be that has the lock
_LOCKS = 0x50414C49  # "PALI": the first of the two numbers of our advisory locks
_SCHEMA_LOCK = 0

# A group is one statement a table, whatever its size: what is new by COPY, the rest as one array a column.
_APPEND = (
    "COPY palio_journal (broker, sequence, time, publisher, id, body, checksum, chain) "
    "FROM STDIN (FORMAT BINARY)"
)
_APPEND_TYPES = ("int8", "int8", "float8", "text", "text", "bytea", "int8", "int8")
_SPOOL = "COPY palio_spool (subscription, delivery, attempts, envelope, checksum) FROM STDIN (FORMAT BINARY)"
_SPOOL_TYPES = ("int8", "int8", "int8", "bytea", "int8")
_RECORD = (
    "INSERT INTO palio_records (broker, kind, key, value, event) "
    "SELECT * FROM unnest(%s::int8[], %s::text[], %s::bytea[], %s::bytea[], %s::int8[]) "
    "ON CONFLICT (broker, kind, key) DO UPDATE SET value = excluded.value, event = excluded.event"
)
_SHARE = "COPY palio_letters (broker, letter, envelope, checksum) FROM STDIN (FORMAT BINARY)"
_SHARE_TYPES = ("int8", "int8", "bytea", "int8")
_UNSHARE = "DELETE FROM palio_letters WHERE broker = %s AND letter = ANY(%s::int8[])"
_LOG = f"COPY palio_operations ({', '.join(operations.columns.keys())}) FROM STDIN (FORMAT BINARY)"
_LOG_TYPES = tuple(
    [{int: "int8", float: "float8"}.get(one.type.python_type, "text") for one in operations.columns]
)
_PUT = (
    "INSERT INTO {} (subscription, delivery, attempts, envelope, checksum) "
    "SELECT * FROM unnest(%s::int8[], %s::int8[], %s::int8[], %s::bytea[], %s::int8[]) "
    "ON CONFLICT (subscription, delivery) DO UPDATE "
    "SET attempts = excluded.attempts, envelope = excluded.envelope, checksum = excluded.checksum"
)
_DROP = (
    "DELETE FROM {} AS kept USING unnest(%s::int8[], %s::int8[]) AS gone (subscription, delivery) "
    "WHERE kept.subscription = gone.subscription AND kept.delivery = gone.delivery"
)


class Postgresql(Backend):
    """A database on a server."""

    def __init__(self, url: URL, sync: Sync, *, writes: bool = True) -> None:
        self.store = url.render_as_string(hide_password=True)
        self._broker = ""
        self._name = f"palio {os.getpid()} {secrets.token_hex(8)}"
        self._locked: Connection | None = None
        try:
            self.engine = create_engine(
                url.set(drivername="postgresql+psycopg"),
                poolclass=NullPool,
                connect_args={
                    "connect_timeout": CONNECT_SECONDS,
                    # A server that has vanished without a word is noticed.
                    "keepalives_idle": 10,
                    "keepalives_interval": 5,
                    "keepalives_count": 3,
                    "tcp_user_timeout": 20_000,
                },
            )
        except ModuleNotFoundError:
            raise WrongStoreUrl(
                self.store, "The driver is not installed (pip install 'palio[postgresql]')."
            ) from None

        @event.listens_for(self.engine, "connect")
        def connected(connection: Any, record: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('application_name', %s, false)", (self._name,))
                if not writes:
                    cursor.execute("SET default_transaction_read_only = on")
                elif sync != "full":
                    cursor.execute("SET synchronous_commit = off")
            connection.commit()

        @event.listens_for(self.engine, "close")
        def closing(connection: Any, record: Any) -> None:
            # The server notices a closed connection a moment later, and lets go of its lock only then.
            if record.info.get(_ALONE) and not connection.broken:
                with suppress(connection.Error):
                    connection.execute("SELECT pg_advisory_unlock_all()")

    def lock(self, broker: str) -> None:
        self._broker = broker
        try:
            self._locked = self._connect_alone()
        except OperationalError as problem:
            raise StoreUnavailable(self.store, sentence(problem.orig)) from None

    def unlock(self) -> None:
        if self._locked is not None:
            self._locked.close()
            self._locked = None

    def require_in_place(self) -> None:
        pass  # the server has its files in its care

    def connect(self) -> Connection:
        if self._locked is not None:
            connection, self._locked = self._locked, None
            return connection
        return self._connect_alone()

    def reader(self) -> Connection:
        return self.engine.connect().execution_options(isolation_level="REPEATABLE READ")

    def is_connected(self, connection: Connection) -> bool:
        try:
            with connection.begin():
                connection.execute(text("SELECT 1"))
        except DBAPIError:
            return False
        return True

    def _connect_alone(self) -> Connection:
        connection = self.engine.connect()
        try:
            until = time.monotonic() + END_SECONDS
            while not self._is_alone(connection):
                found = self._holder(connection)
                late = time.monotonic() > until
                if late if found is None else found.application_name != self._name:
                    raise StoreInUse(self.store, self._broker, _told(found))
                if late:
                    driver: Any = self.engine.dialect.dbapi
                    raise driver.OperationalError("it does not end a connection that this broker has lost")
                if found is not None:
                    log.warning("Ending an own connection to %s that was lost.", self.store)
                    connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": found.pid})
                connection.commit()
                time.sleep(_PAUSE)
            connection.commit()
            connection.info[_ALONE] = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_alone(self, connection: Connection) -> bool:
        alone: bool = connection.execute(
            text("SELECT pg_try_advisory_lock(:ours, hashtext(:broker))"),
            {"ours": _LOCKS, "broker": to_column(self._broker)},
        ).scalar_one()
        return alone

    def _holder(self, connection: Connection) -> Any:
        """Who has the lock, if anybody; the table of activity is read anew in each transaction."""
        return connection.execute(
            text(
                "SELECT pid, application_name, client_addr FROM pg_stat_activity JOIN pg_locks USING (pid) "
                "WHERE locktype = 'advisory' AND classid = :ours AND granted "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
                "AND objid::bigint = hashtext(:broker)::bigint & 4294967295"
            ),
            {"ours": _LOCKS, "broker": to_column(self._broker)},
        ).first()

    def prepare(self, connection: Connection) -> None:
        connection.execute(
            text("SELECT pg_advisory_xact_lock(:ours, :schema)"), {"ours": _LOCKS, "schema": _SCHEMA_LOCK}
        )

    def claim(self, broker: str, others: Sequence[str]) -> None:
        pass

    def trouble(self, problem: BaseException) -> Trouble:
        cause = problem.orig if isinstance(problem, DBAPIError) else problem
        state = getattr(cause, "sqlstate", None) or ""
        if state == "53100":
            return Trouble(WriteFailure.FULL, f"The disk of the store {self.store} is full.")
        if state == "25006" or state.startswith("53"):
            return Trouble(WriteFailure.FULL, f"The store {self.store} cannot be written: {sentence(cause)}")
        lost = isinstance(problem, DBAPIError) and problem.connection_invalidated
        driver: Any = self.engine.dialect.dbapi
        if lost or isinstance(cause, driver.OperationalError) or state.startswith(("08", "40", "57")):
            return Trouble(WriteFailure.AWAY, f"The store {self.store} cannot be reached: {sentence(cause)}")
        return Trouble(WriteFailure.BROKEN, sentence(cause))

    def append(self, connection: Connection, rows: Rows, chain: int) -> None:
        linked = [*[(*row, None) for row in rows[:-1]], (*rows[-1], chain)]
        _copy(connection, _APPEND, _APPEND_TYPES, linked)

    def log(self, connection: Connection, rows: Rows) -> None:
        _copy(connection, _LOG, _LOG_TYPES, rows)

    def spool(self, connection: Connection, rows: Rows) -> None:
        _copy(connection, _SPOOL, _SPOOL_TYPES, rows)

    def record(self, connection: Connection, rows: Rows) -> None:
        connection.exec_driver_sql(_RECORD, _columns(rows))

    def share(self, connection: Connection, rows: Rows) -> None:
        _copy(connection, _SHARE, _SHARE_TYPES, rows)

    def unshare(self, connection: Connection, broker: int, letters: Sequence[int]) -> None:
        connection.exec_driver_sql(_UNSHARE, (broker, [*letters]))

    def put(self, connection: Connection, table: str, rows: Rows) -> None:
        connection.exec_driver_sql(_PUT.format(table), _columns(rows))

    def drop(self, connection: Connection, table: str, rows: Rows) -> None:
        connection.exec_driver_sql(_DROP.format(table), _columns(rows))


def _told(holder: Any) -> str | None:
    if holder is None or holder.application_name is None:  # it is not shown to everybody
        return None
    process = str(holder.application_name).removeprefix("palio ").partition(" ")[0]
    return f"process {process}" + (f" at {holder.client_addr}" if holder.client_addr else "")


def _copy(connection: Connection, statement: str, types: Sequence[str], rows: Rows) -> None:
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def _columns(rows: Rows) -> tuple[list[Any], ...]:
    return tuple(map(list, zip(*rows, strict=True)))
