"""The store of a broker: journal, durable subscriptions and their spools, in SQLite or PostgreSQL."""

from palio.store.contract import Store, StoreStatistics
from palio.store.errors import (
    JournalTrimmed,
    NoSuchJournal,
    StoreCorrupt,
    StoreError,
    StoreInUse,
    StoreReplaced,
    StoreTooNew,
    StoreTooOld,
    StoreUnavailable,
    WrongBroker,
    WrongStoreUrl,
)
from palio.store.journal import Journal, Range, journals_in
from palio.store.reading import Entry
from palio.store.sql import SqlStore

__all__ = [
    "Entry",
    "Journal",
    "JournalTrimmed",
    "NoSuchJournal",
    "Range",
    "SqlStore",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreInUse",
    "StoreReplaced",
    "StoreStatistics",
    "StoreTooNew",
    "StoreTooOld",
    "StoreUnavailable",
    "WrongBroker",
    "WrongStoreUrl",
    "journals_in",
]
