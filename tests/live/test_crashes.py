"""`kill -9` of a broker under load, and its return on the same data: nothing that was confirmed is lost."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, play, until

LINE = [("b", "a"), ("c", "b")]  # a: origin, b: in between, c: home
RING = [("b", "a"), ("c", "b"), ("d", "c"), ("d", "a")]
Links = list[tuple[str, str]]
QUICK = {"tick": 0.2, "settle_within": 0.1}
EVENTS = 300


async def crash(folder: Path, seed: int, victims: list[str], links: Links = LINE, kind: str = "peer") -> None:
    """Publish at `a` and at `c`, take at both, and kill the victims one after the other meanwhile."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with Network(folder, heartbeat=1.0, durable=QUICK) as network:
        await network.build(links, kind=kind)
        publishers = [Publisher(f"p{number}", seed) for number in range(3)]
        for number, publisher in enumerate(publishers):
            await publisher.open(network["a" if number < 2 else "c"].address)
        takers = [Taker("some", "value < 50"), Taker("all", "true"), Taker("here", "value > 20")]
        for taker, broker in zip(takers, ("c", "c", "a"), strict=True):
            await taker.open(network[broker].address, ready="network")
        events = EVENTS * len(victims)
        load = asyncio.gather(*[one.publish(events, pause=0.002) for one in publishers])
        for number, victim in enumerate(victims):
            least = EVENTS * number + chance.randrange(20, EVENTS // 2)
            await until("some are confirmed", lambda least=least: len(publishers[0].confirmed) >= least)
            network[victim].kill()
            await asyncio.sleep(chance.random() * 0.3)  # how long it is away does not matter
            await network[victim].start()
        await load
        await finished(publishers, takers)


def test_no_killed_broker_loses_anything(tmp_path: Path) -> None:
    """The origin, who is between, the home: one after the other."""
    play(lambda: crash(tmp_path, random.randrange(1_000_000), list("abc")))


def test_a_broker_killed_in_a_ring_loses_nothing(tmp_path: Path) -> None:
    play(lambda: crash(tmp_path, random.randrange(1_000_000), ["b"], RING, "graph"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_brokers_killed_again_and_again_in_a_ring_lose_nothing(tmp_path: Path, seed: int) -> None:
    victims = random.Random(seed).choices("abcd", k=5)
    play(lambda: crash(tmp_path, seed, victims, RING, "graph"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_brokers_killed_again_and_again_lose_nothing(tmp_path: Path, seed: int) -> None:
    victims = random.Random(seed).choices("abc", k=5)
    play(lambda: crash(tmp_path, seed, victims))
