"""Durable subscribers that come back at another broker: what waits for them follows, what they did does not."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

import palio
from palio import PalioError
from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, play, until

LINE = [("b", "a"), ("c", "b")]
SETTINGS = {"heartbeat": 0.5, "durable": {"tick": 0.2, "settle_within": 0.1}}


def test_the_backlog_follows_to_another_broker(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.build(LINE)
            publisher, taker = Publisher("p"), Taker("mover", "value < 80")
            await publisher.open(network["b"].address)
            await taker.open(network["a"].address, ready="network")
            load = asyncio.create_task(publisher.publish(1_000, pause=0.002))
            for stop, home in enumerate("cbac"):
                least = 150 * (stop + 1)
                await until("some have come", lambda least=least: len(taker.first) >= least)
                await taker.close()  # some of what came is not acknowledged
                await taker.open(network[home].address)
                assert taker.subscription.home == home
            await load
            await finished([publisher], [taker])

    play(scene)


def test_two_takers_of_one_name_take_it_from_each_other(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.build(LINE)
            publisher, taker = Publisher("p"), Taker("one", "true")
            await publisher.open(network["b"].address)
            await taker.open(network["a"].address, ready="network")
            await publisher.publish(50)
            await taker.complete([publisher])
            async with palio.connect(network["c"].address, request_timeout=60) as other:
                await other.subscribe("true", durable="one")
                with pytest.raises(palio.SubscriptionEnded):
                    await asyncio.wait_for(taker._reading, 30)
            await taker.client.close()
            taker.check([publisher])
            await publisher.close()

    play(scene)


def test_a_home_that_is_away_is_told_and_not_guessed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.build(LINE)
            publisher, taker = Publisher("p"), Taker("stranded", "true")
            await publisher.open(network["b"].address)
            await taker.open(network["a"].address, ready="network")
            taker.acknowledging = False
            await publisher.publish(100)
            await until("some have come", lambda: taker.first)
            network["a"].kill()
            await taker.close()
            taker.acknowledging = True
            async with palio.connect(network["c"].address, request_timeout=60) as client:
                with pytest.raises(PalioError, match=r"stranded.*cannot be reached") as told:
                    await client.subscribe("true", durable="stranded")
                assert getattr(told.value, "error", type(told.value).__name__) == "HomeUnreachable"
            await publisher.publish(100)
            await network["a"].start()
            await network.linked()
            await taker.open(network["c"].address)
            await finished([publisher], [taker])

    play(scene)


def test_a_client_of_several_brokers_goes_on_at_another(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.build(LINE)
            publisher, taker = Publisher("p"), Taker("t", "true", heartbeat=0.5)
            await publisher.open(network["b"].address)
            both = f"{network['a'].address},127.0.0.1:{network['c'].port}"
            await taker.open(both, ready="network")
            passing = await taker.client.subscribe("true", ready="network")
            await publisher.publish(100)
            await taker.complete([publisher])
            network["a"].kill()
            await until("the client is at c", lambda: taker.client.broker == "c")
            before = passing.statistics().received

            async def passes() -> bool:
                await publisher.publish(1)
                return passing.statistics().received > before

            await until("what is not durable comes again", passes)
            await network["a"].start()
            await network.linked()
            await publisher.publish(100)
            taker.at(network["c"])
            await finished([publisher], [taker])

    play(scene)


async def wander(folder: Path, seed: int) -> None:
    """Move from home to home while homes are killed and come back."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with Network(folder, **SETTINGS) as network:
        await network.build(LINE)
        publisher, taker = Publisher("p", seed), Taker("wanderer", "value < 80")
        await publisher.open(network["b"].address)
        await taker.open(network["a"].address, ready="network")
        load = asyncio.create_task(publisher.publish(2_000, pause=0.01))
        for _ in range(6):
            await taker.close()
            home, victim = chance.choice("abc"), chance.choice("abc")
            moving = asyncio.create_task(taker.open(network[home].address, patience=60.0))
            await asyncio.sleep(chance.random() * 0.2)  # at any point of the move
            network[victim].kill()
            await network[victim].start()
            await moving
            count = len(taker.first)
            await until("something comes", lambda least=count: len(taker.first) > least or load.done())
        await load
        await finished([publisher], [taker])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_moving_while_homes_are_killed_loses_nothing(tmp_path: Path, seed: int) -> None:
    play(lambda: wander(tmp_path, seed))
