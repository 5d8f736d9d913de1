"""Journals of a store, read where they lie: SQLite on this machine, or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable

from palio.spark.arrow import Batches
from palio.spark.errors import DataLoss
from palio.spark.source.journals import Journals, JournalStanding, Span, WantedEvents
from palio.spark.source.rows import Damage, RowSelection, events_of
from palio.store import Journal, JournalTrimmed, journals_in
from palio.store.retention_holds import hold


class StoreJournals(Journals):
    """The journals in a store."""

    def __init__(self, url: str) -> None:
        """Raises what opening a store raises."""
        self._url = url
        self._journals = {name: Journal(url, name) for name in journals_in(url)}

    def standings(self, *, lossy: bool = False) -> list[JournalStanding]:
        ranges = [journal.range() for journal in self._journals.values()]
        return [JournalStanding(one.broker, one.first - 1, one.last) for one in ranges]

    def read(self, span: Span, wanted: WantedEvents, damage: Damage | None = None) -> Batches:
        journal = self._journals.get(span.journal) or Journal(self._url, span.journal)
        selection = RowSelection(wanted.filter)
        rows = journal.rows(
            after=span.after,
            upto=span.upto,
            since=wanted.since,
            until=wanted.until,
            limit=wanted.rows,
            lossy=wanted.lossy,
        )
        try:
            for some in rows:
                events = selection.select(events_of(span.journal, some, damage))
                if events.num_rows:
                    yield events
        except JournalTrimmed as problem:
            raise DataLoss(span.journal, problem.after + 1, problem.trimmed + 1) from None

    def hold(self, reader: str, positions: Iterable[tuple[str, int]]) -> None:
        for journal, sequence in positions:
            hold(self._url, journal, reader, sequence)

    def close(self) -> None:
        for journal in self._journals.values():
            journal.close()
