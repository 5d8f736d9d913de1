"""Standbys as processes: one takes the place of a broker that ends, at another address, and nothing is lost."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

import palio
from palio.store import SqlStore, StoreInUse
from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, Node, play, until
from tests.store.cluster import Cluster
from tests.store.conftest import cluster, database  # noqa: F401 - the same databases

SETTINGS = {"heartbeat": 0.5, "durable": {"tick": 0.2, "settle_within": 0.1}}
WAITS = "The broker b holds its store; this one takes its place when that ends."


def both(one: Node, other: Node) -> str:
    return f"palio://127.0.0.1:{one.port},127.0.0.1:{other.port}"


async def stand_by(node: Node) -> None:
    """Start it as a standby; it says once what it waits for."""
    before = node.log.count(WAITS)
    node.launch("--standby")
    await until(f"{node.name} waits", lambda: node.log.count(WAITS) == before + 1)


async def published(publisher: Publisher, events: int) -> None:
    await until("more is confirmed", lambda: len(publisher.confirmed) >= events)


def test_a_standby_takes_the_place_of_a_broker_that_is_killed_or_stopped(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            data = {"name": "b", "data": str(tmp_path / "data")}
            store_url = f"sqlite:///{tmp_path}/data/palio.db"
            first, second, third = (network.add(name, **data) for name in ("first", "second", "third"))
            addresses = [{"address": f"127.0.0.1:{one.port}"} for one in (first, second)]
            neighbour = network.add("a", peers=addresses)
            await asyncio.gather(first.start(), neighbour.start())
            await asyncio.gather(stand_by(second), stand_by(third))

            publisher, here, there = Publisher("p"), Taker("here", "value < 50"), Taker("there", "true")
            await publisher.open(both(first, second))
            await here.open(both(first, second), ready="network")
            await there.open(neighbour.address, ready="network")
            load = asyncio.create_task(publisher.publish(500, pause=0.005))

            third.process.send_signal(signal.SIGINT)  # type: ignore[union-attr]
            assert await asyncio.to_thread(third.process.wait, 30) == 0  # type: ignore[union-attr]
            assert len(third.log.splitlines()) == 1, "it has said what it waits for, and nothing else"
            assert not second._ready.exists(), "it listens nowhere before it has taken over"
            await published(publisher, 50)
            first.freeze()
            with pytest.raises(StoreInUse):  # a process that stands still keeps its files locked
                SqlStore.open(store_url, broker="b", completed=lambda _: None)
            first.thaw()
            await published(publisher, len(publisher.confirmed) + 20)
            first.kill()
            await second.up()

            await stand_by(first)  # the roles are exchanged
            await published(publisher, len(publisher.confirmed) + 50)
            assert await second.stop() == 0
            await first.up()
            await load
            here.at(first)
            await finished([publisher], [here, there])
            assert len({sequence for _, sequence in publisher.confirmed.values()}) == 500

    play(scene)


def test_who_wakes_up_after_it_was_replaced_confirms_nothing_and_ends(
    tmp_path: Path,
    cluster: Cluster,  # noqa: F811
    database: str,  # noqa: F811
) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            first, second = (network.add(name, name="b", store=database) for name in ("first", "second"))
            peers = [{"address": f"127.0.0.1:{one.port}"} for one in (first, second)]
            neighbour = network.add("a", peers=peers)
            await asyncio.gather(first.start(), neighbour.start())
            await stand_by(second)
            there = Taker("there", "true")
            await there.open(neighbour.address, ready="network")
            publisher, taker = Publisher("p", heartbeat=0.3), Taker("t", "true", heartbeat=0.3)
            await publisher.open(both(second, first))
            await taker.open(both(second, first), ready="network")
            only_first = await palio.connect(first.address, name="only", request_timeout=3.0, heartbeat=60.0)
            load = asyncio.create_task(publisher.publish(300, pause=0.002))
            await published(publisher, 50)

            first.freeze()
            late = asyncio.create_task(only_first.publish({"publisher": "only", "count": 0, "value": 1}))
            cluster.execute(  # as the server does when the machine is gone
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                f"WHERE application_name LIKE 'palio {first.pid} %'"
            )
            await second.up()
            await published(publisher, len(publisher.confirmed) + 20)

            first.thaw()
            assert first.process is not None
            assert await asyncio.to_thread(first.process.wait, 30) == 6
            told = first.log.splitlines()[-1]
            assert told.startswith("The broker cannot go on and has stopped:")
            assert f"is in use by process {second.pid}" in " ".join(first.log.split())
            with pytest.raises(palio.PalioError):
                await late
            await only_first.close()
            await load
            taker.at(second)
            await finished([publisher], [taker, there])

    play(scene)


@pytest.mark.parametrize(
    ("more", "told"), [({"name": "c"}, "It has those of b."), ({}, "There is no such file.")]
)
def test_what_waiting_does_not_make_better_is_refused_at_once(
    tmp_path: Path, more: dict[str, str], told: str
) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            runs = network.add("b")
            await runs.start()
            data = runs.folder / "data" if more else tmp_path / "typo"
            standby = network.add("standby", data=str(data), **more)
            standby.launch("--standby")
            assert standby.process is not None
            assert await asyncio.to_thread(standby.process.wait, 30) == 6
            assert "There is nothing to stand by for:" in standby.log
            assert told in " ".join(standby.log.split())
            assert not (tmp_path / "typo").exists()

    play(scene)
