"""`CurrentDocuments`: the current documents of a broker, read from its store; for whoever may see them.

What was published here and what is kept of other brokers are two kinds of records, ordered by the same keys:
they are read side by side, and of each document the current version counts (`current`).

1. Nobody is shown what it may not subscribe to; it is not told that there is any, either.
2. A page has a bounded number of documents and bytes, and so has what is looked at for it. Where to go on is
   the key of the last record that was looked at.
3. Everything here waits for the disk: it runs in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol

import msgspec

from palio.documents.reserved import FAMILY
from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.routing.documents.current import KEPT, PUBLISHED, CurrentDocument, current_of, record_key
from palio.routing.durable.effects import KeyedRecord

# Records that are read at a time: the first few tell how large they are, then as many as have so many bytes.
_FIRST, _MOST, _BYTES = 16, 512, 1 << 20
# Documents and bytes of an answer, and documents that are looked at for it.
MOST_DOCUMENTS: Final = 1_000
PAGE_BYTES: Final = 4 << 20
LOOKED_AT: Final = 20_000


class KeyedRecords(Protocol):
    """Where keyed records are: a store, or the disk of a simulated broker."""

    def record(self, kind: str, key: str) -> bytes | None: ...

    def records(
        self, kind: str, *, prefix: str = "", after: str | None = None, limit: int = 1_000
    ) -> Sequence[KeyedRecord]: ...


class DocumentPage(msgspec.Struct, frozen=True):
    """Some documents, in the order of their families and keys, and after which record to go on."""

    documents: tuple[CurrentDocument, ...]
    onward: str | None


class CurrentDocuments:
    """Reads current documents from a store."""

    def __init__(self, store: KeyedRecords, complete: Callable[[Envelope], Envelope] = lambda one: one) -> None:
        """`complete` adds what an earlier state of its family has not read of a document."""
        self._store = store
        self._complete = complete

    def get(self, family: str, key: str) -> CurrentDocument | None:
        """The current version of a document, which may say that it was withdrawn. Raises `StoreUnavailable`."""
        found = self.at(record_key(family, key))
        return found if found is not None and found.name == (family, key) else None

    def select(
        self,
        wanted: Filter,
        allowed: Filter | None,
        after: str | None,
        limit: int,
        upto: Mapping[str, int] | None = None,
    ) -> DocumentPage:
        """Some of the current documents that a filter selects, without those that were withdrawn; and with
        `upto` without those that were published after a position.
        """
        found: list[CurrentDocument] = []
        size = 0
        for looked, (place, one) in enumerate(self.walk(prefix_of(wanted), after), 1):
            if one is not None and _is_within(one, upto) and selects(wanted, allowed, one):
                found.append(one)
                size += len(one.encoded)
            if len(found) >= limit or size >= PAGE_BYTES or looked >= LOOKED_AT:
                return DocumentPage(tuple(found), place)
        return DocumentPage(tuple(found), None)

    def at(self, record: str) -> CurrentDocument | None:
        """The current version of the document whose record is called so."""
        found = current_of(self._store.record(PUBLISHED, record), self._store.record(KEPT, record))
        return None if found is None else self.completed(found)

    def walk(self, prefix: str, after: str | None) -> Iterator[tuple[str, CurrentDocument | None]]:
        """All documents whose records begin so, after one of them: their records' keys, and what is current."""
        for key, found in self.published(prefix, after):
            yield key, None if found is None else self.completed(found)

    def completed(self, document: CurrentDocument) -> CurrentDocument:
        """With what an earlier state of its family has not read of it."""
        return document.completed(self._complete)

    def published(self, prefix: str, after: str | None) -> Iterator[tuple[str, CurrentDocument | None]]:
        """As `walk`, but as they were published."""
        own = (((record.key.encode(), 0), record) for record in self._records(PUBLISHED, prefix, after))
        kept = (((record.key.encode(), 1), record) for record in self._records(KEPT, prefix, after))
        for _, group in groupby(merge(own, kept, key=itemgetter(0)), lambda one: one[0][0]):
            both = {record.kind: record for _, record in group}
            key = next(iter(both.values())).key
            values = [both[kind].value if kind in both else None for kind in (PUBLISHED, KEPT)]
            yield key, current_of(*values)

    def _records(self, kind: str, prefix: str, after: str | None) -> Iterator[KeyedRecord]:
        limit = _FIRST
        while True:
            page = self._store.records(kind, prefix=prefix, after=after, limit=limit)
            yield from page
            if len(page) < limit:
                return
            after = page[-1].key
            limit = max(1, min(_MOST, limit * _BYTES // max(1, sum([record.size for record in page]))))


def _is_within(document: CurrentDocument, upto: Mapping[str, int] | None) -> bool:
    envelope = document.envelope
    return upto is None or envelope.sequence <= upto.get(envelope.origin, -1)


def selects(wanted: Filter, allowed: Filter | None, document: CurrentDocument) -> bool:
    """Whether it is a document that is there, wanted, and may be seen."""
    notification = document.envelope.notification
    return (
        not document.is_withdrawn
        and allowed is not None
        and wanted.matches(notification)
        and allowed.matches(notification)
    )


def prefix_of(wanted: Filter) -> str:
    """What the keys of all records begin with that a filter can select: the family, if it wants only one."""
    families = {conjunction.side(FAMILY).example() for conjunction in wanted.conjunctions}
    family = families.pop() if len(families) == 1 else None
    if not isinstance(family, str) or not Filter.template({FAMILY: family}).covers(wanted):
        return ""
    return f"{family}/"
