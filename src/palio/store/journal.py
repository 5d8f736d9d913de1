"""`Journal`: what was published at a broker, for anybody who has its store: beside the broker, or without it.

It is read page by page, each in a transaction of its own, on a connection of its own that cannot write: neither
does a long reader keep the broker from tidying up, nor does the broker wait. What is seen is what was committed
when reading began, and all of it. A reader that is so slow that the journal is trimmed beneath it is told.
What is damaged is left out, logged, and listed in `damaged`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Self

import msgspec
from sqlalchemy import Connection, Row
from sqlalchemy.exc import SQLAlchemyError

from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.naming import event_name
from palio.protocol.durable.lineage import Lineage
from palio.store import schema
from palio.store.errors import JournalTrimmed, NoSuchJournal
from palio.store.lake.reading import Archive
from palio.store.opening import backend_of, find_broker, refusal
from palio.store.reading import DamagedRow, Entry, JournalSelection, StoredRow
from palio.store.records import lineage_in

log = logging.getLogger("palio.store")


class Range(msgspec.Struct, frozen=True):
    """Which sequences a journal has: all from `first` to `last`; none if `last` is smaller."""

    broker: str
    first: int
    last: int


def journals_in(url: str) -> list[str]:
    """The names of the brokers whose journals a store has. Raises what `Journal` raises."""
    try:
        with Journal(url) as journal:
            return [journal.broker]
    except NoSuchJournal as problem:
        if not problem.known:
            raise
        return list(problem.known)


class Journal:
    """The journal of one broker, to be read."""

    def __init__(self, url: str, broker: str | None = None, *, lake: str | None = None) -> None:
        """`broker` may be left out if there is one only. With a `lake`, what was trimmed is read there.

        Raises `WrongStoreUrl`, `NoSuchJournal`, `StoreTooNew`, `StoreTooOld`, `StoreCorrupt` or
        `StoreUnavailable`, and for a lake `WrongLake` or `MissingDependency`.
        """
        self._backend = backend_of(url, writes=False)
        self._store = self._backend.store
        self.damaged: dict[int, str] = {}  # sequences that were left out, and why
        try:
            self._connection = self._backend.reader()
        except SQLAlchemyError as problem:
            raise refusal(self._backend, problem) from None
        try:
            with self._transaction():
                self._broker, self.broker = find_broker(self._connection, self._store, broker)
            self._archive = None if lake is None else Archive(lake, self.broker)
        except PalioError:
            self.close()
            raise

    def lineage(self) -> Lineage:
        """Its lineage now: those of its openings that have brought something, and the last one."""
        with self._transaction() as connection:
            return lineage_in(connection, self._broker)

    def range(self) -> Range:
        """What there is now."""
        with self._transaction():
            standing = self._standing()
        return Range(self.broker, standing.trimmed + 1, standing.head)

    def read(
        self,
        filter: Filter | None = None,
        *,
        after: int = 0,
        upto: int | None = None,
        since: float = 0.0,
        until: float = math.inf,
    ) -> Iterator[Entry]:
        """What a filter selects, in order: after one sequence up to another, from one time on before another.

        Raises `JournalTrimmed` and what opening a store raises on the way, and of a lake `LakeError`.
        """
        wanted = filter or Filter.parse("true")
        selection = JournalSelection(self._broker, wanted, since, until)
        if self._archive is not None:
            self._archive.lineage = self.lineage()
        begun = False
        while True:
            with self._transaction() as connection:
                standing = self._standing()
                if not begun:
                    begun = True
                    upto = standing.head if upto is None else min(upto, standing.head)
                    after = after if self._archive is not None else max(after, standing.trimmed)
                trimmed = min(standing.trimmed, upto or 0)
                some: list[Entry] = []
                if after >= trimmed:
                    after = selection.pass_over(connection, after, upto or 0)
                    for page in islice(selection.read(connection, after, upto or 0), 1):
                        after, some = page.upto, page.entries
                        self._leave_out(page.damaged)
            if after < trimmed:
                if self._archive is None:
                    raise JournalTrimmed(self._store, after, standing.trimmed)
                for row in self._archive.read(wanted, after=after, upto=trimmed, since=since):
                    if row[1] < until:
                        yield Entry(*row)
                after = trimmed
            yield from some
            if after >= (upto or 0):
                return

    def rows(
        self,
        *,
        after: int,
        upto: int,
        since: float = 0.0,
        until: float = math.inf,
        limit: int,
        lossy: bool = False,
    ) -> Iterator[list[StoredRow]]:
        """All rows after one sequence up to another as they are stored, in lists of at most `limit`.

        Raises `JournalTrimmed` if some of them are gone, unless it is `lossy`.
        """
        selection = JournalSelection(self._broker, Filter.parse("true"), since, until)
        while after < upto:
            with self._transaction() as connection:
                standing = self._standing()
                if after < standing.trimmed and not lossy:
                    raise JournalTrimmed(self._store, after, standing.trimmed)
                after = selection.pass_over(connection, max(after, standing.trimmed), upto)
                after, rows = selection.stored(connection, after, upto, limit)
            if rows:
                yield rows

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """All that is read in it belongs to one moment."""
        try:
            with self._connection.begin():
                yield self._connection
        except SQLAlchemyError as problem:
            raise refusal(self._backend, problem) from None

    def _leave_out(self, damaged: list[DamagedRow]) -> None:
        for one in damaged:
            if one.sequence not in self.damaged:
                self.damaged[one.sequence] = one.reason
                name = event_name(self.broker, one.sequence)
                log.error("The event %r in %s is left out: %s", name, self._store, one.reason)

    def _standing(self) -> Row[Any]:
        table = schema.brokers
        return self._connection.execute(table.select().where(table.c.broker == self._broker)).one()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()
