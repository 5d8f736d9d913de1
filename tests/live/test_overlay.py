"""Brokers that find their links themselves: told one address, and whole again whoever is killed."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

import palio
from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, play, until

QUICK = {"tick": 0.2, "settle_within": 0.1}
NAMES = "abcdef"


async def grown(network: Network, **overlay: Any) -> None:
    """Six brokers, of which all know the first one; nobody shall have more than three neighbours."""
    for name in NAMES:
        join = [network["a"].address] if name != "a" else []
        network.add(name, overlay={"kind": "tree", "degree": 3, "look_every": 2.0, "join": join} | overlay)
        await network[name].start()
    await whole(network, NAMES)


async def tree(network: Network, names: str) -> dict[str, dict[str, Any]]:
    """What each broker says of the overlay."""
    rows = await asyncio.gather(*[network[name].inspect("overlay") for name in names])
    return {name: row for name, [row] in zip(names, rows, strict=True)}


async def whole(network: Network, names: str) -> dict[str, dict[str, Any]]:
    """Wait until these brokers are one tree, as each of them says."""

    async def is_whole() -> dict[str, dict[str, Any]] | None:
        told = await tree(network, names)
        links = {(name, other) for name, row in told.items() for other in row["links"]}
        both = all((other, name) in links for name, other in links)
        one = len({row["component"] for row in told.values()}) == 1
        return told if both and one and len(links) == 2 * (len(names) - 1) else None

    return await until(f"{names} are one tree", is_whole)


def test_brokers_that_are_told_one_address_become_a_tree_and_heal(tmp_path: Path) -> None:
    async def scene() -> None:
        seed = random.randrange(1_000_000)
        print(f"seed {seed}")
        async with Network(tmp_path, heartbeat=1.0, durable=QUICK) as network:
            network._settings["sync"] = "normal"
            for name in NAMES:
                join = [] if name == "a" else [network["a"].address]
                overlay = {"kind": "tree", "degree": 3, "look_every": 2.0, "join": join}
                network.add(name, overlay=overlay)
                await network[name].start()
            told = await whole(network, NAMES)
            assert all(len(row["links"]) <= 3 for row in told.values())

            async def has_counted() -> bool:  # news are told at a pace
                return (await tree(network, "a"))["a"]["size"] == len(NAMES)

            await until("all are counted", has_counted)
            root = told["a"]["component"]
            inner = next(n for n, row in told.items() if n != root and len(row["links"]) > 1)
            leaves = [name for name, row in told.items() if len(row["links"]) == 1]
            publishers = [Publisher(f"p{number}", seed) for number in range(2)]
            for publisher, name in zip(publishers, leaves, strict=False):
                await publisher.open(network[name].address)
            takers = [Taker("some", "value < 50"), Taker("all", "exists(count)")]
            for taker, name in zip(takers, reversed(leaves), strict=False):
                await taker.open(network[name].address, ready="network")
            load = asyncio.gather(*[one.publish(400, pause=0.005) for one in publishers])
            for victim in (inner, root):
                await until("some are confirmed", lambda: len(publishers[0].confirmed) >= 20)
                network[victim].kill()
                rest = "".join(name for name in NAMES if name != victim)
                await whole(network, rest)
                await network[victim].start()
                await whole(network, NAMES)
            await load
            await finished(publishers, takers)

    play(scene)


@pytest.mark.slow
def test_ten_seconds_without_a_processor_make_no_false_death(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path) as network:  # with the heartbeat that brokers have by default
            for name in "abc":
                join = [] if name == "a" else [network["a"].address]
                network.add(name, overlay={"kind": "tree", "join": join})
                await network[name].start()
            before = await whole(network, "abc")
            seed = random.randrange(1_000_000)
            print(f"seed {seed}")
            chance = random.Random(seed)
            for name in "abca":
                network[name].freeze()
                await asyncio.sleep(10.0)  # it is the time that is tried
                network[name].thaw()
                await asyncio.sleep(
                    chance.uniform(0.0, 5.0)
                )  # so that it begins anywhere between two signs of life
            after = await whole(network, "abc")
            for name in "abc":
                assert after[name]["lost"] == 0, f"{name} has lost a neighbour"
                assert after[name]["links"] == before[name]["links"]
                assert after[name]["component"] == before[name]["component"]

    play(scene)


async def whole_mesh(network: Network, names: str) -> dict[str, dict[str, Any]]:
    """Wait until these brokers are one mesh, in which each has as many neighbours as it should."""

    async def is_whole() -> dict[str, dict[str, Any]] | None:
        told = await tree(network, names)
        links = {(name, other) for name, row in told.items() for other in row["links"]}
        both = all((other, name) in links for name, other in links)
        enough = all(len(row["links"]) >= 2 and row["size"] == len(names) for row in told.values())
        return told if both and enough else None

    return await until(f"{names} are one mesh", is_whole)


@pytest.mark.slow
def test_brokers_keep_a_mesh_and_durable_subscriptions_lose_nothing_by_deaths(tmp_path: Path) -> None:
    async def scene() -> None:
        seed = random.randrange(1_000_000)
        print(f"seed {seed}")
        async with Network(tmp_path, heartbeat=1.0, durable=QUICK) as network:
            network._settings["sync"] = "normal"
            for name in NAMES:
                join = [] if name == "a" else [network["a"].address]
                network.add(name, overlay={"kind": "mesh", "links": 2, "look_every": 2.0, "join": join})
                await network[name].start()
            told = await whole_mesh(network, NAMES)
            assert {row["kind"] for row in told.values()} == {"mesh"}
            publisher, taker = Publisher("p", seed), Taker("all", "exists(count)")
            await publisher.open(network["e"].address)
            await taker.open(network["f"].address, ready="network")
            load = asyncio.create_task(publisher.publish(400, pause=0.005))
            for victim in "ab":
                await until("some are confirmed", lambda: len(publisher.confirmed) >= 20)
                network[victim].kill()
                await whole_mesh(network, NAMES.replace(victim, ""))
                await network[victim].start()
                await whole_mesh(network, NAMES)
            await load
            await finished([publisher], [taker])

    play(scene)


@pytest.mark.slow
def test_a_client_that_knows_one_address_survives_the_death_of_its_broker(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, heartbeat=1.0, durable=QUICK) as network:
            for name in "abc":
                join = [] if name == "a" else [network["a"].address]
                network.add(name, overlay={"kind": "tree", "look_every": 2.0, "join": join})
                await network[name].start()
            await whole(network, "abc")
            taker = Taker("far", "exists(count)")
            await taker.open(network["c"].address, ready="network")
            publisher = Publisher("one")
            publisher.client = await palio.connect(network["a"].address, name="one", request_timeout=60.0)
            await publisher.publish(50)
            # It was told of them when it came in, or has been since.
            await until("it has heard of others", lambda: len(publisher.client._session._others) == 2)
            network["a"].kill()
            await publisher.publish(50)
            assert publisher.client.broker in ("b", "c")
            await network["a"].start()  # whose journal has what was confirmed before
            await taker.complete([publisher])  # in the order of each journal, of which there are two
            await publisher.close()
            await taker.close()

    play(scene)


@pytest.mark.slow
def test_brokers_find_each_other_again_after_the_one_that_they_joined_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, heartbeat=1.0) as network:
            for name in "abc":
                join = [] if name == "a" else [network["a"].address]
                network.add(name, overlay={"kind": "tree", "look_every": 2.0, "join": join})
                await network[name].start()
            await whole(network, "abc")
            kept = network["b"].folder / "data" / "brokers.json"
            await until("b keeps c", lambda: kept.exists() and b'"c"' in kept.read_bytes())
            for name in "abc":
                network[name].kill()
            for name in "bc":
                await network[name].start()
            await whole(network, "bc")

    play(scene)
