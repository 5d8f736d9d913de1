"""History goes on in the lake: whoever reaches back behind the journal gets every event once, and in order.

Broker, store, lake and Spark are real; the journal is trimmed as an operator does it.
"""

import asyncio
import time

import pytest

import palio
from palio.broker.broker import Broker
from palio.broker.settings import Settings
from palio.routing.durable.desk import DurableSettings
from palio.spark.archiving import archive

pytest.importorskip("pyspark", reason="pyspark is not installed")

QUICK = DurableSettings(tick=0.1, settle_within=0.02, page=64)


class Scene:
    """A broker with a store and a lake in a folder, and Spark to archive the one to the other."""

    def __init__(self, spark, folder, **settings):
        self.spark = spark
        self.place = str(folder / "lake")
        self.settings = Settings(
            name="b",
            listen="127.0.0.1:0",
            http="off",
            data=str(folder / "data"),
            lake=self.place,
            durable=QUICK,
            **settings,
        )
        self.broker = None

    async def __aenter__(self):
        await self.start()
        return self

    async def __aexit__(self, *problem):
        await self.broker.stop()

    async def start(self):
        self.broker = Broker(self.settings)
        await self.broker.start()

    async def restart(self):
        await self.broker.stop()
        await self.start()

    @property
    def address(self):
        return f"palio://127.0.0.1:{self.broker.port}"

    def connect(self, **options):
        return palio.connect(self.address, **options)

    async def archive(self):
        """Bring the lake up to the journal."""
        url = self.settings.store_url
        return await asyncio.to_thread(archive, self.spark, url, self.place, rows_per_task=10_000)

    async def let_go(self, client, upto=None):
        """Archive all, and let the journal go."""
        await self.archive()
        await self.restart()  # it hears now that the lake is further
        await asyncio.sleep(0)
        return await client.trim_journal(upto)


def numbered(count, first=0):
    return [{"class": f"c{n % 3}", "n": n} for n in range(first, first + count)]


async def take(subscription, count):
    return [(await subscription.next(timeout=20))["n"] for _ in range(count)]


async def test_all_of_history_then_the_present(spark, tmp_path):
    async with Scene(spark, tmp_path) as scene:
        async with scene.connect() as client:
            await client.publish(numbered(1_000))
            await scene.archive()
        await scene.restart()
        async with scene.connect() as client:
            trimmed = await client.trim_journal(900)
            assert trimmed.journal.trimmed == 900
            since = time.time()
            history = await client.subscribe("n >= 0", since="all")
            await client.publish(numbered(100, 1_000))
            assert await take(history, 1_100) == list(range(1_100))
            assert (await client.survey("n >= 0")).count == 1_100
            assert [event["n"] async for event in client.replay("n < 950")] == list(range(950))
            assert since
