"""`SqlStore`: a store in a database. `contract` says what is promised, `schema` how it lies there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import KeyedRecord, LogBounds, Recovered, StoreEffect
from palio.store import aside, schema
from palio.store.backend import Sync
from palio.store.contract import (
    MOST_RECORDS,
    Broken,
    Completed,
    LakeStatistics,
    StoreStatistics,
    new_incarnation,
)
from palio.store.errors import StoreError
from palio.store.keyed import KeyedReader
from palio.store.lake.reading import Archive
from palio.store.lake_thread import LakeThread
from palio.store.opening import backend_of, find_broker, refusal
from palio.store.operation_reading import OperationPage, OperationQuery, OperationReader
from palio.store.queue import Queue
from palio.store.recovery import enter, recover
from palio.store.writer import Writer


class SqlStore:
    """A `Store` on SQLite or PostgreSQL. All but `completed` and `broken` happens in the caller's thread."""

    def __init__(self, url: str, writer: Writer, recovered: Recovered) -> None:
        self._backend = writer.backend
        self._queue = writer.queue
        self._writer = writer
        self._keyed = KeyedReader(url, writer.standing.broker, writer.standing.name)
        self._operations = OperationReader(url, writer.standing.name)
        self._recovered: Recovered | None = recovered

    @classmethod
    def open(
        cls,
        url: str,
        *,
        broker: str,
        completed: Completed,
        broken: Broken | None = None,
        sync: Sync = "full",
        retention: float = DurableSettings().retention,
        remembered: int = DurableSettings().remembered,
        lake: str | None = None,
        at_least: int = 0,
        log_bounds: LogBounds = LogBounds(),  # noqa: B008 (it is immutable)
        present: bool = False,
    ) -> SqlStore:
        """Open the store of a broker, and create or migrate it where needed; if it has to be `present`, a
        broker that is not in it is refused (`NoSuchJournal`, `StoreUnavailable`), and nothing is created.

        `completed` is called in the writer's thread with what was done: in the order in which it was
        submitted, but for appends that are refused early. `broken` is called when the store cannot go on.
        Of the ids of what was published, those within the `retention` time are recovered, and at most the
        last `remembered`. With the `lake` to which the journal is archived, what was trimmed is read there;
        of that `completed` is called in another thread, when it was read or could not be.
        The number of the opening is larger than those before that are on disk, and `at_least` this.
        A subscription or a letter that cannot be read is put aside (`aside`), and the store opens without it.
        Raises `WrongStoreUrl`, `StoreInUse`, `WrongBroker`, `StoreTooNew`, `StoreCorrupt`, `StoreUnavailable`,
        and for a lake `WrongLake` and `MissingDependency`.
        """
        archive = None if lake is None else Archive(lake, broker)
        backend = backend_of(url, sync, create=not present)
        backend.lock(broker)
        connection = None
        try:
            connection = backend.connect()
            with connection.begin():
                backend.prepare(connection)
                schema.prepare(connection, backend.store)
                if present:
                    find_broker(connection, backend.store, broker)
                entered = enter(backend, connection, broker, at_least, new_incarnation())
                recovered, kept, letters = recover(
                    connection, entered, backend.store, retention=retention, remembered=remembered
                )
                standing, incarnation = entered.standing, entered.incarnation
                set_aside = aside.count(connection, standing.broker)
        except BaseException as problem:
            if connection is not None:
                connection.close()
            backend.unlock()
            if isinstance(problem, SQLAlchemyError):
                raise refusal(backend, problem) from None
            raise
        if archive is not None:
            archive.lineage = entered.lineage
        lake_thread = None if archive is None else LakeThread(archive, broker, completed)
        recovered = msgspec.structs.replace(recovered, archived=archive is not None)
        writer = Writer(
            backend,
            connection,
            standing,
            kept,
            incarnation,
            retention,
            Queue(),
            completed,
            broken,
            lake_thread,
            set_aside,
            log_bounds,
            letters,
        )
        writer.thread.start()
        return cls(url, writer, recovered)

    def recovered(self) -> tuple[Recovered, int]:
        """What was on disk when the store was opened, and how often it has been. Kept until the first write."""
        if self._recovered is None:
            raise StoreError("What was on disk when the store was opened is not kept after the first write.")
        return self._recovered, self._writer.incarnation

    def submit(self, effects: Sequence[StoreEffect]) -> int:
        self._recovered = None
        if self._queue.closed:
            raise StoreError("The store is closed.")
        return self._queue.put(effects) if effects else 0

    @property
    def queued_bytes(self) -> int:
        return self._queue.bytes

    def record(self, kind: str, key: str) -> bytes | None:
        """The value of a keyed record, if there is one, as committed. Raises `StoreUnavailable`."""
        return self._keyed.value(kind, key)

    def records(
        self, kind: str, *, prefix: str = "", after: str | None = None, limit: int = MOST_RECORDS
    ) -> list[KeyedRecord]:
        """Keyed records of a kind by the order of their keys, as committed. Raises `StoreUnavailable`."""
        return self._keyed.page(kind, prefix, after, limit)

    def operations(self, wanted: OperationQuery, *, after: int, limit: int = MOST_RECORDS) -> OperationPage:
        """Rows of the operation log, oldest first, as committed. Raises `StoreUnavailable`."""
        return self._operations.page(wanted, after, limit)

    def last_operations(
        self, wanted: OperationQuery, *, before: int | None = None, limit: int = MOST_RECORDS
    ) -> OperationPage:
        """The last rows of the operation log, as committed. Raises `StoreUnavailable`."""
        return self._operations.page_back(wanted, before, limit)

    def statistics(self) -> StoreStatistics:
        writer, queue = self._writer, self._queue
        return StoreStatistics(
            writer.commits,
            writer.writes,
            writer.bytes,
            writer.refused,
            queue.effects,
            queue.bytes,
            queue.oldest(),
            writer.standing.head,
            writer.standing.trimmed,
            writer.standing.swept,
            writer.waiting,
            writer.last_error,
            writer.aside,
        )

    def lake_statistics(self) -> LakeStatistics | None:
        lake = self._writer.lake
        return None if lake is None else lake.statistics()

    def close(self, timeout: float | None = 30.0) -> bool:
        """Carry out all that was submitted, then close. False if that was not possible in time.

        Do not call it in the writer's thread. What the disk has no room for is lost, as in a crash.
        """
        self._queue.close()
        self._writer.thread.join(timeout)
        if self._writer.thread.is_alive():
            return False
        if self._writer.lake is not None:
            self._writer.lake.close()
        self._keyed.close()
        self._backend.unlock()
        return not self._writer.lost and self._writer.broken is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()
