"""Disks that lie beneath live brokers: what is damaged, taken away, taken twice or full is named, in time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import palio
from palio import PalioError
from tests.live.durable import Publisher
from tests.live.network import Network, Node, play, until
from tests.store.damage import flip

QUICK = {"tick": 0.2, "settle_within": 0.1}


def database(node: Node) -> Path:
    return node.folder / "data" / "palio.db"


async def counted(address: str, name: str, count: int) -> list[int]:
    """The counts of the first so many events of all that there is, for a new durable subscription."""
    async with palio.connect(address) as client:
        subscription = await client.subscribe("true", durable=name, since=0)
        events = [await subscription.next(60) for _ in range(count)]
        return [event["n"] for event in events]


def test_a_damaged_event_is_left_out_and_named_wherever_it_is_asked_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, durable=QUICK) as network:
            await network.build([("b", "a")])
            origin = network["a"]
            async with palio.connect(origin.address) as client:
                for number in range(1, 21):
                    await client.publish({"n": number, "text": f"unmistakable {number:02}"})
            await origin.stop()
            flip(database(origin), b"unmistakable 07")
            await origin.start()
            await network.linked()
            wanted = [number for number in range(1, 21) if number != 7]
            assert await counted(origin.address, "here", 19) == wanted
            assert await counted(network["b"].address, "there", 19) == wanted
            async with palio.connect(network["b"].address) as client:
                replayed = [event["n"] async for event in client.replay("exists(n)")]
            assert replayed == wanted
            (row,) = await origin.inspect("stats")
            assert row["store"]["aside"] == 1
            assert origin.log.count("The event 'a/7' cannot be read and was put aside") == 1

    play(scene)


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_broker_whose_file_is_removed_confirms_nothing_more_and_ends(tmp_path: Path, suffix: str) -> None:
    async def scene() -> None:
        async with Network(tmp_path) as network:
            node = network.add("a")
            await node.start()
            publisher = Publisher("p")
            await publisher.open(node.address)
            await publisher.publish(50)
            gone = Path(f"{database(node)}{suffix}")
            gone.unlink()
            assert node.process is not None
            publishing = asyncio.create_task(publisher.client.publish({"n": 1}))
            assert await asyncio.to_thread(node.process.wait, 60) == 6
            # It is refused, or goes on to wait for a broker if this one had noticed, and ended, before.
            await asyncio.wait([publishing], timeout=0)
            assert publishing.cancel() or isinstance(publishing.exception(), PalioError)
            assert f"The file {gone} of the store {database(node)} was removed" in node.log
            await publisher.close()

    play(scene)


def test_a_second_broker_is_refused_though_the_lock_file_was_removed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path) as network:
            first = network.add("a")
            await first.start()
            publisher = Publisher("p")
            await publisher.open(first.address)
            await publisher.publish(20)
            Path(f"{database(first)}.lock").unlink()
            second = network.add("second", data=str(first.folder / "data"))
            second.settings["name"] = "a"
            second.launch()
            assert second.process is not None
            assert await asyncio.to_thread(second.process.wait, 60) == 6
            assert f"is in use by process {first.pid}. Stop that one first" in second.log
            await publisher.publish(20)
            assert sorted(publisher.confirmed.values()) == [("a", number) for number in range(1, 41)]
            await publisher.close()
            assert await first.stop() == 0

    play(scene)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system without any room."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if mount is None or os.geteuid() or subprocess.run([mount, *options], check=False).returncode:
        pytest.skip("only root can mount a small file system")
    with contextlib.suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4_096))
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_broker_that_finds_its_disk_full_says_so(tmp_path: Path, full_disk: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path / "network") as network:
            node = network.add("a", data=str(full_disk / "data"))
            node.launch()
            assert node.process is not None
            assert await asyncio.to_thread(node.process.wait, 60) == 6
            assert "Traceback" not in node.log
            assert "full" in node.log or "no room" in node.log, node.log

    play(scene)


def test_a_broker_that_is_stopped_under_load_ends_in_order(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, durable=QUICK) as network:
            node = network.add("a")
            await node.start()
            publishers = [Publisher(f"p{number}") for number in range(3)]
            for publisher in publishers:
                await publisher.open(node.address)
            loads = [asyncio.ensure_future(one.publish(100_000)) for one in publishers]
            await until("some are confirmed", lambda: all(len(one.confirmed) > 100 for one in publishers))
            os.kill(node.pid, signal.SIGTERM)
            assert node.process is not None
            assert await asyncio.to_thread(node.process.wait, 60) == 0
            for load in loads:
                load.cancel()
            await asyncio.gather(*loads, return_exceptions=True)
            for publisher in publishers:
                await publisher.close()
            assert "Traceback" not in node.log
            assert "cannot go on" not in node.log
            confirmed = {key for one in publishers for key in one.confirmed.values()}
            await node.start()
            (row,) = await node.inspect("stats")
            assert row["store"]["head"] >= len(confirmed)

    play(scene)
