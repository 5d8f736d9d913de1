"""A database, as the store needs to know it: how to reach it alone (fencing), and what its errors mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec
from sqlalchemy import Connection, Engine, TextClause
from sqlalchemy.exc import SQLAlchemyError

from palio.model.errors import PalioError

Sync: TypeAlias = Literal["full", "normal", "off"]
Rows: TypeAlias = Sequence[tuple[Any, ...]]
Columns: TypeAlias = dict[str, Any]  # of a row, by name


class WriteFailure(Enum):
    """Kinds of failed writes, by what can be done about them."""

    FULL = "full"  # nothing can be added now: appends are refused at once, all else waits for room
    AWAY = "away"  # it cannot be reached, or used, for a moment: everything waits, and appends not for long
    BROKEN = "broken"  # trying again would be of no use


class Trouble(msgspec.Struct, frozen=True):
    """A failed write: what to do, and the sentence that people read."""

    kind: WriteFailure
    reason: str


class Backend(ABC):
    """A database. `store` is how it is called in sentences: without any password."""

    store: str
    engine: Engine

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a failed write can raise: SQLAlchemy's, the driver's own where it is used directly, and ours."""
        driver: Any = self.engine.dialect.dbapi
        return (SQLAlchemyError, driver.Error, PalioError)

    @abstractmethod
    def lock(self, broker: str) -> None:
        """Fencing: be the only one that writes for a broker. Raises `StoreInUse`."""

    @abstractmethod
    def unlock(self) -> None:
        """Release the lock: let others write."""

    @abstractmethod
    def require_in_place(self) -> None:
        """What was committed can be found again by who opens the store next. Raises `StoreReplaced`."""

    @abstractmethod
    def connect(self) -> Connection:
        """A connection for the one writer, who holds the lock for as long as the connection lives."""

    def is_connected(self, connection: Connection) -> bool:
        """Whether an idle connection for the one writer still lives; one to a file does."""
        return True

    @abstractmethod
    def reader(self) -> Connection:
        """A connection that only reads, and sees one moment in each transaction."""

    @abstractmethod
    def prepare(self, connection: Connection) -> None:
        """Keep others from creating or migrating tables meanwhile, before they are looked for."""

    @abstractmethod
    def claim(self, broker: str, others: Sequence[str]) -> None:
        """Let a broker that is not in the store begin there beside others. Raises `WrongBroker`."""

    @abstractmethod
    def trouble(self, problem: BaseException) -> Trouble:
        """What an error of the driver means."""

    # The statements that are carried out for every event, and those for every group

    def execute(self, connection: Connection, statement: TextClause, rows: Columns | Sequence[Columns]) -> int:
        """Carry out a statement for one row, or for each of several. Returns how many rows it changed."""
        return connection.execute(statement, rows).rowcount

    @abstractmethod
    def append(self, connection: Connection, rows: Rows, chain: int) -> None:
        """Append rows (broker, sequence, time, publisher, id, body, checksum); the last one has `chain`."""

    @abstractmethod
    def log(self, connection: Connection, rows: Rows) -> None:
        """Append rows to the operation log, with all columns of the table."""

    @abstractmethod
    def spool(self, connection: Connection, rows: Rows) -> None:
        """Add letters that are not there to the spool: subscription, delivery, attempts, envelope, checksum."""

    @abstractmethod
    def record(self, connection: Connection, rows: Rows) -> None:
        """Add or replace keyed records: broker, kind, key, value, event."""

    @abstractmethod
    def share(self, connection: Connection, rows: Rows) -> None:
        """Add letters that several deliveries share: broker, letter, envelope, checksum."""

    @abstractmethod
    def unshare(self, connection: Connection, broker: int, letters: Sequence[int]) -> None:
        """Remove such letters."""

    @abstractmethod
    def put(self, connection: Connection, table: str, rows: Rows) -> None:
        """Add or replace letters: subscription, delivery, attempts, envelope, checksum."""

    @abstractmethod
    def drop(self, connection: Connection, table: str, rows: Rows) -> None:
        """Remove letters: subscription, delivery."""
