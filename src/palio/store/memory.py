"""`MemoryStore`: a store for tests, with the promises of one on disk. Its place outlives it, not the process.

What effects mean is said once, by the disk of the simulator; what waits is counted as in any store. There is no
thread: whoever opens it says how something is done soon, and each time all that waits then is carried out.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from time import time
from typing import TypeAlias

import msgspec

from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import (
    OUT_OF_ORDER,
    Append,
    KeyedRecord,
    LogBounds,
    LoggedOperation,
    Recovered,
    StoreEffect,
)
from palio.routing.occurrences import Stored
from palio.sim.faults.disk import Disk, RecordsOnDisk
from palio.store.contract import MOST_RECORDS, Completed, StoreStatistics, new_incarnation
from palio.store.errors import StoreError, StoreInUse
from palio.store.operation_reading import OperationPage, OperationQuery
from palio.store.queue import Queue, payload

Soon: TypeAlias = Callable[[Callable[[], None]], object]


class MemoryPlace:
    """Where a store in memory is: what there would be on a disk."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.incarnation = 0
        self.in_use = False
        self.operations: list[LoggedOperation] = []


class MemoryStore:
    """A `Store` in memory."""

    def __init__(
        self, place: MemoryPlace, recovered: Recovered, completed: Completed, soon: Soon, bounds: LogBounds
    ) -> None:
        self._bounds = bounds
        self._place = place
        self._recovered: Recovered | None = recovered
        self._completed = completed
        self._soon = soon
        self._queue = Queue()
        self._lock = threading.RLock()  # whoever has it carries out
        self._crashed = False
        self._commits = self._writes = self._bytes = 0

    @classmethod
    def open(
        cls,
        place: MemoryPlace,
        *,
        broker: str,
        completed: Completed,
        soon: Soon,
        retention: float = DurableSettings().retention,
        remembered: int = DurableSettings().remembered,
        at_least: int = 0,
        log_bounds: LogBounds = LogBounds(),  # noqa: B008 (it is immutable)
    ) -> MemoryStore:
        """Open the store of a broker. Raises `StoreInUse`.

        `soon` is given what is to be called in a moment, but not now. `completed`, `retention`,
        `remembered`, `at_least` and `log_bounds` are those of `SqlStore.open`.
        """
        if place.in_use:
            raise StoreInUse("in memory", broker, f"process {os.getpid()}")
        place.in_use = True
        place.incarnation = max(place.incarnation + 1, at_least)
        place.disk.open(place.incarnation, new_incarnation())
        place.disk.put_aside(broker, time())
        recovered = place.disk.recovered()
        horizon = place.disk.last_time - retention
        recent = [one for one in recovered.recent if one[-1] >= horizon]
        recovered = msgspec.structs.replace(recovered, recent=tuple(recent[-remembered:]))
        return cls(place, recovered, completed, soon, log_bounds)

    def recovered(self) -> tuple[Recovered, int]:
        """What there was when the store was opened, and how often it has been. Kept until the first write."""
        if self._recovered is None:
            raise StoreError("What was there when the store was opened is not kept after the first write.")
        return self._recovered, self._place.incarnation

    def submit(self, effects: Sequence[StoreEffect]) -> int:
        self._recovered = None
        if self._crashed:
            return 0  # whoever submits it is about to hear of the crash
        if self._queue.closed:
            raise StoreError("The store is closed.")
        if not effects:
            return 0
        size = self._queue.put(effects)
        self._soon(self.complete)
        return size

    @property
    def queued_bytes(self) -> int:
        return self._queue.bytes

    def complete(self) -> None:
        """Carry out all that waits, and tell."""
        with self._lock:
            while group := self._queue.take(0):
                answers = [self._place.disk.carry_out(effect) for effect in group]
                for effect, answer in zip(group, answers, strict=True):
                    if isinstance(effect, Append) and isinstance(answer, Stored):
                        self._log(effect.log)
                told = [answer for answer in answers if answer is not None]
                self._commits += 1
                self._writes += len(told)
                self._bytes += sum(map(payload, group))
                self._queue.finish()
                if told:
                    self._completed(told)

    def record(self, kind: str, key: str) -> bytes | None:
        with self._lock:
            return RecordsOnDisk(self._place.disk).record(kind, key)

    def records(
        self, kind: str, *, prefix: str = "", after: str | None = None, limit: int = MOST_RECORDS
    ) -> list[KeyedRecord]:
        with self._lock:
            return RecordsOnDisk(self._place.disk).records(kind, prefix=prefix, after=after, limit=limit)

    def _log(self, rows: Sequence[LoggedOperation]) -> None:
        kept = self._place.operations
        for row in rows:
            number = kept[-1].number + 1 if kept else 1
            newest = max([one.time for one in kept], default=row.time)
            kept.append(msgspec.structs.replace(row, number=number, time=max(row.time, newest - OUT_OF_ORDER)))
        beyond = sum(row.size for row in kept) - self._bounds.size
        newest = max([row.time for row in kept], default=0.0)
        while len(kept) > 1 and (beyond > 0 or kept[0].time < newest - self._bounds.keep):
            beyond -= kept.pop(0).size

    def operations(self, wanted: OperationQuery, *, after: int, limit: int = MOST_RECORDS) -> OperationPage:
        with self._lock:
            found = [row for row in self._place.operations if row.number > after and wanted.selects(row)]
        some = tuple(found[:limit])
        return OperationPage(some, some[-1].number if len(found) > limit else None)

    def last_operations(
        self, wanted: OperationQuery, *, before: int | None = None, limit: int = MOST_RECORDS
    ) -> OperationPage:
        with self._lock:
            kept = [row for row in self._place.operations if before is None or row.number < before]
        found = [row for row in kept if wanted.selects(row)]
        some = tuple(found[-limit:])
        return OperationPage(some, some[0].number if len(found) > limit else None)

    def statistics(self) -> StoreStatistics:
        disk, queue = self._place.disk, self._queue
        return StoreStatistics(
            commits=self._commits,
            writes=self._writes,
            bytes=self._bytes,
            refused=0,
            queued=queue.effects,
            queued_bytes=queue.bytes,
            oldest_waiting=queue.oldest(),
            head=disk.head,
            trimmed=disk.trimmed,
            swept=disk.trimmed,
            waiting=None,
            last_error=None,
        )

    def lake_statistics(self) -> None:
        """There is none."""

    def crash(self) -> None:
        """End as in a crash: what was not completed is lost."""
        with self._lock:
            self._crashed = True
            self._queue.close()
            while self._queue.take(0):
                self._queue.finish()
            self._place.in_use = False

    def close(self, timeout: float | None = None) -> bool:
        if not self._crashed:
            self._queue.close()
            self.complete()
            self._place.in_use = False
        return not self._crashed
