"""From a URL to a database, and from what goes wrong there to an error that people can read."""

from __future__ import annotations

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from palio.store.backend import Backend, Sync, WriteFailure
from palio.store.errors import StoreCorrupt, StoreError, StoreUnavailable, WrongStoreUrl
from palio.store.postgresql import Postgresql
from palio.store.sqlite import Sqlite


def backend_of(url: str, sync: Sync = "full", *, writes: bool = True) -> Backend:
    """The database that a URL names. Raises `WrongStoreUrl`."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise WrongStoreUrl(url, "This is no URL.") from None
    match parsed.drivername:
        case "sqlite":
            return Sqlite(parsed, sync, writes=writes)
        case "postgresql" | "postgresql+psycopg" | "postgres":
            return Postgresql(parsed, sync, writes=writes)
    raise WrongStoreUrl(parsed.render_as_string(hide_password=True), f"{parsed.drivername} is not known.")


def refusal(backend: Backend, problem: SQLAlchemyError) -> StoreError:
    """Why a store cannot be opened or read."""
    trouble = backend.trouble(problem)
    if trouble.kind is WriteFailure.BROKEN:
        return StoreCorrupt(backend.store, trouble.reason)
    return StoreUnavailable(backend.store, trouble.reason)
