"""What a broker keeps: journal, durable subscriptions and their spools, in SQLite or PostgreSQL."""

from palio.store.errors import (
    NoSuchJournal,
    StoreCorrupt,
    StoreError,
    StoreInUse,
    StoreTooNew,
    StoreUnavailable,
    WrongBroker,
    WrongStoreUrl,
)
from palio.store.store import Statistics, Store

__all__ = [
    "NoSuchJournal",
    "Statistics",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreInUse",
    "StoreTooNew",
    "StoreUnavailable",
    "WrongBroker",
    "WrongStoreUrl",
]
