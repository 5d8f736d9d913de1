"""The readers of this broker's journal on disk: who is written down, who waits for it, and what is trimmed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import SaveCursor, Trim
from palio.routing.durable.journal import Journal


class Readers:
    """Cursors, and what depends on them. `may_trim` is asked when there is something to trim."""

    def __init__(self, desk: Desk, journal: Journal, may_trim: Callable[[], bool]) -> None:
        self._desk = desk
        self._journal = journal
        self._may_trim = may_trim
        self._writing: set[str] = set()
        self._waiting: list[tuple[set[str], Callable[[], None]]] = []

    def register(self, reader: str, home: str) -> None:
        """Somebody reads this journal from now on, or has another home."""
        if self._journal.register(reader, home):
            self.save(reader, self._journal.cursor(reader), self._journal.readers[reader])

    def register_here(self, reader: str) -> int:
        """A new subscription at this home reads this journal from now on. Returns how far it is."""
        self.register(reader, self._desk.broker)
        return self._journal.stored  # what is being written may fail, and its numbers be given again

    def save(self, what: str, cursor: str, sequence: int) -> None:
        """Write a cursor for which others may wait, by what it stands for."""
        self._writing.add(what)
        self._desk.effects.append(SaveCursor(self._desk.token(partial(self._saved, what)), cursor, sequence))

    def when_saved(self, what: Iterable[str], then: Callable[[], None]) -> None:
        """Do something once all of this is on disk, which may be now."""
        missing = self._writing.intersection(what)
        if missing:
            self._waiting.append((missing, then))
        else:
            then()

    def _saved(self, what: str) -> None:
        self._writing.discard(what)
        self.drop_stale()
        waiting, self._waiting = self._waiting, []
        for missing, then in waiting:
            missing.discard(what)
            if missing:
                self._waiting.append((missing, then))
            else:
                then()

    def drop_stale(self) -> None:
        """Forget the cursors of readers that have another home by now."""
        stale, self._journal.stale = self._journal.stale, []
        for cursor in stale:
            self._desk.effects.append(SaveCursor(self._desk.token(), cursor, -1))

    def progress(self, positions: Iterable[tuple[str, int]]) -> None:
        """Readers are further."""
        for reader, sequence in positions:
            if self._journal.progress(reader, sequence):
                cursor = self._journal.cursor(reader)
                self._desk.effects.append(SaveCursor(self._desk.token(), cursor, sequence))
        self.trim()

    def end(self, reader: str) -> None:
        """Nothing is kept for a reader any more."""
        cursor = self._journal.forget(reader)
        if cursor is not None:
            self._desk.effects.append(SaveCursor(self._desk.token(), cursor, -1))

    def trim(self) -> None:
        """Let go what nobody needs any more."""
        self.trim_to(self._journal.trimmable(self._desk.now))

    def trim_to(self, upto: int) -> None:
        """Let go all up to a sequence, if everyone is known who could need it."""
        if upto > self._journal.trimmed and self._may_trim():
            self._journal.trimmed = upto
            self._desk.effects.append(Trim(upto))
