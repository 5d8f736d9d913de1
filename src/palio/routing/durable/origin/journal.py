"""The journal of an origin: what was published here, numbered without gaps, and who still has to read it.

A publish is numbered and handed to the store; it is confirmed, and sent on into the network, only when it is
on disk. So no sequence that anybody has seen is ever given a second time, whenever this broker crashes.

A notification that has an id is published once: the same id by the same publisher, within the retention time
and among the last so many, is answered with the sequence of the first. Readers are the durable subscriptions of
the whole network; what one of them has not read is not trimmed. For each the journal knows its home, also on
disk, so that the readers of a home that is gone for good can be given up. What everyone has read is kept for
some time for those who look back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from palio.documents.reserved import KEY
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import Append, Recovered
from palio.routing.durable.facts import Fact, FactKind, values_of
from palio.routing.occurrences import PublishPart

# So many moments are remembered to know what is old enough to be trimmed: it is kept by that share longer.
MARKS = 256


class PendingPublish(msgspec.Struct):
    """A publish that waits for its confirmation: all up to `last` must be on disk.

    `sequences` are those of all of it, where they do not simply follow the first.
    """

    session: str
    number: int
    first: int
    last: int
    sequences: tuple[int, ...] = ()


class PublishedParts(msgspec.Struct):
    """A request whose notifications come in parts: what they are numbered so far, and why that is in vain."""

    sequences: list[int] = []
    count: int = 0  # how many of them are new
    failed: str = ""


class PublishedInVain(Exception):
    """All parts of a request have come, and one of them could not be written: why."""


class OriginJournal:
    """Sequence numbers, deduplication, confirmations and readers. The content itself is in the store."""

    def __init__(self, broker: str, recovered: Recovered, settings: DurableSettings) -> None:
        self._broker = broker
        self._retention = settings.retention
        self._remembered = settings.remembered
        self._keep = settings.keep
        self._marks: deque[tuple[float, int]] = deque()  # at some moments, how far the journal was
        self.head = self.stored = recovered.head
        self.trimmed = recovered.trimmed
        self.is_archived = recovered.archived  # what was trimmed can still be read
        self.lineage = recovered.lineage
        self._documents_after = recovered.last_time
        self.readers: dict[str, int] = {}
        # By others than durable subscriptions, see `journal_holds`.
        self.held = values_of(FactKind.HELD, recovered.facts)
        self._homes: dict[str, str] = {}
        self.stale: list[Fact] = []  # about readers that have another home by now; to be forgotten
        for fact, sequence in recovered.facts:
            if fact.kind is FactKind.READER:
                reader = fact.subject
                if reader in self.readers:
                    self.stale.append(self.fact(reader))
                self.readers[reader] = min(sequence, self.readers.get(reader, sequence))
                self._homes[reader] = fact.home
        self._recent: dict[tuple[str, str], int] = {}
        self._ages: deque[tuple[float, str, str]] = deque()
        for publisher, id, sequence, time in recovered.recent:
            self._remember(publisher, id, sequence, time)
        self._appending: dict[int, tuple[Envelope, ...]] = {}  # by token, in the order of their sequences
        self._requests: deque[PendingPublish] = deque()
        self.parts: dict[str, PublishedParts] = {}  # by session

    def publish(
        self, session: str, message: PublishPart, now: float, token: int, publisher: str
    ) -> Append | None:
        """Deduplicates and numbers notifications. Returns what to append; nothing if all are known.

        Raises `PublishedInVain` with the last part of a request, if an earlier one could not be written.
        """
        self._forget_old(now)
        parts = self.parts.pop(session, None) or PublishedParts()
        if not message.last:
            self.parts[session] = parts
        if parts.failed:
            if message.last:
                raise PublishedInVain(parts.failed)
            return None
        fresh: list[Envelope] = []
        sequences, broker, recent = parts.sequences, self._broker, self._recent
        for notification in message.notifications:
            id = notification.body.id
            known = recent.get((publisher, id)) if id is not None else None
            if known is None:
                self.head = known = self.head + 1
                time = now
                if now < self._documents_after and KEY in notification.attributes:
                    time = self._documents_after  # versions of documents are told apart by their times
                fresh.append(Envelope(broker, known, time, 0, broker, notification))
                if id is not None:
                    self._remember(publisher, id, known, now)
            sequences.append(known)
        parts.count += len(fresh)
        if sequences and message.last:
            first, last = sequences[0], max(sequences)
            # Some of it may have been known, under other numbers.
            plain = parts.count in (0, len(sequences)) and last - first + 1 == len(sequences)
            given = () if plain else tuple(sequences)
            self._requests.append(PendingPublish(session, message.number, first, last, given))
        if not fresh:
            return None
        envelopes = tuple(fresh)
        self._appending[token] = envelopes
        return Append(token, envelopes, publisher)

    def knows(self, publisher: str, notifications: Iterable[Notification]) -> bool:
        """Whether all of these are here already, or on their way to the disk."""
        return all((publisher, one.body.id) in self._recent for one in notifications)

    def is_appending(self, token: int) -> bool:
        return token in self._appending

    def appended(self, token: int) -> tuple[Envelope, ...]:
        """Handles an append that is on disk. Returns what can be forwarded."""
        assert token == next(iter(self._appending)), "The store completes appends in their order."
        envelopes = self._appending.pop(token)
        self.stored = envelopes[-1].sequence
        return envelopes

    def failed(self, token: int, reason: str) -> list[PendingPublish]:
        """Handles that an append failed, and all after it. Returns the requests that are not carried out."""
        for parts in self.parts.values():
            if max(parts.sequences, default=0) > self.stored:
                parts.failed = reason
        self._appending.clear()
        self.head = self.stored
        self._recent = {key: known for key, known in self._recent.items() if known <= self.stored}
        # What is sent again is remembered from then on, and not from the time of the first attempt.
        self._ages = deque([age for age in self._ages if age[1:] in self._recent])
        refused = [request for request in self._requests if request.last > self.stored]
        self._requests = deque([request for request in self._requests if request.last <= self.stored])
        return refused

    def confirmed(self) -> list[PendingPublish]:
        """The requests of which all is on disk now, and so is all of those before them."""
        ended = []
        while self._requests and self._requests[0].last <= self.stored:
            ended.append(self._requests.popleft())
        return ended

    @property
    def begins(self) -> int:
        """The sequence after which something may be read."""
        return 0 if self.is_archived else self.trimmed

    def fact(self, reader: str) -> Fact:
        """What the store knows a reader by."""
        return FactKind.READER.of(reader, self._homes[reader])

    def register(self, reader: str, home: str) -> bool:
        """Registers a reader: all there is is kept for it. Returns whether it is new, or new at that home."""
        if self._homes.get(reader) == home:
            return False
        if reader in self.readers:
            self.stale.append(self.fact(reader))
        self.readers.setdefault(reader, self.trimmed)
        self._homes[reader] = home
        return True

    def at_home(self, home: str) -> list[str]:
        """The readers that have their home at a broker."""
        return [reader for reader, place in self._homes.items() if place == home]

    def progress(self, reader: str, sequence: int) -> bool:
        """Moves a reader forward. Returns whether that is news; who is not registered is no reader."""
        if sequence <= self.readers.get(reader, sequence):
            return False
        self.readers[reader] = sequence
        return True

    def forget(self, reader: str) -> Fact | None:
        """Removes a reader that has ended. Returns the fact to be forgotten, if there is one."""
        if self.readers.pop(reader, None) is None:
            return None
        fact = self.fact(reader)
        del self._homes[reader]
        return fact

    def behind(self) -> dict[str, int]:
        """The readers that have something to read, and how far they are."""
        return {reader: sequence for reader, sequence in self.readers.items() if sequence < self.stored}

    def trimmable(self, now: float) -> int:
        """Retention: up to where no reader needs anything, and nobody who looks back expects anything."""
        return min(self.unneeded(), self._old(now))

    def unneeded(self) -> int:
        """The sequence up to which nobody who is known to read needs anything."""
        return min([*self.readers.values(), *self.held.values(), self.stored])

    def _old(self, now: float) -> int:
        """Retention: the sequence up to which everything has been kept for long enough.

        Marks are made in memory and not more often than needed. After a restart there are none: then everything
        is kept for that long once more, which does no harm.
        """
        if not self._keep:
            return self.stored
        if not self._marks or now - self._marks[-1][0] >= self._keep / MARKS:
            self._marks.append((now, self.stored))
        while len(self._marks) > 1 and self._marks[1][0] <= now - self._keep:
            self._marks.popleft()
        moment, sequence = self._marks[0]
        return sequence if moment <= now - self._keep else self.trimmed

    def _remember(self, publisher: str, id: str, sequence: int, time: float) -> None:
        self._recent[publisher, id] = sequence
        self._ages.append((time, publisher, id))

    def _forget_old(self, now: float) -> None:
        oldest = now - self._retention
        while self._ages and (self._ages[0][0] < oldest or len(self._ages) > self._remembered):
            _, publisher, id = self._ages.popleft()
            self._recent.pop((publisher, id), None)
