"""A group of effects as one transaction.

Effects are atomic and in order each; a group of them is committed as a whole, which keeps both: what a crash
leaves is some groups, and then nothing of the next. Within a group only the outcome matters. So what would be
written row by row is gathered first, by key, the last word for each; and goes to the database in a few
statements, whatever the number of effects. What is read sees all that came before it: it is written then.

A transaction knows what is on disk from `StoreStanding` and leaves another one. If it is rolled back, the old
one still holds, and the group can be carried out again. Where the journal is archived, what lies before its
beginning is left to be read elsewhere (`earlier`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import Connection, TextClause, select, text

from palio.model.filter import Filter
from palio.protocol.durable.lineage import JournalGap, Lineage
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import (
    Append,
    KeyedRecord,
    LogBounds,
    LoggedOperation,
    Read,
    Remove,
    SaveFact,
    Spool,
    StoreEffect,
    Trim,
)
from palio.routing.durable.facts import Fact, FactKind
from palio.routing.occurrences import Failed, Found, Stored, StoreMessage
from palio.store import aside, keyed, operations, schema
from palio.store.backend import Backend
from palio.store.checksums import chained, checksum
from palio.store.errors import StoreInUse
from palio.store.letters import (
    WORTH_SHARING,
    DeliveryKey,
    LetterChanges,
    LetterRow,
    SharedLetters,
    SpoolRow,
    Unwritten,
)
from palio.store.reading import events_in, read
from palio.store.records import (
    encode_body,
    encode_event,
    encode_letter,
    encode_retry,
    encode_some,
    fact_columns,
    to_column,
)

NOT_FOLLOWING = "It does not follow what is on disk."

_POSITION = text(
    "INSERT INTO palio_positions (subscription, origin, sequence) VALUES (:subscription, :origin, :sequence) "
    "ON CONFLICT (subscription, origin) DO UPDATE SET sequence = excluded.sequence"
)
_LINEAGE = text(
    "UPDATE palio_positions SET lineage = :lineage WHERE subscription = :subscription AND origin = :origin"
)
_NAMED = text(
    "UPDATE palio_spool SET envelope = :envelope, checksum = :checksum "
    "WHERE subscription = :subscription AND delivery = :delivery"
)
_GAPS = text("UPDATE palio_subscriptions SET gaps = :gaps WHERE subscription = :subscription")
_HELD = text("SELECT min(value) FROM palio_facts WHERE broker = :broker AND kind = :kind")
_NUMBER = text(
    "UPDATE palio_subscriptions SET next_delivery = :next_delivery WHERE subscription = :subscription"
)
_SPAN = text(
    "INSERT INTO palio_spans (broker, span, newest) VALUES (:broker, :span, :newest) "
    "ON CONFLICT (broker, span) DO UPDATE SET newest = excluded.newest"
)
_STANDING = text(
    "UPDATE palio_brokers SET groups = :groups, head = :head, chain = :chain, trimmed = :trimmed, "
    "swept = :swept WHERE broker = :broker AND incarnation = :incarnation"
)


class StoredSubscription(msgspec.Struct, frozen=True):
    """A subscription on disk: its number there, that of its next delivery, and whether it had dead letters."""

    number: int
    next_delivery: int
    dead: bool = False


KeptSubscriptions: TypeAlias = dict[str, StoredSubscription]  # by name
# Broker, sequence, time, publisher, id, body, checksum.
JournalRow: TypeAlias = tuple[int, int, float, str, str | None, bytes, int]


class StoreStanding(msgspec.Struct, frozen=True):
    """How far a broker's store is. `newest` is the newest time in the span of the head."""

    broker: int
    name: str
    groups: int
    head: int
    trimmed: int
    swept: int
    newest: float = 0.0
    time: float = 0.0  # of the last append
    chain: int | None = None  # of the head
    log: operations.LogStanding = operations.LogStanding()


class Transaction:
    """Carries out effects on a connection. Nothing is committed here."""

    def __init__(
        self,
        backend: Backend,
        connection: Connection,
        standing: StoreStanding,
        kept: KeptSubscriptions,
        *,
        incarnation: int,
        archived: bool,
        log_bounds: LogBounds,
        letters: SharedLetters,
    ) -> None:
        self._backend = backend
        self._incarnation = incarnation
        self._archived = archived
        self._log_bounds = log_bounds
        self._log = standing.log
        self._operations: list[LoggedOperation] = []
        self.earlier: list[tuple[Read, int]] = []  # to be read in the lake, and up to where it was trimmed
        self._connection = connection
        self._broker = standing.broker
        self._name = standing.name
        self._before = standing
        self._kept = kept
        self.changed: dict[str, StoredSubscription | None] = {}  # of what is kept
        self._head = standing.head
        self.trimmed = standing.trimmed
        self._newest = standing.newest
        self._time = standing.time
        self._chain = standing.chain
        self._spans: dict[int, float] = {}
        self._journal: list[JournalRow] = []
        self.letters = LetterChanges(letters, standing.broker, standing.name)
        self._spool: dict[DeliveryKey, Unwritten | None] = {}
        self._fresh: dict[DeliveryKey, None] = {}  # of the spool, in order: numbers never given before
        self._dead: dict[DeliveryKey, SpoolRow | None] = {}
        self._positions: dict[tuple[int, str], int] = {}
        self._lineages: dict[tuple[int, str], Lineage] = {}  # of positions
        self._gaps: dict[int, tuple[JournalGap, ...]] = {}
        self._facts: dict[Fact, int | None] = {}
        self._numbers: dict[int, int] = {}
        self._records: dict[tuple[str, str], keyed.RecordChange] = {}
        self._wrote = False
        self.appended = 0
        self.aside = 0  # events that turned out to be damaged
        self.bytes = 0

    def carry_out(self, effects: Sequence[StoreEffect]) -> list[StoreMessage]:
        """Carry out an effect. Returns what is to be told once it is committed."""
        answers: list[StoreMessage] = []
        for effect in effects:
            match effect:
                case Append():
                    answers.append(self._append(effect))
                    continue
                case Spool():
                    self._write_spool(effect)
                case SaveFact():
                    self._facts[effect.fact] = effect.value
                case Remove():
                    self._remove(effect.name)
                case Trim():
                    self.trimmed = max(self.trimmed, self._held(effect.upto))
                    continue
                case Read():
                    if self._archived and effect.after < self.trimmed:
                        self.earlier.append((effect, self.trimmed))
                    else:
                        answers.append(self._read(effect))
                    continue
            answers.append(Stored(effect.token))
        self.flush()
        return answers

    def finish(self, swept: int) -> StoreStanding | None:
        """Make the last write of a transaction. Returns how far the store is; None if nothing changed.

        Raises `StoreInUse` if another broker has begun a life in the store since.
        """
        before, groups = self._before, self._before.groups + 1
        standing = StoreStanding(
            self._broker,
            self._name,
            groups,
            self._head,
            self.trimmed,
            swept,
            self._newest,
            self._time,
            self._chain,
            self._log,
        )
        if not self._wrote and (standing.trimmed, standing.swept) == (before.trimmed, before.swept):
            return None
        row = msgspec.structs.asdict(standing) | {"incarnation": self._incarnation}
        if not self._backend.execute(self._connection, _STANDING, row):  # fencing
            raise StoreInUse(self._backend.store, self._name, None)
        return standing

    # Effects

    def _append(self, effect: Append) -> StoreMessage:
        if effect.envelopes and effect.envelopes[0].sequence != self._head + 1:
            return Failed(effect.token, NOT_FOLLOWING)
        if effect.log:
            self._operations += effect.log
        if not effect.envelopes:
            self._put(effect.records, [])
            return Stored(effect.token)
        broker, publisher = self._broker, to_column(effect.publisher)
        rows: list[JournalRow] = []
        for one in effect.envelopes:  # a microsecond for each of them is a tenth of what a store can write
            body = one.notification.body
            id = body.id
            if id is not None:
                id = to_column(id)
            data = encode_body(body)
            sequence = one.sequence
            rows.append((broker, sequence, one.time, publisher, id, data, checksum(data, sequence)))
            if len(data) >= WORTH_SHARING:
                self.letters.appended(one)
        self._put(effect.records, rows)
        self._journal += rows
        self.bytes += sum([len(row[5]) for row in rows])
        self.appended += len(rows)
        at = 0
        while at < len(rows):  # most often all of it is in one span
            span = rows[at][1] // schema.SPAN
            upto = at + (span + 1) * schema.SPAN - rows[at][1]
            newest = max([row[2] for row in rows[at:upto]])
            known = self._newest if span == self._head // schema.SPAN else newest
            self._spans[span] = max(self._spans.get(span, known), newest)
            at = upto
        self._head, self._time = rows[-1][1], rows[-1][2]
        self._newest = self._spans[self._head // schema.SPAN]
        return Stored(effect.token)

    def _put(self, records: Sequence[KeyedRecord], rows: Sequence[JournalRow]) -> None:
        """Keyed records, with rows that are appended. What is small is written, as naming it costs more."""
        for record in records:
            value: keyed.RecordChange = record.value
            if record.event:
                _, sequence, time, _, _, body, _ = rows[record.event - rows[0][1]]
                large = len(body) >= WORTH_SHARING
                value = sequence if large else encode_event(self._name, sequence, time, body)
            self._records[record.kind, record.key] = value
            self.bytes += record.size

    def _write_spool(self, effect: Spool) -> None:
        kept = self._find(effect.name)
        if effect.filter is not None:
            kept = self._subscribe(effect, effect.filter, kept)
        if kept is None:
            return  # it has been removed
        failures = dict(effect.failures)
        number, following = kept.number, max(kept.next_delivery, effect.next_delivery)
        for delivery in effect.remove:
            self._spool[number, delivery] = None
        spool, fresh, never_given = self._spool, self._fresh, kept.next_delivery
        for delivery, attempts, envelope in effect.add:
            why = failures.get(delivery) if failures else None
            key = number, delivery
            spool[key] = number, delivery, attempts, encode_letter(envelope, why) if why else envelope
            if delivery >= never_given:
                fresh[key] = None
                if delivery >= following:
                    following = delivery + 1
        if kept.dead:  # most subscriptions never have any
            for delivery in (*effect.remove, *[delivery for delivery, *_ in effect.add]):
                self._dead[number, delivery] = None
        for delivery, attempts, envelope in effect.dead:
            self._spool[number, delivery] = None
            letter = encode_letter(envelope, failures.get(delivery, ()))
            self._dead[number, delivery] = number, delivery, attempts, letter, checksum(letter, delivery)
            following = max(following, delivery + 1)
        for origin, sequence in effect.position:
            self._positions[number, origin] = sequence
        for origin, lineage in effect.lineages:
            self._lineages[number, origin] = lineage
        if effect.gaps is not None:
            self._gaps[number] = effect.gaps
        if following != kept.next_delivery:
            self._numbers[number] = following
        dead = kept.dead or bool(effect.dead)
        if following != kept.next_delivery or dead is not kept.dead:
            self.changed[effect.name] = StoredSubscription(number, following, dead)

    def _find(self, name: str) -> StoredSubscription | None:
        return self.changed[name] if name in self.changed else self._kept.get(name)

    def _subscribe(self, effect: Spool, filter: Filter, kept: StoredSubscription | None) -> StoredSubscription:
        columns = {
            "identity": to_column(effect.identity),
            "generation": effect.generation,
            "filter": to_column(filter.source or ""),
            "form": filter.form,
            "since": effect.since,
            "moving_to": None if effect.moving_to is None else to_column(effect.moving_to),
            "linger": effect.linger,
            "retry": encode_retry(effect.retry),
        }
        table = schema.subscriptions
        self._wrote = True
        if kept is not None:
            self._connection.execute(table.update().where(table.c.subscription == kept.number).values(columns))
            return kept
        columns |= {"broker": self._broker, "name": to_column(effect.name), "next_delivery": 1}
        result = self._connection.execute(table.insert().values(columns))
        assert result.inserted_primary_key is not None
        kept = self.changed[effect.name] = StoredSubscription(result.inserted_primary_key[0], 1)
        return kept

    def _remove(self, name: str) -> None:
        kept = self._find(name)
        if kept is None:
            return
        self.flush()
        self._wrote = True
        spool = schema.spool.c
        waiting = self._connection.execute(select(spool.delivery).where(spool.subscription == kept.number))
        self._unshare([(kept.number, delivery) for delivery in waiting.scalars()])
        for table in (schema.spool, schema.dead, schema.positions, schema.subscriptions):
            self._connection.execute(table.delete().where(table.c.subscription == kept.number))
        self.changed[name] = None

    def _read(self, effect: Read) -> Found:
        self.flush()
        found, damaged = read(
            self._connection, self._broker, self._name, effect, head=self._head, trimmed=self.trimmed
        )
        for one in damaged:
            if aside.put_event(self._connection, self._broker, self._name, one.sequence, one.reason):
                self.aside += 1
                self._wrote = True
        return found

    def _held(self, upto: int) -> int:
        """Retention holds: up to where, at the most, no reader that is no subscription needs anything."""
        self._flush_facts()
        held = self._connection.execute(_HELD, {"broker": self._broker, "kind": FactKind.HELD.value}).scalar()
        return upto if held is None else min(upto, int(held))

    # What was gathered

    def flush(self) -> None:
        backend, connection, broker = self._backend, self._connection, self._broker
        if self._journal:
            self._chain = _link(self._chain, self._journal)
            backend.append(connection, self._journal, self._chain)
        self._execute(_SPAN, [{"broker": broker, "span": n, "newest": t} for n, t in self._spans.items()])
        self._journal, self._spans = [], {}
        self._flush_letters()
        positions = [
            {"subscription": number, "origin": to_column(origin), "sequence": sequence}
            for (number, origin), sequence in self._positions.items()
        ]
        self._execute(_POSITION, positions)
        self._execute(_NUMBER, [{"subscription": n, "next_delivery": d} for n, d in self._numbers.items()])
        lineages = [
            {"subscription": number, "origin": to_column(origin), "lineage": encode_some(lineage)}
            for (number, origin), lineage in self._lineages.items()
        ]
        self._execute(_LINEAGE, lineages)
        gaps = [{"subscription": number, "gaps": encode_some(some)} for number, some in self._gaps.items()]
        self._execute(_GAPS, gaps)
        self._positions, self._numbers, self._lineages, self._gaps = {}, {}, {}, {}
        if self._records:
            keyed.write(backend, connection, broker, self._records)
            self._records = {}
            self._wrote = True
        if self._operations:
            rows, self._operations = self._operations, []
            self._log = operations.write(
                backend, connection, broker, rows, standing=self._log, bounds=self._log_bounds
            )
            self._wrote = True
        self._flush_facts()

    def _flush_letters(self) -> None:
        backend, connection, spool = self._backend, self._connection, self._spool
        fresh = [row for key in self._fresh if (row := spool.pop(key, None)) is not None]
        again = [row for row in spool.values() if row is not None]
        changes, before = self.letters, self.letters.bytes
        if fresh:
            rows, shared = changes.written(fresh, self.trimmed)
            if shared:
                backend.share(connection, shared)
            backend.spool(connection, rows)
        if spool:
            self._unshare([*spool])
        lasting = [row for row in self._dead.values() if row is not None]
        for table, put, letters in (
            (schema.spool.name, changes.rewritten(again), spool),
            (schema.dead.name, lasting, self._dead),
        ):
            gone = [key for key, row in letters.items() if row is None]
            if put:
                backend.put(connection, table, put)
            if gone:
                backend.drop(connection, table, gone)
        self.bytes += changes.bytes - before
        self._wrote = self._wrote or bool(fresh or spool or self._dead)
        spool.clear()
        self._fresh.clear()
        self._dead.clear()

    def _unshare(self, keys: list[DeliveryKey]) -> None:
        """These deliveries share letters no more."""
        if gone := self.letters.release(keys):
            self._backend.unshare(self._connection, self._broker, gone)

    def keep_named(self, swept: int, upto: int) -> None:
        """Events behind `swept`, up to a sequence, are to be deleted: what names them is kept without them."""
        self.bytes += keyed.keep_named(self._connection, self._broker, self._name, upto)
        backend, connection, changes = self._backend, self._connection, self.letters
        before = changes.bytes
        waited_for = changes.waited_for(swept, upto)
        letters: list[LetterRow] = []
        named: list[dict[str, Any]] = []
        for sequence, found in list(events_in(connection, self._broker, self._name, waited_for)):
            if isinstance(found, Envelope):
                data = encode_letter(msgspec.structs.replace(found, epoch=changes.epoch_of(sequence)))
                letter, naming = changes.moved(sequence, waited_for[sequence], data)
                letters.append(letter)
                named += naming
            elif aside.put_event(connection, self._broker, self._name, sequence, found):
                self.aside += 1  # whoever starts next hears of it
        if letters:
            backend.share(connection, letters)
            backend.execute(connection, _NAMED, named)
        self.bytes += changes.bytes - before

    def _flush_facts(self) -> None:
        for statement, wanted in ((schema.PUT_FACT, True), (schema.DROP_FACT, False)):
            rows = [
                {"broker": self._broker, **fact_columns(fact), "value": value}
                for fact, value in self._facts.items()
                if (value is not None) is wanted
            ]
            self._execute(statement, rows)
        self._facts = {}

    def _execute(self, statement: TextClause, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._backend.execute(self._connection, statement, rows)
            self._wrote = True


def _link(before: int | None, rows: list[JournalRow]) -> int:
    """What is appended together is a link of the chain."""
    times, publishers, sums = [row[2] for row in rows], [row[3] for row in rows], [row[6] for row in rows]
    return chained(before, rows[0][1], times, publishers, sums)
