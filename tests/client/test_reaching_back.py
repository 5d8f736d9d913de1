"""`since`: history first, then what is published, without gap or duplicate."""

import asyncio
from datetime import UTC, datetime

import pytest

import palio
from palio import testing


async def take(subscription, count):
    return [(await subscription.next(timeout=10))["n"] for _ in range(count)]


async def test_all_of_history_then_the_present():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.publish([{"n": n} for n in range(300)])
        history = await client.subscribe("n >= 0", since="all")
        writing = asyncio.create_task(_write(client, range(300, 600)))
        assert await take(history, 600) == list(range(600))
        await writing
        assert history.statistics().dropped == {}


async def _write(client, numbers):
    for n in numbers:
        await client.publish({"n": n})


async def while_time_passes(clock, doing):
    """What needs the broker's time to pass."""
    task = asyncio.ensure_future(doing)
    while not task.done():
        await clock.advance(0.1)
        await asyncio.sleep(0)
    return await task


@pytest.mark.parametrize("since", [1_000_000_090.0, datetime.fromtimestamp(1_000_000_090, UTC)])
async def test_since_a_moment(since):
    clock = testing.Clock(start=1_000_000_000.0)
    async with testing.broker(journal=True, clock=clock) as address, palio.connect(address) as client:
        for n in range(4):
            await client.publish({"n": n})
            await clock.advance(60)
        history = await while_time_passes(clock, client.subscribe("n >= 0", since=since))
        assert await while_time_passes(clock, take(history, 2)) == [2, 3]


async def test_a_moment_needs_a_zone():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        with pytest.raises(palio.PalioError, match="zone"):
            await client.subscribe("n >= 0", since=datetime(2026, 1, 1))


async def test_since_an_event():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.publish([{"n": n} for n in range(5)])
        history = await client.subscribe("n >= 0", since="all")
        for _ in range(2):
            await history.next(timeout=10)
        event = await history.next(timeout=10)
        again = await client.subscribe("n >= 0", since=event.position)
        assert await take(again, 2) == [3, 4]


async def test_from_the_journals_of_the_whole_network():
    async with (
        testing.network([("one", "two")], journal=True) as network,
        palio.connect(network["one"].address) as one,
        palio.connect(network["two"].address) as two,
    ):
        await one.publish([{"n": n} for n in range(5)])
        await two.publish([{"n": n} for n in range(5, 10)])
        history = await two.subscribe("n >= 0", since="all")
        assert sorted(await take(history, 10)) == list(range(10))


async def test_reaching_back_goes_on_after_the_connection_was_cut():
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address, name="reader") as reader:
        await reader.publish([{"n": n} for n in range(500)])
        history = await reader.subscribe("n >= 0", since="all", in_flight=16)
        seen = await take(history, 100)
        broker.cut_off("reader")
        seen += await take(history, 400)
        assert seen == list(range(500))


async def test_a_temporary_subscription_ends_with_its_use():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        async with await client.subscribe("n >= 0", since="all"):
            assert len(await client.inspect("subs")) == 1
        assert await client.inspect("subs") == []
