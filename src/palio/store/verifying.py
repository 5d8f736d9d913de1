"""Verifying a store: is all of it there, and is it what was written?

It is read on a connection of its own that cannot write, a page at a time, each in a transaction of its own: at
rest, and beside a running broker, which does not wait for it. What is looked at:

1. every event: its checksum, and whether it is an encoded notification;
2. the chain of checksums, from link to link, up to the one in the row of the broker: whether these are the
   events that were appended, in their order. The first link of a journal that was trimmed, or that a version
   without checksums has begun, has nothing before it, and is believed;
3. sequences: there are all from where the journal was swept up to its head, and none beyond;
4. the lineage: its incarnations are in order, and the last one is that of the last opening;
5. every letter in the spools and among the dead letters;
6. the events of the journal that keyed records name: whether they are there.

A page that the database cannot read is read again event by event, so that what is lost of it has a name.
What is deleted while it is read, since it was trimmed, is not missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import Connection, Row, Table, func, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from palio.model.naming import event_name
from palio.store import aside, schema
from palio.store.backend import Backend
from palio.store.checksums import WRONG_CHECKSUM, chained, is_intact
from palio.store.errors import NoSuchJournal, sentence
from palio.store.letters import EVENT_MISSING, SHARED_LETTER_MISSING, shared_number
from palio.store.opening import backend_of, refusal
from palio.store.reading import BATCH, BATCH_BYTES, FIRST_BATCH, events_in, problem_of
from palio.store.records import decode_letter, from_column, to_column

# Events that are looked for one by one where the database cannot read; beyond, the rest is given up.
MOST_UNREADABLE = 10_000
# Complaints that SQLite's own check makes at the most.
MOST_COMPLAINTS = 100

Told: TypeAlias = Callable[[str, int, int], None]  # what is looked at, how much is done, and of how much


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong: what it is, and why; the sequences that it is about, if it is about events."""

    what: str
    reason: str
    first: int | None = None
    last: int | None = None


class VerifiedJournal(msgspec.Struct, frozen=True):
    """What there is of one broker, how much of it was read, and what is wrong with it."""

    broker: str
    first: int
    last: int
    events: int
    without_checksum: int
    letters: int
    aside: int
    findings: tuple[Finding, ...]


class VerifiedStore(msgspec.Struct, frozen=True):
    """What a store is like; `findings` are those of the database itself."""

    store: str
    journals: tuple[VerifiedJournal, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not self.findings and not any(one.findings for one in self.journals)


def verify(
    url: str, broker: str | None = None, *, deep: bool = False, told: Told = lambda what, done, total: None
) -> VerifiedStore:
    """Verify the journals of a store, or one of them; if `deep`, a file also by SQLite's own check of it all.

    Raises `WrongStoreUrl`, `NoSuchJournal`, `StoreTooNew`, `StoreTooOld`, `StoreUnavailable`, and
    `StoreCorrupt` if it cannot even be opened.
    """
    backend = backend_of(url, writes=False)
    try:
        with backend.reader() as connection:
            with connection.begin():
                rows = _brokers(connection, backend, broker)
            journals = [_Verification(backend, connection, row, told).run() for row in rows]
            findings = _complaints(backend, connection, told) if deep and url.startswith("sqlite") else []
    except SQLAlchemyError as problem:
        raise refusal(backend, problem) from None
    return VerifiedStore(backend.store, tuple(journals), tuple(findings))


def _brokers(connection: Connection, backend: Backend, broker: str | None) -> list[Row[Any]]:
    if not inspect(connection).has_table(schema.version.name):
        raise NoSuchJournal(backend.store, broker, ())
    schema.require_present(connection, backend.store)
    rows = connection.execute(schema.brokers.select().order_by(schema.brokers.c.name)).all()
    found = [row for row in rows if broker is None or row.name == to_column(broker)]
    if not found:
        raise NoSuchJournal(backend.store, broker, tuple([from_column(row.name) for row in rows]))
    return found


def _complaints(backend: Backend, connection: Connection, told: Told) -> list[Finding]:
    """What SQLite finds that is wrong with a file."""
    told("database", 0, 1)
    try:
        with connection.begin():
            rows = connection.execute(text(f"PRAGMA integrity_check({MOST_COMPLAINTS})")).scalars().all()
    except SQLAlchemyError as problem:
        return [Finding("database", backend.trouble(problem).reason)]
    told("database", 1, 1)
    lines = [line for row in rows for line in row.splitlines() if not line.startswith("*** in database")]
    return [Finding("database", sentence(line)) for line in lines if line != "ok"]


class _Link:
    """The link of the chain that is being followed: what it is made of, as far as it was read."""

    def __init__(self) -> None:
        self.before: int | None = None  # the link before it
        self._known = False  # whether that one is known, and all since
        self._rows: list[tuple[int, float, str, int]] = []

    def lose(self) -> None:
        """Something is missing: what follows can be followed from the next link on."""
        self._known, self._rows = False, []

    def follow(self, row: Row[Any]) -> tuple[int, int] | None:
        """Take the next event. Returns from where on to where the chain is broken, if that shows with it."""
        if row.checksum is None:
            self.lose()
            return None
        self._rows.append((row.sequence, row.time, row.publisher, row.checksum))
        if row.chain is None:
            return None
        sequences, times, publishers, sums = zip(*self._rows, strict=True)
        broken = self._known and row.chain != chained(self.before, sequences[0], times, publishers, sums)
        self.before, self._known, self._rows = row.chain, True, []
        return (sequences[0], sequences[-1]) if broken else None


class _Verification:
    """Looks through what there is of one broker."""

    def __init__(self, backend: Backend, connection: Connection, broker: Row[Any], told: Told) -> None:
        self._backend = backend
        self._connection = connection
        self._number: int = broker.broker
        self._name = from_column(broker.name)
        self._begun = broker
        self._told = told
        self._link = _Link()
        self._intact: set[int] = set()  # letters that several deliveries share
        self._events = self._without = self._letters = self._unreadable = 0
        self._findings: list[Finding] = []

    def run(self) -> VerifiedJournal:
        self._check_events()
        self._check_standing()
        for table, kind in ((schema.spool, "delivery"), (schema.dead, "dead letter")):
            self._check_letters(table, kind)
        self._check_records()
        with self._page("things aside"):
            number_aside = aside.count(self._connection, self._number)
        return VerifiedJournal(
            self._name,
            self._begun.trimmed + 1,
            self._begun.head,
            self._events,
            self._without,
            self._letters,
            number_aside,
            tuple(self._findings),
        )

    @contextmanager
    def _page(self, what: str) -> Iterator[None]:
        """Read something of one moment; what the database cannot read is a finding."""
        try:
            with self._connection.begin():
                yield
        except SQLAlchemyError as problem:
            self._find(what, self._reason(problem))

    def _reason(self, problem: SQLAlchemyError) -> str:
        return self._backend.trouble(problem).reason

    def _find(self, what: str, reason: str, first: int | None = None, last: int | None = None) -> None:
        self._findings.append(Finding(what, reason, first, last))

    def _find_events(self, first: int, last: int, reason: str) -> None:
        name = event_name(self._name, first)
        if last > first:
            self._find(f"events {name} to {last}", reason, first, last)
        else:
            self._find(f"event {name}", reason, first, last)

    # Events

    def _check_events(self) -> None:
        after, upto = self._begun.swept, self._begun.head
        first = after
        limit = FIRST_BATCH
        while after < upto:
            self._told(f"events of {self._name}", after - first, upto - first)
            try:
                with self._connection.begin():
                    swept, rows = self._rows(after, upto if limit > 1 else after + 1, limit)
            except SQLAlchemyError as problem:
                if limit > 1:
                    limit = 1
                    continue
                after = self._pass_over(after, upto, self._reason(problem))
                continue
            if swept > after:  # it was trimmed meanwhile
                self._link.lose()
                after = min(swept, upto)
            rows = [row for row in rows if row.sequence > after]
            complete = len(rows) < limit
            end = upto if limit > 1 else min(after + 1, upto)
            after = self._check_rows(after, rows, end if complete else rows[-1].sequence)
            size = sum([len(row.body) for row in rows if isinstance(row.body, bytes)])
            limit = max(2, min(BATCH, (len(rows) or 1) * BATCH_BYTES // max(size, 1)))

    def _rows(self, after: int, upto: int, limit: int) -> tuple[int, list[Row[Any]]]:
        """Up to where there are none any more, and some events, of one moment."""
        brokers, table = schema.brokers.c, schema.journal.c
        swept = self._connection.execute(select(brokers.swept).where(brokers.broker == self._number))
        rows = self._connection.execute(
            schema.journal.select()
            .where(table.broker == self._number, table.sequence > after, table.sequence <= upto)
            .order_by(table.sequence)
            .limit(limit)
        )
        return int(swept.scalar_one()), list(rows)

    def _check_rows(self, after: int, rows: list[Row[Any]], end: int) -> int:
        """Look at what was read after a sequence; it is all that there is up to the end."""
        for row in rows:
            self._check_missing(after + 1, row.sequence - 1)
            after = row.sequence
            self._events += 1
            self._without += row.checksum is None
            reason = problem_of(row.sequence, row.body, row.checksum)
            if reason is not None:
                self._find_events(row.sequence, row.sequence, reason)
            broken = self._link.follow(row)
            if broken is not None:
                self._find_events(*broken, "They are not what was appended: the chain of checksums is broken.")
        self._check_missing(after + 1, end)
        return end

    def _check_missing(self, first: int, last: int) -> None:
        if last >= first:
            self._link.lose()
            self._find_events(first, last, "It is not there." if first == last else "They are not there.")

    def _pass_over(self, after: int, upto: int, reason: str) -> int:
        """Go on behind an event that the database cannot read. Returns up to where that is."""
        self._link.lose()
        self._unreadable += 1
        last = after + 1 if self._unreadable < MOST_UNREADABLE else upto
        self._find_events(after + 1, last, reason)
        return last

    # How far it is

    def _check_standing(self) -> None:
        brokers, journal, lineage = schema.brokers, schema.journal, schema.lineage
        with self._page("standing"):
            found = self._connection.execute(brokers.select().where(brokers.c.broker == self._number)).one()
            mine = journal.c.broker == self._number
            beyond = self._connection.execute(
                select(func.min(journal.c.sequence), func.max(journal.c.sequence)).where(
                    mine, journal.c.sequence > found.head
                )
            ).one()
            last = self._connection.execute(
                select(journal.c.checksum, journal.c.chain).where(mine, journal.c.sequence == found.head)
            ).first()
            lives = self._connection.execute(
                lineage.select().where(lineage.c.broker == self._number).order_by(lineage.c.number)
            ).all()
            if beyond[0] is not None:
                self._find_events(*beyond, f"The journal ends with {found.head}.")
            if not 0 <= found.swept <= found.trimmed <= found.head:
                reason = f"swept up to {found.swept}, trimmed up to {found.trimmed}, head {found.head}."
                self._find("standing", f"These cannot be: {reason}")
            if last is not None and last.checksum is not None and last.chain != found.chain:
                reason = "The chain of checksums does not end with the one that the journal ends with."
                self._find_events(found.head, found.head, reason)
            begins = [one.begins for one in lives]
            numbers = [one.number for one in lives]
            if begins != sorted(begins) or begins[-1:] > [found.head] or numbers[-1:] != [found.incarnation]:
                self._find("lineage", "Its incarnations are not those of this journal.")

    # Letters

    def _check_letters(self, table: Table, kind: str) -> None:
        owners = schema.subscriptions
        subscriptions: list[Row[Any]] = []
        with self._page("durable subscriptions"):
            wanted = owners.select().where(owners.c.broker == self._number).order_by(owners.c.subscription)
            subscriptions = list(self._connection.execute(wanted))
        for done, owner in enumerate(subscriptions):
            self._told(f"{kind} rows of {self._name}", done, len(subscriptions))
            name = from_column(owner.name)
            with self._page(f"{kind} rows of the durable subscription {name!r}"):
                mine = table.select().where(table.c.subscription == owner.subscription)
                # An outbox is bounded, and so is what of it is in memory at a time.
                rows = self._connection.execution_options(yield_per=FIRST_BATCH).execute(mine)
                for row in rows:
                    self._letters += 1
                    reason = self._problem_of_letter(row)
                    if reason is not None:
                        self._find(f"{kind} {row.delivery} of the durable subscription {name!r}", reason)

    def _check_records(self) -> None:
        records, journal = schema.records, schema.journal
        named = (journal.c.broker == records.c.broker) & (journal.c.sequence == records.c.event)
        lost = select(records.c.kind, records.c.key).select_from(records.outerjoin(journal, named))
        mine = records.c.broker == self._number, records.c.event.is_not(None), journal.c.sequence.is_(None)
        with self._page("keyed records"):
            for kind, key in self._connection.execute(lost.where(*mine)):
                name = bytes(key).decode(errors="replace")
                self._find(f"record {name!r} of the kind {from_column(kind)!r}", EVENT_MISSING)

    def _problem_of_letter(self, row: Row[Any]) -> str | None:
        if not is_intact(row.delivery, row.envelope, row.checksum):
            return WRONG_CHECKSUM
        try:
            number = shared_number(row.envelope)
            if number is None:
                decode_letter(row.envelope)
            elif number not in self._intact:
                return self._problem_of_shared(number)
        except (msgspec.DecodeError, TypeError) as problem:
            return sentence(problem)
        return None

    def _problem_of_shared(self, number: int) -> str | None:
        """Raises `msgspec.DecodeError` and TypeError. It is read in the moment of the row that names it."""
        if number < 0:
            events = dict(events_in(self._connection, self._number, self._name, [-number]))
            event = events.get(-number, EVENT_MISSING)
            return event if isinstance(event, str) else None
        table = schema.letters
        mine = table.c.broker == self._number, table.c.letter == number
        found = self._connection.execute(table.select().where(*mine)).first()
        if found is None:
            return SHARED_LETTER_MISSING
        if not is_intact(number, found.envelope, found.checksum):
            return WRONG_CHECKSUM
        decode_letter(found.envelope)
        self._intact.add(number)
        return None
