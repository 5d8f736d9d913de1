"""Durable subscribers that come back at another broker: what waits for them follows, what they did does not."""

from __future__ import annotations

import asyncio
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
