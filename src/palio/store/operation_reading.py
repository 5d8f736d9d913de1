"""Reading the operation log, beside a broker and without it: by whom, what, with which result, and when.

A look goes through a bounded number of rows, and says where the next one goes on, so a rare thing in a long log
keeps nobody waiting. Each look has a connection of its own, which cannot write, and sees what was committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, select
from sqlalchemy.exc import SQLAlchemyError

from palio.routing.durable.effects import OUT_OF_ORDER, LoggedOperation
from palio.store.opening import backend_of, find_broker, refusal
from palio.store.records import from_column
from palio.store.schema import operations as table

# Rows that one look goes through at the most: some tens of milliseconds.
MOST_SCANNED = 20_000


class OperationQuery(msgspec.Struct, frozen=True):
    """Which rows of an operation log are wanted: all that is said must hold, of several kinds one."""

    principal: str | None = None
    kinds: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None

    def selects(self, row: LoggedOperation) -> bool:
        """Whether a row is wanted."""
        return (
            self.principal in (None, row.principal)
            and (not self.kinds or row.kind in self.kinds)
            and (not self.results or row.result in self.results)
            and (not self.bindings or row.binding in self.bindings)
            and (self.since is None or row.time >= self.since)
            and (self.until is None or row.time < self.until)
        )


class OperationPage(msgspec.Struct, frozen=True):
    """Rows in the order of their numbers, and from where the next page goes on; None at the end."""

    rows: tuple[LoggedOperation, ...]
    onward: int | None


class OperationReader:
    """The operation log of one broker, in any thread."""

    def __init__(self, url: str, broker: str | None = None) -> None:
        """`broker` may be left out if there is one only. Raises what `Journal` raises."""
        self._backend = backend_of(url, writes=False)
        with self._looking() as connection:
            self._broker, self.broker = find_broker(connection, self._backend.store, broker)

    def page(self, wanted: OperationQuery, after: int, limit: int) -> OperationPage:
        """Rows after a number that are wanted, oldest first. Raises `StoreUnavailable`."""
        with self._looking() as connection:
            return _page(connection, self._broker, wanted, after, limit)

    def page_back(self, wanted: OperationQuery, before: int | None, limit: int) -> OperationPage:
        """The last rows before a number that are wanted; `onward` is before which to go on."""
        with self._looking() as connection:
            return _page_back(connection, self._broker, wanted, before, limit)

    def range(self) -> tuple[int, int]:
        """The first and the last number; (1, 0) if there are no rows."""
        with self._looking() as connection:
            return _ends(connection, self._broker)

    @contextmanager
    def _looking(self) -> Iterator[Connection]:
        """All that is read in it belongs to one moment."""
        try:
            with self._backend.reader() as connection, connection.begin():
                yield connection
        except SQLAlchemyError as problem:
            raise refusal(self._backend, problem) from None


def _page(connection: Connection, broker: int, wanted: OperationQuery, after: int, limit: int) -> OperationPage:
    """Rows after a number that are wanted, from one look: as many as there are to look at, or `limit`."""
    if wanted.since is not None:
        after = max(after, _first_from(connection, broker, wanted.since - OUT_OF_ORDER) - 1)
    first, last = _ends(connection, broker)
    after = max(after, first - 1)
    upto = min(last, after + MOST_SCANNED)
    chosen = select(table).where(*_conditions(broker, wanted), table.c.number > after, table.c.number <= upto)
    rows = connection.execute(chosen.order_by(table.c.number).limit(limit)).all()
    if len(rows) == limit:
        return OperationPage(tuple(map(_read, rows)), rows[-1].number)
    is_last = upto >= last or (
        wanted.until is not None and wanted.until + OUT_OF_ORDER <= _time_at(connection, broker, upto)
    )
    return OperationPage(tuple(map(_read, rows)), None if is_last else upto)


def _page_back(
    connection: Connection, broker: int, wanted: OperationQuery, before: int | None, limit: int
) -> OperationPage:
    """The last rows before a number that are wanted, in their order; `onward` is before which to go on."""
    first, last = _ends(connection, broker)
    if wanted.since is not None:
        first = max(first, _first_from(connection, broker, wanted.since - OUT_OF_ORDER))
    before = last + 1 if before is None else min(before, last + 1)
    if wanted.until is not None:
        before = min(before, _first_from(connection, broker, wanted.until + OUT_OF_ORDER))
    down = max(first, before - MOST_SCANNED)
    chosen = select(table).where(*_conditions(broker, wanted), table.c.number < before, table.c.number >= down)
    rows = connection.execute(chosen.order_by(table.c.number.desc()).limit(limit)).all()[::-1]
    if len(rows) == limit:
        return OperationPage(tuple(map(_read, rows)), rows[0].number)
    return OperationPage(tuple(map(_read, rows)), None if down <= first else down)


def _conditions(broker: int, wanted: OperationQuery) -> list[Any]:
    found: list[Any] = [table.c.broker == broker]
    if wanted.principal is not None:
        found.append(table.c.principal == wanted.principal)
    for column, values in (
        (table.c.kind, wanted.kinds),
        (table.c.result, wanted.results),
        (table.c.binding, wanted.bindings),
    ):
        if values:
            found.append(column.in_(values))
    if wanted.since is not None:
        found.append(table.c.time >= wanted.since)
    if wanted.until is not None:
        found.append(table.c.time < wanted.until)
    return found


def _ends(connection: Connection, broker: int) -> tuple[int, int]:
    """The first and the last number; (1, 0) if there are none."""
    of_broker = table.c.broker == broker
    first = connection.execute(select(func.min(table.c.number)).where(of_broker)).scalar()
    last = connection.execute(select(func.max(table.c.number)).where(of_broker)).scalar()
    return (1, 0) if first is None or last is None else (first, last)


def _time_at(connection: Connection, broker: int, number: int) -> float:
    """The time of the last row up to a number; of the first one, if there is none."""
    of_broker = table.c.broker == broker
    wanted = select(table.c.time).where(of_broker, table.c.number <= number)
    time = connection.execute(wanted.order_by(table.c.number.desc()).limit(1)).scalar()
    return float("-inf") if time is None else float(time)


def _first_from(connection: Connection, broker: int, time: float) -> int:
    """A number whose row is not older than a time, if any is, and the one before it is, if there is one.

    Since times are out of order by so much at the most, all rows before it are older than that later than the
    time, and it and all after it are not older than that before the time.
    """
    low, last = _ends(connection, broker)
    high = last + 1
    while low < high:
        middle = (low + high) // 2
        if _time_at(connection, broker, middle) < time:
            low = middle + 1
        else:
            high = middle
    return low


def _read(row: Row[Any]) -> LoggedOperation:
    return LoggedOperation(
        row.time,
        row.binding,
        row.principal,
        from_column(row.session),
        row.kind,
        from_column(row.subject),
        row.bytes,
        row.result,
        from_column(row.reason),
        row.sequence,
        row.events,
        row.number,
    )
