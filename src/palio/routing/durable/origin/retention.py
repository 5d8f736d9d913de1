"""Retention: who reads this broker's journal, on disk; who waits for that; and what is trimmed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from palio.protocol.durable.letters import ReaderEnded
from palio.protocol.durable.lineage import Lineage, agrees
from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import Trim
from palio.routing.durable.facts import Fact
from palio.routing.durable.forks import JournalForks
from palio.routing.durable.origin.introduced import Introduced
from palio.routing.durable.origin.journal import OriginJournal


class Retention:
    """The facts about readers, and what is trimmed. Nothing is before all brokers are `introduced`."""

    def __init__(self, desk: Desk, journal: OriginJournal, introduced: Introduced, forks: JournalForks) -> None:
        self._desk = desk
        self._forks = forks
        self._journal = journal
        self._introduced = introduced
        self._writing: set[Fact] = set()
        self._waiting: list[tuple[set[Fact], Callable[[], None]]] = []

    @property
    def head(self) -> int:
        """How far the journal here is on disk."""
        return self._journal.stored

    def register(self, reader: str, home: str) -> None:
        """Registers a reader of this journal, or its new home."""
        if self._journal.register(reader, home):
            self.save(self._journal.fact(reader), self._journal.readers[reader])

    def register_here(self, reader: str) -> tuple[int, Lineage]:
        """Registers a new subscription at this home as a reader of this journal.

        Returns how far it is, and of which lineage that is a position.
        """
        self.register(reader, self._desk.broker)
        # What is being written may fail, and its numbers be given again.
        return self._journal.stored, self._journal.lineage

    def save(self, fact: Fact, value: int, then: Callable[[], None] | None = None) -> None:
        """Write a fact for which others may wait; `then` is called when it is on disk."""
        self._writing.add(fact)
        self._desk.save(fact, value, partial(self._saved, fact, then))

    def when_saved(self, facts: Iterable[Fact], then: Callable[[], None]) -> None:
        """Do something once all of these are on disk, which may be now."""
        missing = self._writing.intersection(facts)
        if missing:
            self._waiting.append((missing, then))
        else:
            then()

    def _saved(self, fact: Fact, saved: Callable[[], None] | None) -> None:
        if saved is not None:
            saved()
        self._writing.discard(fact)
        self.drop_stale()
        waiting, self._waiting = self._waiting, []
        for missing, then in waiting:
            missing.discard(fact)
            if missing:
                self._waiting.append((missing, then))
            else:
                then()

    def drop_stale(self) -> None:
        """Forgets that readers were at homes that they have left, once it is on disk where they are.

        A reader may be back at an earlier home before that: this is where it is, then, and not forgotten.
        """
        journal, waiting = self._journal, []
        for fact in dict.fromkeys(journal.stale):
            present = journal.fact(fact.subject) if fact.subject in journal.readers else None
            if present in self._writing:
                waiting.append(fact)
            elif fact != present:
                self._desk.save(fact, None)
        journal.stale = waiting

    def progress(self, positions: Iterable[tuple[str, int]], incarnation: str) -> None:
        """Handles progress of readers: they are further, if it is this journal that they have read."""
        for reader, sequence in positions:
            if self.compare(sequence, incarnation) and self._journal.progress(reader, sequence):
                self._desk.save(self._journal.fact(reader), sequence)
        self.trim()

    def compare(self, sequence: int, incarnation: str) -> bool:
        """Whether what somebody has read may be this journal; if not, it came back older than it was."""
        if agrees(sequence, incarnation, self._journal.lineage):
            return True
        self.has_read_another(sequence)
        return False

    def has_read_another(self, sequence: int) -> None:
        """Handles that somebody has read up to there what is not this journal: it came back older."""
        self.came_back_older()
        self._forks.own(self._journal.lineage, sequence)

    def came_back_older(self) -> None:
        """Handles that the disk here came back older: it may not know all readers any more.

        It trims nothing until it does: everyone has to be introduced again.
        """
        if not self._desk.came_back_older:
            self._desk.came_back_older = True
            self._introduced.forget(self._desk.broker)

    def end(self, reader: str) -> None:
        """Ends a reader: nothing is kept for it any more."""
        fact = self._journal.forget(reader)
        if fact is not None:
            self._desk.save(fact, None)

    def hear_end(self, sender: str, letter: ReaderEnded) -> None:
        self.end(letter.reader)
        self.trim()

    def read_at(self, home: str) -> tuple[int, int]:
        """How many readers are at a broker, and the sequence up to which all of them have read."""
        positions = [self._journal.readers[reader] for reader in self._journal.at_home(home)]
        return len(positions), min(positions, default=self._journal.stored)

    def end_all_at(self, home: str) -> None:
        """Ends the readers of a broker that is gone for good."""
        for reader in self._journal.at_home(home):
            self.end(reader)
        self.trim()

    def trim(self) -> None:
        """Trims what nobody needs any more."""
        self.trim_to(self._journal.trimmable(self._desk.now))

    def trim_to(self, upto: int) -> None:
        """Trims all up to a sequence, if everyone is known who could need it."""
        if upto > self._journal.trimmed and not self._introduced.wanted():
            self._journal.trimmed = upto
            self._desk.effects.append(Trim(upto))
