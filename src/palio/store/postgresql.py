"""PostgreSQL: a database that several brokers may share.

The one writer of a broker is whoever holds an advisory lock, which lives as long as its connection. A broker
whose connection was lost takes the lock again, and then looks whether somebody else was there meanwhile.

The setting `sync` is `synchronous_commit`: "full" leaves what the server is configured for (on by default),
"normal" and "off" let the server confirm before it has written, which a crash of the server makes untrue.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from palio.store.backend import Backend, Kind, Rows, Sync, Trouble
from palio.store.errors import StoreInUse, StoreUnavailable, WrongStoreUrl, sentence
from palio.store.records import to_column

CONNECT_SECONDS = 5
_LOCKS = 0x50414C49  # "PALI": the first of the two numbers of our advisory locks
_SCHEMA_LOCK = 0

_APPEND = (
    "INSERT INTO palio_journal (broker, sequence, time, publisher, id, body) VALUES (%s, %s, %s, %s, %s, %s)"
)
_PUT = (
    "INSERT INTO {} (subscription, delivery, attempts, envelope) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (subscription, delivery) DO UPDATE "
    "SET attempts = excluded.attempts, envelope = excluded.envelope"
)
_DROP = "DELETE FROM {} WHERE subscription = %s AND delivery = %s"


class Postgresql(Backend):
    """A database on a server."""

    def __init__(self, url: URL, sync: Sync, *, writes: bool = True) -> None:
        self.store = url.render_as_string(hide_password=True)
        self._broker = ""
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
                cursor.execute("SELECT set_config('application_name', %s, false)", (f"palio {os.getpid()}",))
                if not writes:
                    cursor.execute("SET default_transaction_read_only = on")
                elif sync != "full":
                    cursor.execute("SET synchronous_commit = off")
            connection.commit()

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

    def connect(self) -> Connection:
        if self._locked is not None:
            connection, self._locked = self._locked, None
            return connection
        return self._connect_alone()

    def reader(self) -> Connection:
        return self.engine.connect().execution_options(isolation_level="REPEATABLE READ")

    def _connect_alone(self) -> Connection:
        connection = self.engine.connect()
        try:
            alone = connection.execute(
                text("SELECT pg_try_advisory_lock(:ours, hashtext(:broker))"),
                {"ours": _LOCKS, "broker": to_column(self._broker)},
            ).scalar_one()
            holder = None if alone else self._holder(connection)
            connection.commit()
        except BaseException:
            connection.close()
            raise
        if not alone:
            connection.close()
            raise StoreInUse(self.store, self._broker, holder)
        return connection

    def _holder(self, connection: Connection) -> str | None:
        found = connection.execute(
            text(
                "SELECT application_name, client_addr FROM pg_stat_activity JOIN pg_locks USING (pid) "
                "WHERE locktype = 'advisory' AND classid = :ours "
                "AND objid::bigint = hashtext(:broker)::bigint & 4294967295"
            ),
            {"ours": _LOCKS, "broker": to_column(self._broker)},
        ).first()
        if found is None:
            return None
        process = str(found.application_name).removeprefix("palio ")
        return f"process {process}" + (f" at {found.client_addr}" if found.client_addr else "")

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
            return Trouble(Kind.FULL, f"The disk of the store {self.store} is full.")
        if state == "25006" or state.startswith("53"):
            return Trouble(Kind.FULL, f"The store {self.store} cannot be written: {sentence(cause)}")
        lost = isinstance(problem, DBAPIError) and problem.connection_invalidated
        if lost or isinstance(problem, OperationalError) or state.startswith(("08", "40", "57")):
            return Trouble(Kind.AWAY, f"The store {self.store} cannot be reached: {sentence(cause)}")
        return Trouble(Kind.BROKEN, sentence(cause))

    def append(self, connection: Connection, rows: Rows) -> None:
        connection.exec_driver_sql(_APPEND, list(rows))

    def put(self, connection: Connection, table: str, rows: Rows) -> None:
        connection.exec_driver_sql(_PUT.format(table), list(rows))

    def drop(self, connection: Connection, table: str, rows: Rows) -> None:
        connection.exec_driver_sql(_DROP.format(table), list(rows))
