"""Recovery: what a broker finds on disk when it begins: its standing, its subscriptions, known ids.

A subscription or a letter that cannot be read does not keep the broker from starting: it is put aside.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from time import time as wall_clock
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Table, text

from palio.model.errors import FilterError, PalioError
from palio.model.filter import Filter
from palio.protocol.durable.attempts import Failures
from palio.protocol.durable.lineage import Incarnation, JournalGap, Lineage, begun, runs_of, with_gap
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Recovered, Subscribed
from palio.routing.durable.facts import FactKind
from palio.routing.sharing import KIND as SHARED
from palio.store import aside, keyed, schema
from palio.store.backend import Backend
from palio.store.checksums import WRONG_CHECKSUM, is_intact
from palio.store.errors import StoreCorrupt, sentence
from palio.store.letters import EVENT_MISSING, SHARED_LETTER_MISSING, SharedLetters, read_event, shared_number
from palio.store.operations import standing_of
from palio.store.reading import FIRST_BATCH, events_in
from palio.store.records import (
    decode_gaps,
    decode_letter,
    decode_lineage,
    decode_retry,
    encode_some,
    from_column,
    lineage_in,
    to_column,
)
from palio.store.transaction import KeptSubscriptions, StoredSubscription, StoreStanding

_TIME = text("SELECT time FROM palio_journal WHERE broker = :broker AND sequence = :head")
_LAST_ID_TIME = text("SELECT max(time) FROM palio_ids WHERE broker = :broker")
_NEWEST = text("SELECT newest FROM palio_spans WHERE broker = :broker AND span = :span")
_RECENT_IDS = text(
    "SELECT publisher, id, sequence, time FROM palio_ids WHERE broker = :broker AND time >= :horizon "
    "ORDER BY sequence"
)
# Only spans in which something is recent are looked through.
_RECENT = text(
    "SELECT j.publisher, j.id, j.sequence, j.time FROM palio_spans s JOIN palio_journal j "
    f"ON j.broker = s.broker AND j.sequence >= s.span * {schema.SPAN} "
    f"AND j.sequence < (s.span + 1) * {schema.SPAN} "
    "WHERE s.broker = :broker AND s.newest >= :horizon AND j.time >= :horizon AND j.sequence > :swept "
    "AND j.id IS NOT NULL ORDER BY j.sequence"
)

log = logging.getLogger("palio.store")

Letters = dict[int, list[tuple[int, int, Envelope]]]


class Entered(msgspec.Struct, frozen=True):
    """How far the store of a broker is whose next life begins, and what is to be known of its lives."""

    standing: StoreStanding
    incarnation: int
    opened_before: int
    lineage: Lineage


def enter(backend: Backend, connection: Connection, broker: str, at_least: int, id: str) -> Entered:
    """Fencing: begin another life (incarnation) of a broker, with a number that is larger than all before it.

    A disk that came back older does not know all of them: so the number is `at_least` what a clock says. The id
    is that of its incarnation in the lineage of the journal.
    """
    table = schema.brokers
    mine = table.c.name == to_column(broker)
    found = connection.execute(table.select().where(mine)).first()
    if found is None:
        others = connection.execute(table.select()).all()
        backend.claim(broker, [from_column(other.name) for other in others])
        connection.execute(
            table.insert().values(name=to_column(broker), incarnation=0, groups=0, head=0, trimmed=0, swept=0)
        )
        found = connection.execute(table.select().where(mine)).one()
    incarnation = max(found.incarnation + 1, at_least)
    connection.execute(table.update().where(mine).values(incarnation=incarnation, restored=None))
    if found.restored is not None:
        copy = from_column(found.restored)
        log.warning("The store %s was restored from %s. It ends with %d.", backend.store, copy, found.head)
    key = {"broker": found.broker}
    time = connection.execute(_TIME, key | {"head": found.head}).scalar()
    if time is None:
        time = connection.execute(_LAST_ID_TIME, key).scalar()
    newest = connection.execute(_NEWEST, key | {"span": found.head // schema.SPAN}).scalar()
    standing = StoreStanding(
        found.broker,
        broker,
        found.groups,
        found.head,
        found.trimmed,
        found.swept,
        newest or 0.0,
        time or 0.0,
        found.chain,
        standing_of(connection, found.broker),
    )
    lineage = _begin(connection, found.broker, Incarnation(incarnation, id, found.head))
    return Entered(standing, incarnation, found.incarnation, lineage)


def _begin(connection: Connection, broker: int, incarnation: Incarnation) -> Lineage:
    """Writes that an incarnation of a journal begins. Returns its lineage."""
    table = schema.lineage
    mine = table.c.broker == broker
    lineage = begun(lineage_in(connection, broker), incarnation)
    numbers = [one.number for one in lineage]
    connection.execute(table.delete().where(mine, table.c.number.not_in(numbers)))
    connection.execute(table.insert().values(broker=broker, **msgspec.structs.asdict(incarnation)))
    return lineage


def unchanged(connection: Connection, standing: StoreStanding, incarnation: int) -> int | None:
    """Fencing: how many groups are committed; None if another broker has begun a life since."""
    table = schema.brokers
    found = connection.execute(table.select().where(table.c.broker == standing.broker)).first()
    return found.groups if found is not None and found.incarnation == incarnation else None


def recover(
    connection: Connection, entered: Entered, store: str, *, retention: float, remembered: int
) -> tuple[Recovered, KeptSubscriptions, SharedLetters]:
    """Recovers all that is on disk. Raises `StoreCorrupt`."""
    try:
        recovered, kept, letters = _recover(connection, entered.standing, retention, remembered)
    except (msgspec.DecodeError, PalioError, ValueError) as problem:
        raise StoreCorrupt(store, str(problem)) from None
    lives = {"lineage": entered.lineage, "opened_before": entered.opened_before}
    return msgspec.structs.replace(recovered, **lives), kept, letters


def _recover(
    connection: Connection, standing: StoreStanding, retention: float, remembered: int
) -> tuple[Recovered, KeptSubscriptions, SharedLetters]:
    number = standing.broker
    facts = [
        (FactKind(row.kind).of(from_column(row.subject), from_column(row.home)), row.value)
        for row in connection.execute(schema.facts.select().where(schema.facts.c.broker == number))
    ]
    table = schema.subscriptions
    found = connection.execute(
        table.select().where(table.c.broker == number).order_by(table.c.subscription)
    ).all()
    rows, filters = _readable(connection, found)
    names = {row.subscription: from_column(row.name) for row in rows}
    positions: dict[int, dict[str, int]] = defaultdict(dict)
    lineages: dict[int, dict[str, Lineage]] = defaultdict(dict)
    for row in _of_broker(connection, schema.positions, number):
        positions[row.subscription][from_column(row.origin)] = row.sequence
        if row.lineage is not None:
            lineages[row.subscription][from_column(row.origin)] = decode_lineage(row.lineage)
    failures: dict[int, dict[int, Failures]] = defaultdict(dict)
    reading = _LetterReading(connection, number, standing.name)
    spool, damaged = _letters(connection, schema.spool, (number, names), failures, reading)
    dead, _ = _letters(connection, schema.dead, (number, names), failures, reading)
    reading.drop_unnamed()
    kept = {
        from_column(row.name): StoredSubscription(row.subscription, row.next_delivery, row.subscription in dead)
        for row in rows
    }
    recovered = Recovered(
        head=standing.head,
        trimmed=standing.trimmed,
        last_time=standing.time,
        recent=tuple(deque(_recent(connection, standing, retention), maxlen=remembered)),
        facts=tuple(facts),
        shared=keyed.all_of(connection, number, SHARED),
        subscriptions=tuple(
            [
                Subscribed(
                    from_column(row.name),
                    from_column(row.identity),
                    row.generation,
                    filters[row.subscription],
                    row.since,
                    positions.get(row.subscription, {}),
                    tuple(spool.get(row.subscription, ())),
                    tuple(dead.get(row.subscription, ())),
                    row.next_delivery,
                    None if row.moving_to is None else from_column(row.moving_to),
                    row.linger,
                    decode_retry(row.retry),
                    tuple(failures.get(row.subscription, {}).items()),
                    lineages.get(row.subscription, {}),
                    _gaps(connection, row, standing.name, damaged.get(row.subscription, ())),
                )
                for row in rows
            ]
        ),
    )
    return recovered, kept, reading.shared


def _recent(
    connection: Connection, standing: StoreStanding, retention: float
) -> Iterator[tuple[str, str, int, float]]:
    """Deduplication: the ids of what was published within the retention time before the last publish."""
    wanted = {"broker": standing.broker, "horizon": standing.time - retention, "swept": standing.swept}
    for statement in (_RECENT_IDS, _RECENT):
        for publisher, id, sequence, time in connection.execute(statement, wanted):
            yield from_column(publisher), from_column(id), sequence, time


def _readable(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[list[Row[Any]], dict[int, Filter]]:
    """The rows whose filters and settings can be read, and these filters; the others go aside."""
    kept: list[Row[Any]] = []
    filters: dict[int, Filter] = {}
    for row in rows:
        try:
            decode_retry(row.retry)
            decode_gaps(row.gaps)
            filters[row.subscription] = _filter_of(connection, row)
            kept.append(row)
        except (FilterError, TypeError, msgspec.DecodeError) as problem:  # a column of SQLite may have anything
            aside.put_subscription(connection, row, sentence(problem))
    return kept, filters


def _filter_of(connection: Connection, row: Row[Any]) -> Filter:
    """Raises `FilterError`."""
    written = from_column(row.filter)
    if row.form is not None:
        return Filter.of_form(bytes(row.form), written or None)
    filter = Filter.parse(written)
    table = schema.subscriptions
    connection.execute(table.update().where(table.c.subscription == row.subscription).values(form=filter.form))
    return filter


class _LetterReading:
    """Reads letters of a broker, each once however many deliveries share it."""

    def __init__(self, connection: Connection, broker: int, name: str) -> None:
        self._connection = connection
        self._broker = broker
        self._name = name
        table = schema.letters
        rows = connection.execute(table.select().where(table.c.broker == broker))
        self._found = {row.letter: row for row in rows}
        self._known: dict[bytes | int, tuple[Envelope, Failures]] = {}
        self._events: dict[int, Envelope | str] = {}
        self.shared = SharedLetters()
        self.shared.last = max(self._found, default=0)

    def look_up(self, rows: Sequence[Row[Any]]) -> None:
        """Look up the events of the journal that these name, all together."""
        named = set()
        for row in rows:
            with suppress(msgspec.DecodeError, TypeError):
                letter = shared_number(row.envelope)
                if letter is not None and letter < 0 and bytes(row.envelope) not in self._known:
                    named.add(-letter)
        self._events = dict(events_in(self._connection, self._broker, self._name, named))

    def read(self, row: Row[Any]) -> tuple[Envelope, Failures] | str:
        """The envelope of a letter and why it has failed; or why it cannot be read."""
        if not is_intact(row.delivery, row.envelope, row.checksum):
            return WRONG_CHECKSUM
        try:
            letter = shared_number(row.envelope)
            if letter is not None and letter < 0:
                return self._read_event(row)
            key = bytes(row.envelope) if letter is None else letter
            if key not in self._known:
                if letter is not None:
                    shared = self._found[letter]
                    if not is_intact(letter, shared.envelope, shared.checksum):
                        return WRONG_CHECKSUM
                data = row.envelope if letter is None else self._found[letter].envelope
                self._known[key] = decode_letter(data)
        except KeyError:
            return SHARED_LETTER_MISSING
        except (msgspec.DecodeError, TypeError) as problem:
            return sentence(problem)
        if letter is not None:
            self.shared.add((row.subscription, row.delivery), letter)
        return self._known[key]

    def _read_event(self, row: Row[Any]) -> tuple[Envelope, Failures] | str:
        """What a delivery names in the journal. Raises `msgspec.DecodeError`."""
        key, named = bytes(row.envelope), read_event(row.envelope)
        if key not in self._known:
            event = self._events.get(named.sequence, EVENT_MISSING)
            if isinstance(event, str):
                return event
            self._known[key] = msgspec.structs.replace(event, epoch=named.epoch), ()
        self.shared.add((row.subscription, row.delivery), -named.sequence, named.epoch)
        return self._known[key]

    def drop_unnamed(self) -> None:
        """Delete the shared letters that no delivery names."""
        table = schema.letters
        unnamed = [letter for letter in self._found if letter not in self.shared.counts]
        for letter in unnamed:
            mine = table.c.broker == self._broker, table.c.letter == letter
            self._connection.execute(table.delete().where(*mine))


def _letters(
    connection: Connection,
    table: Table,
    of: tuple[int, Mapping[int, str]],
    failures: dict[int, dict[int, Failures]],
    reading: _LetterReading,
) -> tuple[Letters, dict[int, list[int]]]:
    """Letters of a broker, by subscription, of which it has the names; and the numbers of those that go aside.

    These cannot be read. An event that several subscriptions wait for is one object, as it was when it came.
    """
    broker, names = of
    letters: Letters = defaultdict(list)
    unreadable: list[tuple[Row[Any], str]] = []
    every = _of_broker(connection, table, broker)
    while rows := list(islice(every, FIRST_BATCH)):
        reading.look_up(rows)
        for row in rows:
            read = reading.read(row)
            if isinstance(read, str):
                unreadable.append((row, read))
                continue
            envelope, failed = read
            letters[row.subscription].append((row.delivery, row.attempts, envelope))
            if failed:
                failures[row.subscription][row.delivery] = failed
    damaged: dict[int, list[int]] = defaultdict(list)
    for row, reason in unreadable:
        aside.put_letter(connection, table, row, (broker, names[row.subscription]), reason)
        damaged[row.subscription].append(row.delivery)
    return letters, damaged


def _gaps(connection: Connection, row: Row[Any], broker: str, damaged: Sequence[int]) -> tuple[JournalGap, ...]:
    """What a subscription may have missed: also the deliveries of it that are aside now, which is one write."""
    gaps = decode_gaps(row.gaps)
    for after, upto in runs_of(damaged):
        gaps = with_gap(gaps, JournalGap(broker, after, upto, wall_clock(), "deliveries"))
    if damaged:
        table = schema.subscriptions
        mine = table.c.subscription == row.subscription
        connection.execute(table.update().where(mine).values(gaps=encode_some(gaps)))
    return gaps


def _of_broker(connection: Connection, table: Table, broker: int) -> Iterator[Any]:
    """The rows of all subscriptions of a broker, by key."""
    owner = schema.subscriptions
    rows = table.select().join(owner, owner.c.subscription == table.c.subscription)
    return iter(connection.execute(rows.where(owner.c.broker == broker).order_by(*table.primary_key)))
