"""Durable subscriptions that are paused and resumed, and moved to another position."""

import pytest

import palio
from palio import testing
from tests.client.test_durable import EAGER, journaling, take


async def waiting(client, name="desk"):
    [row] = await client.inspect("subs", durable=name)
    return row


async def test_a_pause_keeps_what_comes_and_resuming_delivers_it():
    broker = journaling(durable=EAGER)
    async with broker as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk", ready="network")
        await client.publish({"n": 0})
        first = await desk.next(timeout=10)
        await client.pause("desk")
        assert desk.paused
        await first.ack(confirmed=True)  # what is out may be dealt with
        await client.publish([{"n": 1}, {"n": 2}])
        inside = broker.running.router.durable.homes.subscriptions["desk"]
        await broker.until(lambda: len(inside.outbox) == 2)
        with pytest.raises(palio.RequestTimeout):
            await desk.next(timeout=0.1)
        row = await waiting(client)
        assert (row["paused"], row["pending"], row["delivered"]) == (True, 2, 1)
        await client.resume("desk")
        assert not desk.paused
        assert await take(desk, 2) == [1, 2]
        await client.resume("desk")  # twice is once


async def test_a_pause_outlives_the_broker_and_moves_along():
    async with testing.network([("a", "b")], journal=True, durable=EAGER) as network:
        one, other = network["a"], network["b"]
        async with palio.connect(one.address) as client:
            await client.subscribe("n >= 0", durable="desk", ready="network")
            await client.pause("desk")
        await one.crash()
        await one.start()
        await network.until_linked()
        async with palio.connect(one.address) as client:
            assert (await waiting(client))["paused"]
            await client.publish({"n": 1})
        async with palio.connect(other.address) as client:
            with pytest.raises(palio.NotHome):
                await client.resume("desk")
            desk = await client.subscribe("n >= 0", durable="desk")
            assert desk.paused
            with pytest.raises(palio.RequestTimeout):
                await desk.next(timeout=0.1)
            await client.resume("desk")
            assert await take(desk, 1) == [1]
        await other.crash()
        await other.start()
        async with palio.connect(other.address) as client:
            assert not (await waiting(client))["paused"]
            await client.remove("desk")
        for broker in (one, other):
            assert not [fact for fact in broker._host.place.disk.facts if fact.kind == "paused"]


async def test_moved_back_it_delivers_again_what_was_acknowledged():
    async with journaling(durable=EAGER) as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk", ready="network")
        confirmed = await client.publish([{"n": n} for n in range(6)])
        assert await take(desk, 4) == [0, 1, 2, 3]
        assert await take(desk, 1, acknowledge=False) == [4]
        sought = await client.seek("desk", {confirmed[0].origin: confirmed[1].sequence})
        assert (sought.dropped, sought.unread) == (0, False)
        again = [await desk.next(timeout=10) for _ in range(3)]
        # What waited is delivered once, and what is read again as for the first time.
        assert sorted((event["n"], event.attempt) for event in again) == [(2, 1), (3, 1), (5, 1)]
        for event in again:
            await event.ack()
        await desk.detach()
        desk = await client.subscribe(None, durable="desk")
        assert await take(desk, 1) == [4]
        assert (await waiting(client))["pending"] == 0


async def test_moved_on_it_drops_what_waits_and_says_so_first():
    async with journaling(durable=EAGER) as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk", ready="network")
        confirmed = await client.publish([{"n": n} for n in range(6)])
        assert await take(desk, 1) == [0]
        place = {confirmed[0].origin: confirmed[3].sequence}
        assert (await client.seek("desk", place, dry=True)).dropped == 3
        assert (await waiting(client))["pending"] == 5
        assert (await client.seek("desk", place)).dropped == 3
        await desk.detach()
        desk = await client.subscribe(None, durable="desk")
        assert await take(desk, 2) == [4, 5]
        await client.publish({"n": 6})
        assert await take(desk, 1) == [6]


async def test_moved_to_a_time_it_delivers_what_was_published_since():
    clock = testing.Clock()
    async with testing.broker(journal=True, clock=clock) as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk")
        for n in range(4):
            await client.publish({"n": n})
            await clock.advance(5.0)
            assert await take(desk, 1) == [n]
            await clock.advance(55.0)
        for since, expected in ((clock.now() - 130.0, [2, 3]), ("all", [0, 1, 2, 3])):
            await client.seek("desk", since)
            await clock.advance(5.0)
            assert await take(desk, len(expected)) == expected
        await client.publish({"n": 4})
        await clock.advance(1.0)
        assert (await client.seek("desk", "now")).dropped == 1
        await client.publish({"n": 5})
        await clock.advance(5.0)
        await desk.detach()
        desk = await client.subscribe(None, durable="desk")
        assert await take(desk, 1) == [5]
        for wrong in (clock.now() + 100.0, "yesterday", {}, {"broker": -1}):
            with pytest.raises(palio.PalioError):
                await client.seek("desk", wrong)


async def test_what_was_moved_stays_so_after_a_crash():
    broker = journaling(durable=EAGER)
    async with broker as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk", ready="network")
        confirmed = await client.publish([{"n": n} for n in range(300)])
        assert len(await take(desk, 60)) == 60
        await client.seek("desk", {confirmed[0].origin: confirmed[9].sequence})
        await broker.crash()
        await broker.start()
        seen = []
        while len(seen) < 290:
            event = await desk.next(timeout=10)
            seen.append(event["n"])
            await event.ack()
        assert sorted(seen) == list(range(10, 300))
