"""The tables, the same in SQLite and PostgreSQL, and how an older store becomes a present one.

Several brokers may share a PostgreSQL database: each has a row in `palio_brokers`, and its number there, like
that of a subscription, is what other rows are found by. The row also says how far the journal is. `head` is
the committed high-water mark: rows beyond it do not exist, since both are written in one transaction.
Rows up to `trimmed` are nobody's any more, and are deleted by and by; `swept` is how far that is.

`palio_spans` has the newest time in each `SPAN` sequences of a journal. Clocks can be set back, so times are
not in order; with spans, what is older than a moment can be passed over without reading it.

What lies here for long has checksums (`checksums`): each event and letter its own, and all that was appended
together a link of a chain, the last of which is in the row of the broker. Rows of an earlier version have none.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)

from palio.store.errors import StoreTooNew, StoreTooOld

SPAN = 4_096

metadata = MetaData()

# SQLite numbers rows by itself only in a column of exactly this type.
_Number = BigInteger().with_variant(Integer, "sqlite")

version = Table("palio_schema", metadata, Column("version", Integer, nullable=False))

brokers = Table(
    "palio_brokers",
    metadata,
    Column("broker", _Number, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("incarnation", BigInteger, nullable=False),
    Column("groups", BigInteger, nullable=False),  # how many groups of writes were committed
    Column("head", BigInteger, nullable=False),
    Column("trimmed", BigInteger, nullable=False),
    Column("swept", BigInteger, nullable=False),
    Column("chain", BigInteger),  # of the head
    Column("restored", Text),  # from which copy, and when, if it was not opened since
)

# The lineage of each journal (`palio.protocol.durable.lineage`): an opening is written here before all else.
lineage = Table(
    "palio_lineage",
    metadata,
    Column("broker", BigInteger, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("id", Text, nullable=False),
    Column("begins", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Without row ids a SQLite table is one tree, ordered by its key: an append touches its last page only.
journal = Table(
    "palio_journal",
    metadata,
    Column("broker", BigInteger, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("time", Float(53), nullable=False),
    Column("publisher", Text, nullable=False),
    Column("id", Text),
    Column("body", LargeBinary, nullable=False),
    Column("checksum", BigInteger),
    Column("chain", BigInteger),  # in the last row of what was appended together
    sqlite_with_rowid=False,
)

# The ids of what was trimmed while it could still be published again.
ids = Table(
    "palio_ids",
    metadata,
    Column("broker", BigInteger, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("time", Float(53), nullable=False),
    Column("publisher", Text, nullable=False),
    Column("id", Text, nullable=False),
    sqlite_with_rowid=False,
)

spans = Table(
    "palio_spans",
    metadata,
    Column("broker", BigInteger, primary_key=True),
    Column("span", BigInteger, primary_key=True),
    Column("newest", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

# What a broker remembers for ever (`palio.routing.durable.facts`). A fact without a home has an empty one.
facts = Table(
    "palio_facts",
    metadata,
    Column("broker", BigInteger, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("home", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
PUT_FACT = text(
    "INSERT INTO palio_facts (broker, kind, subject, home, value) "
    "VALUES (:broker, :kind, :subject, :home, :value) "
    "ON CONFLICT (broker, kind, subject, home) DO UPDATE SET value = excluded.value"
)
DROP_FACT = text(
    "DELETE FROM palio_facts WHERE broker = :broker AND kind = :kind AND subject = :subject AND home = :home"
)

subscriptions = Table(
    "palio_subscriptions",
    metadata,
    Column("subscription", _Number, primary_key=True, autoincrement=True),
    Column("broker", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("filter", Text, nullable=False),  # as people wrote it, to be shown; empty if nobody did
    Column("since", Float(53), nullable=False),
    Column("moving_to", Text),
    Column("next_delivery", BigInteger, nullable=False),
    Column("linger", Float(53)),
    Column("form", LargeBinary),  # of the filter; null if an earlier version has written the row
    Column("retry", LargeBinary),
    Column("gaps", LargeBinary),  # what it may have missed; null if nothing
    UniqueConstraint("broker", "name"),
)

positions = Table(
    "palio_positions",
    metadata,
    Column("subscription", BigInteger, primary_key=True),
    Column("origin", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("lineage", LargeBinary),  # of the journal that it is a position of; null if that is not known
    sqlite_with_rowid=False,
)


def _letters(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("subscription", BigInteger, primary_key=True),
        Column("delivery", BigInteger, primary_key=True),
        Column("attempts", BigInteger, nullable=False),
        Column("envelope", LargeBinary, nullable=False),
        Column("checksum", BigInteger),
        sqlite_with_rowid=False,
    )


spool = _letters("palio_spool")
dead = _letters("palio_dead")

# What several deliveries share (`letters`): of these the spool has the number; of events of the journal too.
letters = Table(
    "palio_letters",
    metadata,
    Column("broker", BigInteger, primary_key=True),
    Column("letter", BigInteger, primary_key=True),
    Column("envelope", LargeBinary, nullable=False),
    Column("checksum", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Current values of things (`keyed`). They may be large, so rows are not kept in the tree of their keys. A row
# that names an event of the journal has no value of its own, and is found by that.
records = Table(
    "palio_records",
    metadata,
    Column("broker", BigInteger, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("key", LargeBinary, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("event", BigInteger),
)
_EVENTS = Index(
    "palio_records_of_events",
    records.c.broker,
    records.c.event,
    sqlite_where=records.c.event.is_not(None),
    postgresql_where=records.c.event.is_not(None),
)

# The operation log (`operations`). `total` is how many bytes all rows up to this one have taken.
operations = Table(
    "palio_operations",
    metadata,
    Column("broker", BigInteger, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("time", Float(53), nullable=False),
    Column("binding", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("result", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# What could not be read (`aside`): all rows of it as a map from tables to rows, in MessagePack.
aside = Table(
    "palio_aside",
    metadata,
    Column("aside", _Number, primary_key=True, autoincrement=True),
    Column("broker", BigInteger, nullable=False),
    Column("what", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
)


# Migrations


def _add_spans(connection: Connection) -> None:
    """Version 2: what is older than a moment can be passed over."""
    spans.create(connection)
    connection.execute(
        text(
            "INSERT INTO palio_spans (broker, span, newest) "
            f"SELECT broker, sequence / {SPAN}, max(time) FROM palio_journal GROUP BY broker, sequence / {SPAN}"
        )
    )


def _add_linger(connection: Connection) -> None:
    """Version 3: a subscription says how long it outlives its taker."""
    connection.execute(text("ALTER TABLE palio_subscriptions ADD COLUMN linger DOUBLE PRECISION"))


def _add_forms(connection: Connection) -> None:
    """Version 4: filters are kept in their form, and what cannot be read is put aside.

    The forms of filters that were kept as text are added when a broker reads its rows.
    """
    aside.create(connection)
    kind = LargeBinary().compile(connection.dialect)
    connection.execute(text(f"ALTER TABLE palio_subscriptions ADD COLUMN form {kind}"))


def _add_retry(connection: Connection) -> None:
    """Version 5: a subscription says how often, and after which pauses, things are tried again."""
    kind = LargeBinary().compile(connection.dialect)
    connection.execute(text(f"ALTER TABLE palio_subscriptions ADD COLUMN retry {kind}"))


# What the names of cursors began with that were no readers of the journal, and was kept without a kind.
_PREFIXES = {f"{kind}: ": kind for kind in ("held", "ended", "paused", "known", "forgotten", "introduced")}
_WITH_HOME = ("reader", "ended")
_CURSORS = text(
    "SELECT broker, reader, sequence FROM palio_readers "
    "WHERE broker > :broker OR (broker = :broker AND reader > :reader) ORDER BY broker, reader LIMIT 10000"
)


def _add_facts(connection: Connection) -> None:
    """Version 6: facts have kinds, and homes of their own, instead of names with a prefix."""
    facts.create(connection)
    last: dict[str, object] = {"broker": -1, "reader": ""}
    while rows := connection.execute(_CURSORS, last).all():
        connection.execute(PUT_FACT, [_fact_of(*row) for row in rows])
        last = {"broker": rows[-1].broker, "reader": rows[-1].reader}
    connection.execute(text("DROP TABLE palio_readers"))


def _fact_of(broker: int, cursor: str, value: int) -> dict[str, object]:
    prefix = next((one for one in _PREFIXES if cursor.startswith(one)), "")
    kind, subject, home = _PREFIXES.get(prefix, "reader"), cursor.removeprefix(prefix), ""
    if kind in _WITH_HOME and " @" in subject:
        subject, _, home = subject.rpartition(" @")
    return {"broker": broker, "kind": kind, "subject": subject, "home": home, "value": value}


def _add_records(connection: Connection) -> None:
    """Version 7: keyed records."""
    records.create(connection)


def _add_lineage(connection: Connection) -> None:
    """Version 8: journals have lineages, and positions say of which one they are.

    Of positions that were there nobody knows that; it is learned when the origin is next heard of.
    """
    lineage.create(connection)
    kind = LargeBinary().compile(connection.dialect)
    connection.execute(text(f"ALTER TABLE palio_positions ADD COLUMN lineage {kind}"))
    connection.execute(text(f"ALTER TABLE palio_subscriptions ADD COLUMN gaps {kind}"))


def _add_checksums(connection: Connection) -> None:
    """Version 9: events and letters have checksums, and a journal a chain of them; restored copies say so."""
    for table, column, kind in (
        ("palio_brokers", "chain", "BIGINT"),
        ("palio_brokers", "restored", "TEXT"),
        ("palio_journal", "checksum", "BIGINT"),
        ("palio_journal", "chain", "BIGINT"),
        ("palio_spool", "checksum", "BIGINT"),
        ("palio_dead", "checksum", "BIGINT"),
    ):
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column} {kind}"))


def _add_operations(connection: Connection) -> None:
    """Version 10: the operation log."""
    operations.create(connection)


def _add_letters(connection: Connection) -> None:
    """Version 11: letters that several deliveries share."""
    letters.create(connection)


def _name_events(connection: Connection) -> None:
    """Version 12: deliveries name events of the journal, which no earlier version finds there."""


def _add_events_of_records(connection: Connection) -> None:
    """Version 13: keyed records name events of the journal."""
    if "event" not in [column["name"] for column in inspect(connection).get_columns(records.name)]:
        connection.execute(text("ALTER TABLE palio_records ADD COLUMN event BIGINT"))
        _EVENTS.create(connection)


# The step at index i leads from version i + 1 to the next.
Step = Callable[[Connection], None]
MIGRATIONS: tuple[Step, ...] = (
    _add_spans,
    _add_linger,
    _add_forms,
    _add_retry,
    _add_facts,
    _add_records,
    _add_lineage,
    _add_checksums,
    _add_operations,
    _add_letters,
    _name_events,
    _add_events_of_records,
)
VERSION = len(MIGRATIONS) + 1


def prepare(connection: Connection, store: str) -> None:
    """Create the tables, or bring those of an earlier version up to date; within the caller's transaction.

    Raises `StoreTooNew`.
    """
    if not inspect(connection).has_table(version.name):
        metadata.create_all(connection)
        connection.execute(version.insert().values(version=VERSION))
        return
    found = version_of(connection, store)
    for step in MIGRATIONS[found - 1 :]:
        step(connection)
    if found < VERSION:
        connection.execute(version.update().values(version=VERSION))


def version_of(connection: Connection, store: str) -> int:
    """Which version a store has. Raises `StoreTooNew`."""
    found: int = connection.execute(version.select()).scalar_one()
    if found > VERSION:
        raise StoreTooNew(store, found, VERSION)
    return found


def require_present(connection: Connection, store: str) -> None:
    """Raises `StoreTooNew` or `StoreTooOld` for a store that cannot be used as it is."""
    found = version_of(connection, store)
    if found < VERSION:
        raise StoreTooOld(store, found)
