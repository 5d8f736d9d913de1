"""`reach_back`: a new durable subscription that begins where a lake ends, and the table of what is before that.

For brokers that do not know of the lake: those with the setting `lake` reach back by themselves. What is
promised is the same: together table and subscription have every event once. First the subscription is made,
with the position that one version of the lake states, so that from then on journals keep what follows; then
that version is read, of which every event lies at or before that position.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from palio.client.blocking import LoopThread
from palio.client.client import Client
from palio.client.durable import DurableSubscription
from palio.language import PALIO, read_filter
from palio.model.errors import FilterDiffers, NoSuchSubscription
from palio.model.filter import Filter
from palio.spark.errors import DataLoss, JournalForked, NameTaken
from palio.spark.lake.archiving import position_of
from palio.spark.lake.table import read_lake
from palio.spark.source.from_broker import connected
from palio.spark.source.journals import JournalStanding
from palio.spark.source.moments import Moment, moment
from palio.spark.source.offsets import Offset, require_same
from palio.spark.source.reading import struct_of
from palio.store.lake.manifests import Lake

Work = Callable[[Client], Coroutine[Any, Any, None]]

# Seconds within which the whole network has to know of the subscription.
WITHIN = 60.0


def reach_back(
    spark: SparkSession,
    lake: str,
    address: str,
    filter: str | Filter,
    *,
    durable: str,
    dialect: str = PALIO,
    since: Moment = None,
    schema: str | StructType | None = None,
) -> DataFrame:
    """What a lake has of a filter; a durable subscription of that name has all that follows, from now on.

    Columns are those of `palio.spark.read`. Who takes from the subscription (`palio sub --durable …`,
    `client.subscribe(…, durable=…)`) goes on exactly where the table ends. What a lake has is read without
    asking for rights; what follows is what the token in PALIO_TOKEN may see.

    Raises `NameTaken`, `DataLoss` if a journal does not reach back to the lake, `NoLake`, `NotConnected`, and
    what the broker refuses with: then there is no subscription.
    """
    place = Lake(lake)
    state = place.state()
    parsed = read_filter(filter, dialect)
    begin = moment("since", since, 0.0)
    with_client(address, lambda client: follow_from(client, parsed, durable, position_of(state), begin))
    wanted = None if schema is None else struct_of(schema)
    return read_lake(spark, place, schema=wanted, filter=parsed, since=begin, state=state)


def with_client(address: str, work: Work) -> None:
    """Do something with a client of a broker. Raises `NotConnected`, and what the work raises."""
    thread = LoopThread()
    try:
        client = thread.run(connected(address))
        try:
            thread.run(work(client))
        finally:
            thread.run(client.close())
    finally:
        thread.stop()


async def follow_from(client: Client, filter: Filter, durable: str, position: Offset, since: float) -> None:
    """Make a durable subscription that begins after positions, and let go of it.

    Of a journal that they do not name it has everything. Raises `NameTaken`, `DataLoss` and `JournalForked`.
    """
    positions = position.positions
    try:
        subscription = await client.subscribe(
            filter,
            durable=durable,
            since=since or "all",
            after=positions,
            lineages=position.lineages,
            ready="network",
            in_flight=1,  # it is for somebody else
            timeout=WITHIN,
        )
    except FilterDiffers:
        raise NameTaken(durable) from None
    assert isinstance(subscription, DurableSubscription)
    if not subscription.created:
        await subscription.detach()
        raise NameTaken(durable)
    # From here on journals keep what it has not read. Was something gone by then?
    listed = await client.journals()
    standings = [JournalStanding(one.origin, one.trimmed, one.head, one.lineage) for one in listed.journals]
    try:
        require_same(position, standings)
    except JournalForked:
        await subscription.unsubscribe()
        raise
    for one in listed.journals:
        if one.trimmed > positions.get(one.origin, one.trimmed):
            await subscription.unsubscribe()
            raise DataLoss(one.origin, positions[one.origin] + 1, one.trimmed + 1)
    await subscription.detach()


async def give_up(client: Client, durable: str) -> None:
    """End a durable subscription for good, if there is one of that name."""
    with suppress(NoSuchSubscription):
        await client.remove(durable, timeout=WITHIN)
