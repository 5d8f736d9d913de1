"""From a URL to a database and a broker in it, and from what goes wrong there to an error people can read."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from palio.store import schema
from palio.store.backend import Backend, Sync, WriteFailure
from palio.store.errors import NoSuchJournal, StoreCorrupt, StoreError, StoreUnavailable, WrongStoreUrl
from palio.store.postgresql import Postgresql
from palio.store.records import from_column, to_column
from palio.store.sqlite import Sqlite


def backend_of(url: str, sync: Sync = "full", *, writes: bool = True, create: bool = True) -> Backend:
    """The database that a URL names. Raises `WrongStoreUrl`, and `StoreUnavailable` for a file that is not
    there and is not to be created.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise WrongStoreUrl(url, "This is no URL.") from None
    match parsed.drivername:
        case "sqlite":
            return Sqlite(parsed, sync, writes=writes, create=create)
        case "postgresql" | "postgresql+psycopg" | "postgres":
            return Postgresql(parsed, sync, writes=writes)
    raise WrongStoreUrl(parsed.render_as_string(hide_password=True), f"{parsed.drivername} is not known.")


def refusal(backend: Backend, problem: SQLAlchemyError) -> StoreError:
    """Why a store cannot be opened or read."""
    trouble = backend.trouble(problem)
    if trouble.kind is WriteFailure.BROKEN:
        return StoreCorrupt(backend.store, trouble.reason)
    return StoreUnavailable(backend.store, trouble.reason)


def find_broker(connection: Connection, store: str, broker: str | None) -> tuple[int, str]:
    """The number and the name of a broker in a store. Raises `NoSuchJournal`, and for its version."""
    if not inspect(connection).has_table(schema.version.name):
        raise NoSuchJournal(store, broker, ())
    schema.require_present(connection, store)
    rows = connection.execute(schema.brokers.select().order_by(schema.brokers.c.name)).all()
    found = [row for row in rows if broker is None or row.name == to_column(broker)]
    if len(found) != 1:
        raise NoSuchJournal(store, broker, tuple([from_column(row.name) for row in rows]))
    return found[0].broker, from_column(found[0].name)
