"""The operation log in a database: who has asked a broker for what, when, and what came of it.

1. A row lies in the transaction of what it tells, where that writes something: a publish that is in the journal
   has its row, one that was undone has none.
2. Numbers are dense and only grow. Each row has the bytes of all up to it (`total`), so how much is kept is the
   difference of two of them, and never has to be counted.
3. What is kept is bounded by time, counted back from the newest row, and by size. Each group of writes takes a
   few rows with it that are beyond the bounds, more than it adds; the newest row stays, whatever its age.
4. Times go back by `OUT_OF_ORDER` at the most, so rows of a time are found by halving (`operation_reading`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, text

from palio.routing.durable.effects import OUT_OF_ORDER, LogBounds, LoggedOperation
from palio.store.backend import Backend
from palio.store.records import to_column

# Rows that are deleted at a time: some milliseconds, as in `sweeping`.
MIN_SWEPT = 1_000
_OLDEST = text(
    "SELECT number, time, total FROM palio_operations WHERE broker = :broker AND number > :swept "
    "ORDER BY number LIMIT :most"
)
_NEWEST = text(
    "SELECT number, time, total FROM palio_operations WHERE broker = :broker ORDER BY number DESC LIMIT 1"
)
_DELETE = text("DELETE FROM palio_operations WHERE broker = :broker AND number <= :upto")


class LogStanding(msgspec.Struct, frozen=True):
    """How far the operation log is: the newest row, up to where rows are deleted, and bytes up to either."""

    number: int = 0
    total: int = 0
    time: float = 0.0
    swept: int = 0
    swept_total: int = 0
    oldest: float = 0.0  # time of the oldest row, or earlier


def standing_of(connection: Connection, broker: int) -> LogStanding:
    """How far the operation log on disk is."""
    newest = connection.execute(_NEWEST, {"broker": broker}).first()
    if newest is None:
        return LogStanding()
    oldest = connection.execute(_OLDEST, {"broker": broker, "swept": -1, "most": 1}).one()
    return LogStanding(newest.number, newest.total, newest.time, oldest.number - 1, oldest.total, oldest.time)


def write(
    backend: Backend,
    connection: Connection,
    broker: int,
    rows: Sequence[LoggedOperation],
    *,
    standing: LogStanding,
    bounds: LogBounds,
) -> LogStanding:
    """Append rows, and delete some that are beyond the bounds. Returns how far the log is then."""
    number, total, time = standing.number, standing.total, standing.time
    columns: list[tuple[Any, ...]] = []
    for row in rows:
        number += 1
        total += row.size
        came = max(row.time, time - OUT_OF_ORDER)  # 4; a clock may have been set back
        time = max(time, came)
        columns.append(
            (
                broker,
                number,
                came,
                row.binding,
                row.principal,
                to_column(row.session),
                row.kind,
                to_column(row.subject),
                row.bytes,
                row.result,
                to_column(row.reason),
                row.sequence,
                row.events,
                total,
            )
        )
    backend.log(connection, columns)
    oldest = standing.oldest if standing.number > standing.swept else columns[0][2]
    standing = LogStanding(number, total, time, standing.swept, standing.swept_total, oldest)
    if oldest >= time - bounds.keep and total - standing.swept_total <= bounds.size:
        return standing
    return _sweep(connection, broker, standing, bounds, max(MIN_SWEPT, 2 * len(rows)))


def _sweep(
    connection: Connection, broker: int, standing: LogStanding, bounds: LogBounds, most: int
) -> LogStanding:
    """Delete rows that are beyond the bounds, oldest first, some of them at the most."""
    wanted = {"broker": broker, "swept": standing.swept, "most": most}
    horizon, first = standing.time - bounds.keep, standing.total - bounds.size
    swept, swept_total, oldest = standing.swept, standing.swept_total, standing.oldest
    for row in connection.execute(_OLDEST, wanted):
        oldest = row.time
        if row.number == standing.number or (row.time >= horizon and row.total > first):
            break
        swept, swept_total = row.number, row.total
    if swept > standing.swept:
        connection.execute(_DELETE, {"broker": broker, "upto": swept})
    return msgspec.structs.replace(standing, swept=swept, swept_total=swept_total, oldest=oldest)
