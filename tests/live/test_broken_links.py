"""Links that are cut, that swallow everything, and brokers that stand still: noticed, mended, nothing lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, play, until

LINE = [("b", "a"), ("c", "b")]
# Who dials while everything is swallowed is not waited for long.
SETTINGS = {"heartbeat": 0.5, "durable": {"tick": 0.2, "settle_within": 0.1}, "limits": {"greeting": 2.0}}
EVENTS = 100


async def settled(network: Network) -> tuple[list[Publisher], list[Taker]]:
    """A publisher at each end, a taker at each end, and something published and taken already."""
    publishers = [Publisher("left", heartbeat=0.5), Publisher("right", heartbeat=0.5)]
    takers = [Taker("at c", "value < 50", heartbeat=0.5), Taker("at a", "true", heartbeat=0.5)]
    for publisher, broker in zip(publishers, "ac", strict=True):
        await publisher.open(network[broker].address)
    for taker, broker in zip(takers, "ca", strict=True):
        await taker.open(network[broker].address, ready="network")
    await asyncio.gather(*[one.publish(EVENTS) for one in publishers])
    for taker in takers:
        await taker.complete(publishers)
    return publishers, takers


async def parted(network: Network, one: str, other: str) -> None:
    """Wait until a broker has noticed that there is no link to another."""

    async def has_noticed() -> bool:
        return other not in await network[one].neighbours()

    await until(f"{one} has noticed that {other} is away", has_noticed)


async def all_arrived(publishers: list[Publisher], takers: list[Taker]) -> None:
    """Whatever went wrong is mended: what is published now comes, and what was before."""
    await asyncio.gather(*[one.publish(EVENTS) for one in publishers])
    for taker in takers:
        await taker.complete(publishers)
        taker.check(publishers)


def test_a_broken_link_is_noticed_and_nothing_is_lost(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.build(LINE, wires=True)
            publishers, takers = await settled(network)
            wire = network.wires["b", "a"]
            for how in ("cut", "held", "slow"):
                print(f"the link is {how}")
                loads = [asyncio.create_task(one.publish(EVENTS, pause=0.002)) for one in publishers]
                if how == "slow":
                    wire.delay = 0.1
                elif how == "cut":
                    await wire.cut()
                else:
                    wire.hold()
                if how != "slow":
                    await parted(network, "a", "b")
                    await parted(network, "b", "a")
                await asyncio.gather(*loads)
                # All the while it is broken.
                await asyncio.gather(*[one.publish(EVENTS) for one in publishers])
                wire.delay = 0.0
                await wire.mend()
                await network.linked()
                await all_arrived(publishers, takers)
            await finished(publishers, takers)

    play(scene)


def test_a_broker_that_stands_still_is_noticed_and_nothing_is_lost(tmp_path: Path) -> None:
    """The origin, who is between, the home: one after the other."""

    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.build(LINE)
            publishers, takers = await settled(network)
            for which, neighbours in (("a", "b"), ("b", "ac"), ("c", "b")):
                print(f"{which} stands still")
                loads = [asyncio.create_task(one.publish(EVENTS, pause=0.002)) for one in publishers]
                network[which].freeze()
                for neighbour in neighbours:
                    await parted(network, neighbour, which)
                network[which].thaw()
                await network.linked()
                await asyncio.gather(*loads)
                await all_arrived(publishers, takers)
            await finished(publishers, takers)

    play(scene)
