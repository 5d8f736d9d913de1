"""Retention holds: readers of this broker's journal that are no subscriptions, such as a lake.

Each says up to where it has everything, and what follows is kept for it, also from one life of the broker
to the next. The store has these facts, too, and trims beyond none of them, whoever asks: so a reader that
has the store, but not the broker, may write its own there; the broker hears of it when it begins anew.

What somebody has of the journal as it was before the disk came back older is none of what this one has beyond
the fork, whatever its sequences: it holds the journal from the fork on. Of which journal it is may not be said.
If it is beyond all that was ever numbered here, it holds what it held before.
"""

from __future__ import annotations

from dataclasses import dataclass

from palio.protocol.durable.journals import Held, Hold, JournalRange, JournalTrimmed, TrimJournal
from palio.protocol.durable.lineage import fork_point, with_ancestors
from palio.routing.durable.desk import Desk
from palio.routing.durable.facts import FactKind
from palio.routing.durable.origin.introduced import Introduced
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.durable.origin.retention import Retention


@dataclass(eq=False, repr=False)
class JournalHolds:
    """The holds on this journal, and what an operator wants to be trimmed."""

    _desk: Desk
    _journal: OriginJournal
    _retention: Retention
    _introduced: Introduced

    def hold(self, session: str, message: Hold) -> None:
        """Places, moves or ends the hold of a reader, which has read up to here."""
        value = None if message.sequence < 0 else self._shared(message)
        if value is None:
            self._journal.held.pop(message.reader, None)
        else:
            self._journal.held[message.reader] = value

        def saved() -> None:
            self._desk.answer(session, Held(message.number, self._range()))

        self._desk.save(FactKind.HELD.of(message.reader), value, saved)
        if self._desk.settings.keep or self._journal.readers:
            self._retention.trim()

    def _shared(self, message: Hold) -> int:
        """Up to where what a reader has is this journal; if that is not all, the disk came back older."""
        journal, sequence = self._journal, message.sequence
        if message.lineage:
            shared = fork_point(sequence, with_ancestors(message.lineage, journal.lineage), journal.lineage)
        elif sequence > journal.head:
            shared = journal.held.get(message.reader, journal.trimmed)
        else:
            shared = sequence
        if shared < sequence:
            self._retention.has_read_another(sequence)
        return shared

    def trim(self, session: str, message: TrimJournal) -> None:
        """Trims what nobody needs."""
        journal = self._journal
        before = journal.trimmed
        upto = journal.unneeded() if message.upto is None else min(journal.unneeded(), message.upto)
        if not message.dry:
            self._retention.trim_to(upto)
            upto = journal.trimmed
        missing = self._introduced.wanted()
        gone = 0 if message.dry and missing else max(0, upto - before)
        needed = {
            **{f"durable subscription {name}": at for name, at in journal.readers.items()},
            **{f"reader {name}": at for name, at in journal.held.items()},
        }
        by = sorted([(at, name) for name, at in needed.items() if at < journal.stored])
        answer = JournalTrimmed(
            message.number, self._range(), tuple([(name, at) for at, name in by]), missing, gone
        )
        self._desk.answer(session, answer)

    def _range(self) -> JournalRange:
        journal = self._journal
        return JournalRange(self._desk.broker, journal.trimmed, journal.stored, journal.lineage)
