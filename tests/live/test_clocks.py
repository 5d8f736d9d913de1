"""Clocks that are wrong and clocks that jump: nothing is lost, lifetimes and redeliveries stay sane."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import palio
from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, play, until

DAY = 86_400.0
PATIENCE = {"acknowledge_within": 0.5, "first_pause": 0.1, "longest_pause": 0.2, "attempts": 1_000}
SETTINGS = {"heartbeat": 0.5, "durable": {"tick": 0.2, "settle_within": 0.1, "patience": PATIENCE}}
LINE = [("b", "a"), ("c", "b")]


def test_jumping_clocks_lose_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            for name, offset in (("a", 0.0), ("b", 40 * DAY), ("c", -40 * DAY)):
                await network.add(name).set_clock(offset)
            await network.build(LINE)
            publishers = [Publisher("p"), Publisher("q")]
            for publisher, broker in zip(publishers, "ac", strict=True):
                await publisher.open(network[broker].address)
            takers = [Taker("at c", "value < 50"), Taker("at b", "true"), Taker("at a", "value > 50")]
            for taker, broker in zip(takers, "cba", strict=True):
                await taker.open(network[broker].address, ready="network")
            for offset in (DAY, -DAY, 3_600.0, 0.0):
                for name in "abc":
                    await network[name].set_clock(offset)
                await asyncio.gather(*[one.publish(50) for one in publishers])
                for taker in takers:
                    await taker.complete(publishers)
            for name, offset in (("a", -DAY), ("c", -2 * DAY)):  # its own journal is from the future
                await network[name].set_clock(offset)
                network[name].kill()
                await network[name].start()
            await network.linked()
            await asyncio.gather(*[one.publish(50) for one in publishers])
            await finished(publishers, takers)

    play(scene)


def test_after_the_clock_was_set_back_redeliveries_come_and_lifetimes_end(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            node = network.add("a")
            await node.set_clock(0.0)
            await node.start()
            async with palio.connect(node.address) as client:
                subscription = await client.subscribe("true", durable="d")
                await node.set_clock(DAY)
                await client.publish({"number": 1})
                await node.set_clock(-DAY)
                await client.publish({"number": 2})
                attempts: dict[int, int] = {}
                while (
                    min(attempts.get(1, 0), attempts.get(2, 0)) < 3
                ):  # nobody acknowledges them: they come again
                    event = await subscription.next(timeout=30)
                    attempts[event["number"]] = event.attempt
                await subscription.detach()
                await client.publish({"number": 3}, lifetime=timedelta(seconds=0.5))
                await client.publish({"number": 4}, lifetime=timedelta(days=3))
                await node.set_clock(2 * DAY)  # over for the one, not for the other
                await client.publish({"number": 5})
                again = await client.subscribe("true", durable="d")
                came = set()
                while 5 not in came:
                    came.add((await again.next(timeout=30))["number"])
                assert came == {1, 2, 4, 5}

    play(scene)


def test_a_clock_that_is_ahead_does_not_end_lifetimes_elsewhere_too_late(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.add("a").set_clock(0.0)
            await network.add("b").set_clock(0.0)
            await network.build([("b", "a")])
            async with (
                palio.connect(network["a"].address) as client,
                palio.connect(network["b"].address) as other,
            ):
                subscription = await other.subscribe("true", durable="d", ready="network")
                await subscription.detach()
                await client.publish({"number": 1}, lifetime=timedelta(hours=1))
                await client.publish({"number": 2}, lifetime=timedelta(hours=3))

                async def is_spooled() -> bool:
                    rows = await network["b"].inspect("subs")
                    return any(row.get("pending") == 2 for row in rows)

                await until("both are at the home", is_spooled)
                await network["b"].set_clock(7_200.0)
                again = await other.subscribe("true", durable="d")
                await client.publish({"number": 3})
                came = [(await again.next(timeout=30))["number"] for _ in range(2)]
                assert came == [2, 3]

    play(scene)
