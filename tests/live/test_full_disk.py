"""A disk that is full: publishes are refused and told why, nothing confirmed is lost, and it goes on after."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palio import PalioError
from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, Node, play, until

PAYLOAD = "x" * 20_000
Disk = tuple[Path | None, Callable[[Node], None], Callable[[Node], None]]  # a folder; fill it; make room


def _small_file_system(folder: Path) -> Iterator[Disk]:
    folder.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    if mount is None or os.geteuid() or subprocess.run([mount, *options], check=False).returncode:
        pytest.skip("only root can mount a small file system")
    ballast = folder / "ballast"

    def fill(node: Node) -> None:
        room = shutil.disk_usage(folder).free
        ballast.write_bytes(bytes(room - 1_500_000))

    yield folder, fill, lambda node: ballast.unlink()
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _small_files() -> Iterator[Disk]:
    def fill(node: Node) -> None:
        largest = max(file.stat().st_size for file in (node.folder / "data").iterdir())
        _limit(node, largest + 1_500_000)

    yield None, fill, lambda node: _limit(node, resource.RLIM_INFINITY)


def _limit(node: Node, size: int) -> None:
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.fixture(params=["a small file system", "files may not grow"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    yield from _small_file_system(tmp_path / "small") if request.param[0] == "a" else _small_files()


async def refused(publisher: Publisher) -> PalioError:
    """Publish until that is refused."""
    for _ in range(1_000):
        try:
            await publisher.publish(1, payload=PAYLOAD)
        except PalioError as problem:
            del publisher.events[len(publisher.events) - 1]  # so that its count is given to the next
            return problem
    raise AssertionError("the disk was never full")


def test_a_full_disk_refuses_and_recovers(tmp_path: Path, disk: Disk) -> None:
    folder, fill, make_room = disk

    async def scene() -> None:
        async with Network(tmp_path / "network", durable={"tick": 0.2, "settle_within": 0.1}) as network:
            node = network.add("a", **({"data": str(folder / "data")} if folder is not None else {}))
            await node.start()
            publisher, taker = Publisher("p"), Taker("t", "value < 50")
            await publisher.open(node.address)
            await taker.open(node.address, ready="network")
            await publisher.publish(50, payload=PAYLOAD)
            fill(node)
            for _ in range(3):  # it stays refused, and says so at once
                problem = await refused(publisher)
                assert "is full" in str(problem) or "cannot be written" in str(problem), problem
            assert publisher.client.statistics().connections == 1
            make_room(node)

            async def works_again() -> bool:
                try:
                    await publisher.publish(1, payload=PAYLOAD)
                except PalioError:
                    del publisher.events[len(publisher.events) - 1]
                    return False
                return True

            await until("it can be published again", works_again)
            await publisher.publish(50)
            await taker.complete([publisher])
            node.kill()
            await node.start()
            await publisher.publish(50)
            await finished([publisher], [taker])

    play(scene)
