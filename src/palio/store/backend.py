"""What the store needs to know of a database: how to reach it alone, and what its errors mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec
from sqlalchemy import Connection, Engine

Sync: TypeAlias = Literal["full", "normal", "off"]
Rows: TypeAlias = Sequence[tuple[Any, ...]]


class Kind(Enum):
    """What can be done about a failed write."""

    FULL = "full"  # nothing can be added now: appends are refused at once, all else waits for room
    AWAY = "away"  # it cannot be reached, or used, for a moment: everything waits, and appends not for long
    BROKEN = "broken"  # trying again would be of no use


class Trouble(msgspec.Struct, frozen=True):
    """A failed write: what to do, and the sentence that people read."""

    kind: Kind
    reason: str


class Backend(ABC):
    """A database. `store` is how it is called in sentences: without any password."""

    store: str
    engine: Engine

    @abstractmethod
    def lock(self, broker: str) -> None:
        """Be the only one that writes for a broker. Raises `StoreInUse`."""

    @abstractmethod
    def unlock(self) -> None:
        """Let others write."""

    @abstractmethod
    def connect(self) -> Connection:
        """A connection for the one writer, who holds the lock for as long as the connection lives."""

    @abstractmethod
    def reader(self) -> Connection:
        """A connection that only reads, and sees one moment in each transaction."""

    @abstractmethod
    def prepare(self, connection: Connection) -> None:
        """Before tables are looked for: nobody else shall create or migrate them meanwhile."""

    @abstractmethod
    def claim(self, broker: str, others: Sequence[str]) -> None:
        """A broker that is not in the store wants to begin there beside others. Raises `WrongBroker`."""

    @abstractmethod
    def trouble(self, problem: BaseException) -> Trouble:
        """What an error of the driver means."""

    # The statements that are carried out for every event

    @abstractmethod
    def append(self, connection: Connection, rows: Rows) -> None:
        """Add to the journal: broker, sequence, time, publisher, id, body."""

    @abstractmethod
    def put(self, connection: Connection, table: str, rows: Rows) -> None:
        """Add or replace letters: subscription, delivery, attempts, envelope."""

    @abstractmethod
    def drop(self, connection: Connection, table: str, rows: Rows) -> None:
        """Remove letters: subscription, delivery."""
