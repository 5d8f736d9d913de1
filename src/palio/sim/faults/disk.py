"""`Disk`: what a broker has written, and what is still on its way there.

Writes wait in one queue and reach the disk one after the other. A crash leaves the first few of those that
were not completed; whoever asked for them will never know how many. The one after them may be half written,
which counts as not written, since the store finds out. Each write is atomic by itself.

A disk can come back as it was at an earlier moment (`copied`), all of it together, as a file would.

Bits of it can flip at rest (`flip`): in events of the journal, and in deliveries that wait. Each row has a
checksum, as in the store: what is not what was written is noticed when it is read, and is not given out. Of
events the read tells which were left out; deliveries are named as a gap of their subscription.

A full disk refuses to append, and lets every other write wait until there is room, with all that comes after.

Where the journal is archived, what is trimmed goes to a lake, which is read up to the cut at the most, and
which at times cannot be read.
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter

import msgspec

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.attempts import Failures
from palio.protocol.durable.lineage import Incarnation, JournalGap, Lineage, begun, runs_of, with_gap
from palio.protocol.durable.retry import Retry
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import (
    Append,
    KeyedRecord,
    Read,
    Recovered,
    Remove,
    SaveFact,
    Spool,
    StoreEffect,
    Subscribed,
    Trim,
)
from palio.routing.durable.facts import Fact, FactKind
from palio.routing.occurrences import Failed, Found, Stored, StoreMessage
from palio.routing.sharing import KIND as SHARED

_encode = msgspec.msgpack.Encoder(enc_hook=attrgetter("body")).encode

Letter = tuple[int, Envelope]  # attempts, what
# Of so many reads in a lake one fails.
LAKE_FAILS = 7


class DiskSubscription(msgspec.Struct, eq=False):
    filter: Filter
    identity: str = ""
    generation: int = 0
    since: float = 0.0
    moving_to: str | None = None
    linger: float | None = None
    retry: Retry | None = None
    failures: dict[int, Failures] = {}
    position: dict[str, int] = {}
    spool: dict[int, Letter] = {}
    dead: dict[int, Letter] = {}
    next_delivery: int = 1
    lineages: dict[str, Lineage] = {}
    gaps: tuple[JournalGap, ...] = ()
    flipped: dict[int, Envelope] = {}  # of deliveries in the spool: what is there instead


def _copied(kept: DiskSubscription) -> DiskSubscription:
    return msgspec.structs.replace(
        kept,
        failures=dict(kept.failures),
        position=dict(kept.position),
        spool=dict(kept.spool),
        dead=dict(kept.dead),
        lineages=dict(kept.lineages),
        flipped=dict(kept.flipped),
    )


def _with_another_bit(envelope: Envelope) -> Envelope:
    """What there is where a bit has flipped."""
    notification = envelope.notification
    attributes = dict(notification.attributes)
    attributes["v"] = -1  # which nobody has published
    other = Notification(
        attributes, id=notification.id, priority=notification.priority, lifetime=notification.lifetime
    )
    return msgspec.structs.replace(envelope, notification=other)


class RecordsOnDisk:
    """The keyed records of a disk, as a store gives them."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def record(self, kind: str, key: str) -> bytes | None:
        return self._disk.records.get((kind, key))

    def records(
        self, kind: str, *, prefix: str = "", after: str | None = None, limit: int = 1_000
    ) -> list[KeyedRecord]:
        found = [
            KeyedRecord(of, key, value)
            for (of, key), value in self._disk.records.items()
            if of == kind and key.startswith(prefix) and (after is None or key > after)
        ]
        return sorted(found, key=lambda record: record.key)[:limit]


class Disk:
    """Journal, facts and durable subscriptions of one broker, and the writes that are under way."""

    def __init__(self, *, archived: bool = False) -> None:
        self._lake: dict[int, Envelope] | None = {} if archived else None
        self.journal: dict[int, Envelope] = {}
        self.flipped: dict[int, Envelope] = {}  # of events in the journal: what is there instead
        self.head = 0
        self.trimmed = 0
        self.recent: list[tuple[str, str, int, float]] = []
        self.facts: dict[Fact, int] = {}
        self.subscriptions: dict[str, DiskSubscription] = {}
        self.records: dict[tuple[str, str], bytes] = {}  # by kind and key
        self.lineage: Lineage = ()
        self._opened = self._opened_before = 0
        self.queue: deque[StoreEffect] = deque()
        self.full = False
        self.reads = 0

    def open(self, number: int, id: str) -> None:
        """Begin another incarnation of the journal."""
        self._opened, self._opened_before = number, self._opened
        self.lineage = begun(self.lineage, Incarnation(number, id, self.head))

    def flip(self, sequence: int) -> None:
        """Let a bit of an event in the journal flip."""
        self.flipped[sequence] = _with_another_bit(self.journal[sequence])

    def flip_delivery(self, name: str, number: int) -> None:
        """Let a bit of a delivery that waits flip."""
        kept = self.subscriptions[name]
        kept.flipped[number] = _with_another_bit(kept.spool[number][1])

    def put_aside(self, broker: str, now: float) -> None:
        """Put deliveries aside whose checksums are wrong, and name them to their subscriptions."""
        for kept in self.subscriptions.values():
            for after, upto in runs_of(
                [number for number in kept.flipped if not self.is_intact(kept.flipped[number])]
            ):
                kept.gaps = with_gap(kept.gaps, JournalGap(broker, after, upto, now, "deliveries"))
                for number in range(after + 1, upto + 1):
                    del kept.flipped[number], kept.spool[number]

    def is_intact(self, flipped: Envelope) -> bool:
        """Whether a row has the checksum of what it has: one in which a bit has flipped has not."""
        return False

    def copied(self) -> Disk:
        """What is on it at this moment, on another disk. The lake lies elsewhere."""
        copy = Disk()
        copy._lake = self._lake
        copy.journal, copy.recent = dict(self.journal), list(self.recent)
        copy.flipped = dict(self.flipped)
        copy.head, copy.trimmed = self.head, self.trimmed
        copy.facts, copy.records = dict(self.facts), dict(self.records)
        copy.subscriptions = {name: _copied(kept) for name, kept in self.subscriptions.items()}
        copy.lineage, copy._opened, copy._opened_before = self.lineage, self._opened, self._opened_before
        return copy

    # The queue

    @property
    def is_blocked(self) -> bool:
        """Whether the next write has to wait until there is room."""
        return self.full and bool(self.queue) and isinstance(self.queue[0], SaveFact | Spool)

    @property
    def will_be_trimmed(self) -> int:
        """How far the journal is trimmed, or is about to be."""
        return max([self.trimmed, *[effect.upto for effect in self.queue if isinstance(effect, Trim)]])

    @property
    def history_will_begin(self) -> int:
        """The sequence up to which nothing can be read any more, or is about to be gone."""
        return self.will_be_trimmed if self._lake is None else 0

    @property
    def last_time(self) -> float:
        """When something was published last, as far as that is known."""
        last = self.journal.get(self.head)
        return last.time if last is not None else max([time for *_, time in self.recent], default=0.0)

    def complete(self) -> StoreMessage | None:
        """Carry out what is first in the queue. Returns what the broker is told, if anything."""
        return self.carry_out(self.queue.popleft())

    def carry_out(self, effect: StoreEffect) -> StoreMessage | None:
        """Carry out an effect. Returns what the broker is told, if anything."""
        match effect:
            case Spool():  # the most frequent by far
                self._spool(effect)
                return Stored(effect.token)
            case Read():
                return self.read(effect)
            case Append() if self.full:
                return Failed(effect.token, "The disk is full.")
            case Append() if effect.envelopes and effect.envelopes[0].sequence != self.head + 1:
                return Failed(effect.token, "It does not follow what is on disk.")
        self.write(effect)
        return None if isinstance(effect, Trim) else Stored(effect.token)

    def crash(self, share: float) -> list[StoreEffect]:
        """Lose what was under way but for its first part. Returns what was lost."""
        survivors = round(share * len(self.queue))
        while survivors and self.queue and not self.is_blocked:
            self.complete()
            survivors -= 1
        lost: list[StoreEffect] = [effect for effect in self.queue if not isinstance(effect, Read)]
        self.queue.clear()
        return lost

    # Content

    def write(self, effect: StoreEffect) -> None:
        """One atomic write."""
        match effect:
            case Append(_, envelopes, publisher, records):
                for envelope in envelopes:
                    self.head = envelope.sequence
                    self.journal[envelope.sequence] = envelope
                    if envelope.notification.id is not None:
                        self.recent.append(
                            (publisher, envelope.notification.id, envelope.sequence, envelope.time)
                        )
                for record in records:
                    name = record.kind, record.key
                    if record.event:
                        self.records[name] = _encode(self.journal[record.event])
                    elif record.value is None:
                        self.records.pop(name, None)
                    else:
                        self.records[name] = record.value
            case SaveFact(_, fact, value):
                if value is None:
                    self.facts.pop(fact, None)
                else:
                    self.facts[fact] = value
            case Trim(upto):
                upto = min([upto, *[value for fact, value in self.facts.items() if fact.kind is FactKind.HELD]])
                for sequence in range(self.trimmed + 1, upto + 1):
                    envelope = self.journal.pop(sequence)
                    self.flipped.pop(sequence, None)
                    if self._lake is not None:
                        self._lake[sequence] = envelope
                self.trimmed = max(self.trimmed, upto)
            case Remove(_, name):
                self.subscriptions.pop(name, None)
            case Spool():
                self._spool(effect)

    def _spool(self, effect: Spool) -> None:
        kept = self.subscriptions.get(effect.name)
        if kept is None:
            if effect.filter is None:
                return  # it has been removed
            kept = self.subscriptions[effect.name] = DiskSubscription(effect.filter)
        if effect.filter is not None:
            kept.filter, kept.generation, kept.since = effect.filter, effect.generation, effect.since
            kept.identity = effect.identity
            kept.moving_to = effect.moving_to
            kept.linger = effect.linger
            kept.retry = effect.retry
        for number in (*effect.remove, *[number for number, *_ in (*effect.add, *effect.dead)]):
            kept.failures.pop(number, None)
            kept.flipped.pop(number, None)
        for number in effect.remove:
            kept.spool.pop(number, None)
            kept.dead.pop(number, None)
        for number, attempts, envelope in effect.add:
            kept.spool[number] = attempts, envelope
            kept.dead.pop(number, None)
        for number, attempts, envelope in effect.dead:
            kept.dead[number] = attempts, envelope
            kept.spool.pop(number, None)
        numbers = [number for number, *_ in (*effect.add, *effect.dead)]
        failures = dict(effect.failures)
        kept.failures |= {number: failures[number] for number in numbers if failures.get(number)}
        kept.next_delivery = max([kept.next_delivery, effect.next_delivery, *[one + 1 for one in numbers]])
        kept.position.update(effect.position)
        for origin, lineage in effect.lineages:
            if origin in kept.position:
                kept.lineages.pop(origin, None)
                if lineage:
                    kept.lineages[origin] = lineage
        if effect.gaps is not None:
            kept.gaps = effect.gaps

    def read(self, effect: Read) -> Found | Failed:
        """What the filter selects, up to a limit."""
        self.reads += 1
        found: list[Envelope] = []
        damaged: list[int] = []
        if self._lake is not None and effect.after < self.trimmed:
            if not self.reads % LAKE_FAILS:
                return Failed(effect.token, "The lake is away.")
            journal, after, upto = self._lake, effect.after, min(effect.upto, self.trimmed)
        else:
            journal, after, upto = self.journal, max(effect.after, self.trimmed), effect.upto
        for sequence in range(after + 1, min(upto, self.head) + 1):
            envelope = journal[sequence]
            flipped = self.flipped.get(sequence)
            if flipped is not None and envelope.time >= effect.since:  # the time is another column
                if not self.is_intact(flipped):
                    damaged.append(sequence)
                    continue
                envelope = flipped
            if envelope.time >= effect.since and effect.filter.matches(envelope.notification):
                found.append(envelope)
                if len(found) == effect.limit:
                    return Found(effect.token, sequence, tuple(found), tuple(damaged))
        return Found(effect.token, upto, tuple(found), tuple(damaged))

    def recovered(self) -> Recovered:
        """What a broker finds when it begins anew."""
        return Recovered(
            head=self.head,
            trimmed=self.trimmed,
            recent=tuple(self.recent),
            facts=tuple(self.facts.items()),
            shared=tuple(
                [KeyedRecord(*name, value) for name, value in self.records.items() if name[0] == SHARED]
            ),
            archived=self._lake is not None,
            lineage=self.lineage,
            opened_before=self._opened_before,
            last_time=self.last_time,
            subscriptions=tuple(
                Subscribed(
                    name,
                    kept.identity,
                    kept.generation,
                    kept.filter,
                    kept.since,
                    dict(kept.position),
                    tuple(
                        (number, tries, kept.flipped.get(number, it))
                        for number, (tries, it) in kept.spool.items()
                    ),
                    tuple((number, *letter) for number, letter in kept.dead.items()),
                    kept.next_delivery,
                    kept.moving_to,
                    kept.linger,
                    kept.retry,
                    tuple(kept.failures.items()),
                    dict(kept.lineages),
                    kept.gaps,
                )
                for name, kept in self.subscriptions.items()
            ),
        )
