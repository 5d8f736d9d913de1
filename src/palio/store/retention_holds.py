"""Retention holds: readers that are no subscriptions say how far they are, and what follows is kept.

A reader that can speak to the broker asks it (`Client.hold`). One that has only the store writes the fact
itself, in a short transaction beside the broker's: the store looks at these facts whenever something is
trimmed. The broker learns of it at its next start; until then it may believe that more is trimmed than is.
Either way only what a reader has of the journal as it is now counts (`JournalHolds`).
"""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from palio.protocol.durable.lineage import Lineage, fork_point, with_ancestors
from palio.routing.durable.facts import FactKind
from palio.store import schema
from palio.store.errors import NoSuchJournal
from palio.store.opening import backend_of, refusal
from palio.store.records import fact_columns, from_column, lineage_in, to_column


def hold(url: str, broker: str, reader: str, sequence: int, lineage: Lineage = ()) -> None:
    """Places a hold on the journal of a broker, for a reader that has all up to a sequence; -1 ends that.

    With the `lineage` of the journal that was read, it holds up to where that is the one which is there.
    Raises `NoSuchJournal`, `StoreTooOld`, `StoreUnavailable` and what opening a store raises.
    """
    backend = backend_of(url)
    row = fact_columns(FactKind.HELD.of(reader))
    try:
        with backend.engine.connect() as connection, connection.begin():
            schema.require_present(connection, backend.store)
            number = _number(connection, backend.store, broker)
            statement = schema.PUT_FACT if sequence >= 0 else schema.DROP_FACT
            theirs = lineage_in(connection, number)
            shared = fork_point(sequence, with_ancestors(lineage, theirs), theirs)
            connection.execute(statement, row | {"broker": number, "value": shared})
    except SQLAlchemyError as problem:
        raise refusal(backend, problem) from None


def _number(connection: Connection, store: str, broker: str) -> int:
    rows = connection.execute(schema.brokers.select()).all()
    for row in rows:
        if row.name == to_column(broker):
            number: int = row.broker
            return number
    raise NoSuchJournal(store, broker, tuple([from_column(row.name) for row in rows]))
