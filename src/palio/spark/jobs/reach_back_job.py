"""`reach_back`: history from a lake, and a durable subscription that goes on where it ends, or is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession

from palio.client import Event
from palio.client.client import Client
from palio.language import PALIO, read_filter
from palio.model.body import Body
from palio.model.filter import Filter
from palio.spark.jobs.outputs import write_table
from palio.spark.lake.archiving import position_of
from palio.spark.lake.table import read_lake
from palio.spark.lookback.reach_back import Work, follow_from, give_up, with_client
from palio.spark.source.moments import Moment, moment
from palio.store.lake.manifests import Lake

# Seconds for which a subscription that is of no use is tried to be ended.
_ENDING = 10.0

# Does something with a client of a broker.
Ask = Callable[[Work], None]


class ReachedBack(msgspec.Struct, frozen=True):
    """The past, and the subscription that has all that follows; how many events were handed over."""

    durable: str
    past: DataFrame
    events: int | None = None
    output: str | None = None


def reach_back(
    spark: SparkSession,
    lake: str,
    filter: str | Filter,
    *,
    durable: str,
    broker: str | Ask,
    dialect: str = PALIO,
    since: Moment = None,
    output: str | None = None,
    each: Callable[[Event], None] | None = None,
    anew: bool = False,
) -> ReachedBack:
    """Make a new durable subscription that begins where a lake ends, and hand over what the lake has before.

    `broker` is an address, or something that runs what it is given with a client of it. The past goes to
    `output` as Parquet, a new folder, or to `each`, one journal after the other, each in its order; without
    either it is in the result, to be read. If anything goes wrong until then, the subscription is ended, and
    the same call begins anew. `anew` first ends one of the same name, with all that waits for it.

    Raises `NameTaken`, `DataLoss`, `NoLake`, `WrongOption`, and what the broker refuses with.
    """
    parsed = read_filter(filter, dialect).require_satisfiable()
    begin = moment("since", None if since == "all" else since, 0.0)
    ask = partial(with_client, broker) if isinstance(broker, str) else broker
    place = Lake(lake)
    state = place.state()

    async def start(client: Client) -> None:
        if anew:
            await give_up(client, durable)
        await follow_from(client, parsed, durable, position_of(state), begin)

    async def end(client: Client) -> None:
        async with asyncio.timeout(_ENDING):
            await give_up(client, durable)

    ask(start)
    try:
        past = read_lake(spark, place, filter=parsed, since=begin, state=state)
        if output is not None:
            write_table(past, output)
        return ReachedBack(durable, past, None if each is None else _hand_over(past, each), output)
    except BaseException:
        ask(end)
        raise


def _hand_over(past: DataFrame, each: Callable[[Event], None]) -> int:
    """One event after the other; a part of them at a time comes here."""
    columns = ("journal", "sequence", "unix_micros(time) AS time", "id", "payload")
    events = 0
    for row in past.orderBy("journal", "sequence").selectExpr(*columns).toLocalIterator():
        journal, body = row["journal"], Body(bytes(row["payload"]), row["id"])
        each(Event(journal, row["sequence"], row["time"] / 1e6, 0, journal, body))
        events += 1
    return events
