"""`Store`: what a broker needs of whatever keeps its journal, its durable subscriptions and its keyed records.

There are two: `SqlStore`, on SQLite or PostgreSQL, and `MemoryStore`, for tests, whose place in memory outlives
the broker as a disk would. One suite of tests runs on all of them. What each promises:

1. Effects are carried out in the order in which they were submitted, each of them wholly or not at all. That
   holds for an `Append` with events, keyed records and rows of the operation log, too: there are all of them,
   or none.
2. Each effect but `Trim` is answered once, by a message with its token, in that order; only appends that are
   refused, and reads in a lake, may be answered earlier or later. What is answered `Stored` is kept.
3. After a crash there is all that was answered, and of the rest a beginning, without gaps.
4. `submit` never waits and never answers before it returns. What waits is bounded by the caller, who looks at
   `queued_bytes`; what an answer is about no longer counts when the answer comes.
5. Answers may come in any thread.
6. `recovered` is what there was when the store was opened; each opening has a number of its own, and begins an
   incarnation in the lineage of the journal, which is kept before anything else is.
7. At most one is open for the same broker at the same place (`StoreInUse`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from palio.routing.durable.effects import KeyedRecord, Recovered, StoreEffect
from palio.routing.occurrences import StoreMessage
from palio.store.errors import StoreError
from palio.store.operation_reading import OperationPage, OperationQuery

Completed: TypeAlias = Callable[[list[StoreMessage]], None]
Broken: TypeAlias = Callable[[StoreError], None]

MOST_RECORDS = 1_000  # that are listed at once


def new_incarnation() -> str:
    """An id for an incarnation of a journal: 64 random bits, of which no journal will see the same twice."""
    return secrets.token_hex(8)


class StoreStatistics(msgspec.Struct, frozen=True):
    """How a store is doing. Counts are since it was opened; `queued` is what is not completed."""

    commits: int
    writes: int  # effects that were completed
    bytes: int  # of notifications, letters and records that were written
    refused: int  # appends
    queued: int
    queued_bytes: int
    oldest_waiting: float  # seconds
    head: int
    trimmed: int
    swept: int  # up to here, what was trimmed is deleted
    waiting: str | None  # why nothing can be written now
    last_error: str | None
    aside: int = 0  # what could not be read, now or before


class LakeStatistics(msgspec.Struct, frozen=True):
    """How reading the lake is going, since the store was opened."""

    pages: int
    events: int
    failures: int
    last_error: str | None


class Store(Protocol):
    """The disk of one broker, or what stands for it. It is opened by a class method of its implementation."""

    def recovered(self) -> tuple[Recovered, int]:
        """What there was when the store was opened, and how often it has been. Kept until the first write."""

    def submit(self, effects: Sequence[StoreEffect]) -> int:
        """Let effects be carried out, in order. Never waits. Returns about how many bytes they have.

        Raises `StoreError` when it is closed.
        """

    @property
    def queued_bytes(self) -> int:
        """About how many bytes are submitted and not completed: a broker stops reading when they are many."""

    def record(self, kind: str, key: str) -> bytes | None:
        """The value of a keyed record, if there is one. This and `records` see what is committed.

        Both wait for the disk: call them in a thread. They raise `StoreUnavailable`.
        """

    def records(
        self, kind: str, *, prefix: str = "", after: str | None = None, limit: int = MOST_RECORDS
    ) -> list[KeyedRecord]:
        """Keyed records of a kind whose keys begin with a text, ordered by the bytes of their keys.

        At most `limit`; the next page begins `after` the last key of this one.
        """

    def operations(self, wanted: OperationQuery, *, after: int, limit: int = MOST_RECORDS) -> OperationPage:
        """Rows of the operation log after a number that are wanted, oldest first.

        `onward` of what is returned is the number after which to go on; None if there is nothing more for now.
        This and the next wait for the disk as `record` does.
        """

    def last_operations(
        self, wanted: OperationQuery, *, before: int | None = None, limit: int = MOST_RECORDS
    ) -> OperationPage:
        """The last rows of the operation log before a number that are wanted, in their order.

        `onward` is the number before which to go on; None if there is nothing more.
        """

    def statistics(self) -> StoreStatistics:
        """Counts, and what waits."""

    def lake_statistics(self) -> LakeStatistics | None:
        """How reading the lake is going, where there is one."""

    def close(self, timeout: float | None = 30.0) -> bool:
        """Carry out all that was submitted, then close. False if that was not possible in time."""
