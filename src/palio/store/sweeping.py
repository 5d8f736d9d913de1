"""Sweeping, the second half of retention: rows of the journal that were trimmed are deleted, a few at a time.

A long delete would let every publish wait. Each group of writes therefore takes a few of the rows with it that
are nobody's any more, at least as many as it adds, and an idle writer takes the rest. The ids of what is
deleted stay as long as the same could be published again, and what deliveries and keyed records name of it is
written there (`letters`, 5; `keyed`).
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from palio.store import schema
from palio.store.transaction import StoreStanding, Transaction

# Rows that are deleted at a time: some milliseconds.
MIN_SWEPT = 1_000

_WHICH = "broker = :broker AND sequence > :swept AND sequence <= :upto"
_KEEP_IDS = text(
    "INSERT INTO palio_ids (broker, sequence, time, publisher, id) "
    f"SELECT broker, sequence, time, publisher, id FROM palio_journal WHERE {_WHICH} "
    "AND id IS NOT NULL AND time >= :horizon"
)
_DELETE = text(f"DELETE FROM palio_journal WHERE {_WHICH}")
_FIRST_ID = text("SELECT min(sequence) FROM palio_ids WHERE broker = :broker")
_FORGET_IDS = text("DELETE FROM palio_ids WHERE broker = :broker AND sequence < :upto AND time < :horizon")
_FORGET_SPANS = text("DELETE FROM palio_spans WHERE broker = :broker AND span < :span")


def sweep(
    connection: Connection,
    standing: StoreStanding,
    transaction: Transaction,
    retention: float,
    rows: int = MIN_SWEPT,
) -> int:
    """Delete some rows that were trimmed, in a transaction. Returns up to where none are left."""
    upto = min(transaction.trimmed, standing.swept + rows)
    if upto <= standing.swept:
        return standing.swept
    transaction.keep_named(standing.swept, upto)
    which = {
        "broker": standing.broker,
        "swept": standing.swept,
        "upto": upto,
        "horizon": standing.time - retention,
    }
    connection.execute(_KEEP_IDS, which)
    connection.execute(_DELETE, which)
    first = connection.execute(_FIRST_ID, which).scalar()
    if first is not None:
        connection.execute(_FORGET_IDS, which | {"upto": first + 2 * rows})
    connection.execute(_FORGET_SPANS, which | {"span": upto // schema.SPAN})
    return upto
