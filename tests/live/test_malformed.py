"""Malformed frames by the thousand, and clients that take for ever: a healthy client does not notice.

A hundred thousand of them: `PALIO_FRAMES=100000 pytest -m slow tests/live/test_malformed.py -s`
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

import palio
from palio.protocol.encoding import encode
from palio.protocol.frames import frame
from palio.protocol.greeting import PROTOCOL, Greet, Role
from tests.live.malformed import Malformed
from tests.live.network import Network, Node, play, until

MANY = int(os.environ.get("PALIO_FRAMES", "100000"))
AT_ONCE = 25  # connections
ROLES = (None, Role.CLIENT, Role.CLIENT, Role.PEER)
GROWTH = 16.0  # megabytes: what the allocator keeps of the largest frames
LORIS = 300
_ABORT = struct.pack("ii", 1, 0)  # closing sends a reset, so that no port is kept for a while


class Healthy:
    """Publishes with confirmation all the time, and gets it all back, by a durable subscription too."""

    def __init__(self) -> None:
        self.published = 0
        self.got: list[int] = []
        self.got_durable: list[int] = []
        self._over = False
        self._tasks: list[asyncio.Task[None]] = []
        self.client: palio.Client

    async def open(self, node: Node) -> None:
        self.client = await palio.connect(node.address, name="healthy", request_timeout=60)
        wanted = 'whose = "the healthy client\'s"'
        transient = await self.client.subscribe(wanted)
        durable = await self.client.subscribe(wanted, durable="healthy", ready="network")
        self._tasks = [
            asyncio.create_task(one) for one in (self._read(transient), self._take(durable), self._publish())
        ]

    async def _read(self, subscription: Any) -> None:
        async for event in subscription:
            self.got.append(event["count"])

    async def _take(self, subscription: Any) -> None:
        async for event in subscription:
            self.got_durable.append(event["count"])
            await event.ack()

    async def _publish(self) -> None:
        while not self._over:
            await self.client.publish({"whose": "the healthy client's", "count": self.published})
            self.published += 1
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        """It has had everything, in order, on one connection."""
        self._over = True
        await self._tasks.pop()
        wanted = list(range(self.published))
        await until("all has come", lambda: len(self.got) >= len(wanted) <= len(self.got_durable))
        assert self.got == wanted
        assert self.got_durable == wanted
        assert self.client.statistics().connections == 1
        await self.client.close()
        await asyncio.gather(*self._tasks)


async def connect(node: Node, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that leaves nothing behind; from different addresses, as one has not so many ports."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", node.port, local_addr=(f"127.0.0.{2 + number % 200}", 0)
    )
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
    return reader, writer


async def is_alive(reader: asyncio.StreamReader) -> bool:
    """Whether the broker leaves the connection open: some frames are answered, some are never complete."""
    try:
        async with asyncio.timeout(0.05):
            while await reader.read(65_536):
                pass
    except TimeoutError:
        return True
    return False


async def attack(node: Node, malformed: Malformed, frames: int, first: int) -> None:
    """Send so many malformed frames, on as many connections as it takes."""
    number = first
    while frames > 0:
        number += 1
        with contextlib.suppress(OSError):
            reader, writer = await connect(node, number)
            role = ROLES[number % len(ROLES)]
            if role is not None:
                writer.write(frame(encode(Greet(PROTOCOL, role, f"attacker {number % 100} {first}"))))
            while frames > 0 and not writer.transport.is_closing():
                writer.write(malformed.draw(role))
                frames -= 1
                await writer.drain()
                if not await is_alive(reader):
                    break
            writer.transport.abort()


async def bombard(folder: Path, frames: int) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    # A log of what was refused would fill the pages that SQLite keeps in memory; one that is cut takes few.
    short = {"size": 200_000}
    async with Network(folder, sync="normal", log_level="error", operations=short) as network:
        node = network.add("a")
        await node.start()
        healthy = Healthy()
        await healthy.open(node)
        drawn = [Malformed(f"{seed} {one}") for one in range(AT_ONCE)]
        used = []
        for part in range(10):
            share = frames // AT_ONCE // 10
            attacks = [attack(node, one, share, 1_000_000 * part + n) for n, one in enumerate(drawn)]
            await asyncio.gather(*attacks)
            used.append(node.memory())
        print("MB: " + ", ".join(f"{one:.0f}" for one in used))
        counts = sum((one.counts for one in drawn), type(drawn[0].counts)())
        print(f"{counts.total():,} frames: {dict(counts)}; {healthy.published:,} events of the healthy client")
        assert counts.total() == frames
        refused = (await node.inspect("stats"))[0]["broker"]["refused"]
        print(f"connections ended by the broker: {refused}")
        assert sum(refused.values()) > frames // 3
        await healthy.close()
        assert used[-1] - used[0] < GROWTH
        assert "Traceback" not in node.log

        async def all_gone() -> bool:
            return {row["name"] for row in await node.inspect("clients")} <= {"looker for clients"}

        await until("all attackers are gone", all_gone)
        async with palio.connect(node.address) as client:  # nobody waits for brokers that never were
            await client.subscribe("true", durable="later", ready="network")


def test_malformed_frames_disturb_nobody(tmp_path: Path) -> None:
    play(lambda: bombard(tmp_path, 1_000))


@pytest.mark.slow
def test_very_many_malformed_frames_disturb_nobody(tmp_path: Path) -> None:
    play(lambda: bombard(tmp_path, MANY))


async def trickle(node: Node, number: int, data: bytes) -> None:
    """Say something byte by byte, until the broker has enough of it."""
    _, writer = await connect(node, number)
    with contextlib.suppress(OSError):
        for place in range(len(data)):
            writer.write(data[place : place + 1])
            await writer.drain()
            await asyncio.sleep(0.1)
            if writer.transport.is_closing():
                break
    writer.transport.abort()


async def look(node: Node, used: list[float]) -> None:
    """Note the memory of a broker again and again."""
    while True:
        used.append(node.memory())
        await asyncio.sleep(0.02)


def test_clients_that_take_for_ever_disturb_nobody(tmp_path: Path) -> None:
    async def scene() -> None:
        limits = {"greeting": 2.0}
        async with Network(tmp_path, sync="normal", limits=limits, log_level="error") as network:
            node = network.add("a")
            await node.start()
            healthy = Healthy()
            await healthy.open(node)
            await until("it has begun", lambda: len(healthy.got) > 10)
            used = [node.memory()]
            looking = asyncio.create_task(look(node, used))
            greeting = frame(encode(Greet(PROTOCOL, Role.CLIENT, "loris " + "x" * 200)))
            slow = [asyncio.create_task(trickle(node, number, greeting)) for number in range(LORIS)]
            idle = [await connect(node, number) for number in range(LORIS)]
            large = [await connect(node, number) for number in range(LORIS)]
            for _, writer in large:  # a first frame of many megabytes, of which some come
                writer.write((8 * 1024 * 1024).to_bytes(4) + bytes(1_000_000))
            for reader, _ in [*idle, *large]:  # none of them may stay
                with contextlib.suppress(ConnectionError):
                    while await asyncio.wait_for(reader.read(65_536), 60):
                        pass
            await asyncio.gather(*slow)
            looking.cancel()
            print(f"{used[0]:.0f} MB before, at most {max(used):.0f} MB")
            assert max(used) - used[0] < GROWTH

            async def only_the_healthy_one() -> bool:
                return (await node.inspect("stats"))[0]["broker"]["connections"] == 2  # and who asks

            await until("they are gone", only_the_healthy_one)
            await healthy.close()

    play(scene)
