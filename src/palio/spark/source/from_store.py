"""Journals of a store, read where they lie: SQLite on this machine, or PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from palio.protocol.durable.lineage import Lineage
from palio.spark.arrow import Batches
from palio.spark.errors import DataLoss
from palio.spark.source.journals import Journals, JournalStanding, Span, WantedEvents, require_same
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
        found = [(journal.range(), journal.lineage()) for journal in self._journals.values()]
        return [JournalStanding(one.broker, one.first - 1, one.last, lineage) for one, lineage in found]

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
        require_same(span, journal.lineage())

    def hold(self, reader: str, positions: Mapping[str, int], lineages: Mapping[str, Lineage]) -> None:
        """Of those that are not in this store nothing is said: they are held where they are."""
        for journal, sequence in positions.items():
            if journal in self._journals:
                hold(self._url, journal, reader, sequence, lineages.get(journal, ()))

    def close(self) -> None:
        for journal in self._journals.values():
            journal.close()
