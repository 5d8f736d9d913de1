"""Quarantine: what nobody can read is put aside. A broker starts without it, and nothing is lost.

A subscription goes aside with all that belongs to it, its positions and letters, as it lay there; a letter by
itself. Each is one row of `palio_aside`, with its name and the reason, for people who want to have it back and
for versions that can read it.

Of an event in the journal that is damaged a copy goes aside, once. The row stays where it is until it is
trimmed as all others are: the sequences have no gaps, and the chain of checksums can be followed across it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import Connection, Row, Table, create_engine, func, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from palio.model.naming import event_name
from palio.store import schema
from palio.store.letters import shared_number
from palio.store.records import from_column, to_column

log = logging.getLogger("palio.store")

Owner: TypeAlias = tuple[int, str]  # the number of a broker, and the name of a subscription

EVENT = "event"  # what an event in the journal is called

_OF_SUBSCRIPTION = (schema.positions, schema.spool, schema.dead)


class Aside(msgspec.Struct, frozen=True):
    """Something that was put aside: what it is, its name or that of its durable subscription, and why."""

    what: str
    name: str
    reason: str


def put_subscription(connection: Connection, row: Row[Any], reason: str) -> None:
    """Put a durable subscription aside, with all that belongs to it."""
    number = row.subscription
    content = {schema.subscriptions.name: [_plain(row)]}
    for table in _OF_SUBSCRIPTION:
        mine = table.c.subscription == number
        content[table.name] = [_plain(one) for one in connection.execute(table.select().where(mine))]
        connection.execute(table.delete().where(mine))
    _with_shared(connection, row.broker, content)
    table = schema.subscriptions
    connection.execute(table.delete().where(table.c.subscription == number))
    _put(connection, row.broker, Aside("durable subscription", from_column(row.name), reason), content)


def put_letter(connection: Connection, table: Table, row: Row[Any], owner: Owner, reason: str) -> None:
    """Put a delivery or a dead letter of a subscription aside."""
    connection.execute(
        table.delete().where(table.c.subscription == row.subscription, table.c.delivery == row.delivery)
    )
    kind = "delivery" if table is schema.spool else "dead letter"
    what = f"{kind} {row.delivery} of the durable subscription"
    broker, name = owner
    content = {table.name: [_plain(row)]}
    _with_shared(connection, broker, content)
    _put(connection, broker, Aside(what, name, reason), content)


def _with_shared(connection: Connection, broker: int, content: dict[str, list[dict[str, Any]]]) -> None:
    """Adds copies of the letters that deliveries share with others, who may still wait for them; and of events
    of the journal.
    """
    numbers: list[int | None] = []
    for row in content.get(schema.spool.name, ()):
        with suppress(msgspec.DecodeError, TypeError):
            numbers.append(shared_number(row["envelope"]))
    named = sorted({number for number in numbers if number is not None})
    for table, column, places in (
        (schema.letters, schema.letters.c.letter, [number for number in named if number > 0]),
        (schema.journal, schema.journal.c.sequence, [-number for number in named if number < 0]),
    ):
        shared = [
            _plain(found)
            for place in places
            for found in connection.execute(table.select().where(table.c.broker == broker, column == place))
        ]
        if shared:
            content[table.name] = shared


def put_event(connection: Connection, broker: int, origin: str, sequence: int, reason: str) -> bool:
    """Put a copy of an event in the journal aside. Returns whether there was none yet."""
    name = event_name(origin, sequence)
    there = schema.aside.c
    known = select(there.aside).where(
        there.broker == broker, there.what == EVENT, there.name == to_column(name)
    )
    if connection.execute(known).first() is not None:
        return False
    table = schema.journal
    row = connection.execute(table.select().where(table.c.broker == broker, table.c.sequence == sequence)).one()
    _put(connection, broker, Aside(EVENT, name, reason), {table.name: [_plain(row)]})
    return True


def count(connection: Connection, broker: int) -> int:
    """How many things of a broker are aside."""
    table = schema.aside
    found = connection.execute(select(func.count()).select_from(table).where(table.c.broker == broker))
    return int(found.scalar_one())


def listed(url: str) -> list[Aside]:
    """What is aside in a store, of whichever broker; nothing in one that has not been made yet."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    table = schema.aside
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(table.name):
                return []
            rows = connection.execute(
                select(table.c.what, table.c.name, table.c.reason).order_by(table.c.aside)
            )
            return [Aside(*map(from_column, row)) for row in rows]
    except SQLAlchemyError:  # whoever opens it says what is wrong with it
        return []
    finally:
        engine.dispose()


def _put(connection: Connection, broker: int, aside: Aside, content: Any) -> None:
    connection.execute(
        schema.aside.insert().values(
            broker=broker,
            what=to_column(aside.what),
            name=to_column(aside.name),
            reason=to_column(aside.reason),
            content=msgspec.msgpack.encode(content),
        )
    )
    log.error("The %s %r cannot be read and was put aside: %s", aside.what, aside.name, aside.reason)


def _plain(row: Row[Any]) -> dict[str, Any]:
    return {
        name: bytes(value) if isinstance(value, memoryview) else value for name, value in row._mapping.items()
    }
