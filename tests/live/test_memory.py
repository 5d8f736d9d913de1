"""Memory stays flat under load: ten minutes, or as long as the environment says.

`PALIO_SOAK=600 pytest -m slow tests/live/test_memory.py -s`
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

import palio
from tests.live.network import Network, Node, play, until

SECONDS = float(os.environ.get("PALIO_SOAK", "600"))
RATE = 1_000  # events a second, of which a tenth is confirmed and durable
WINDOW = 5_000  # events that may be under way
GROWTH = 8.0  # megabytes, between the end of the first third and the end
# What is kept and remembered for a while reaches its bound soon.
SHORT: dict[str, Any] = {"keep": 5.0, "durable": {"remembered": 2_000}, "operations": {"size": 200_000}}
LINE = [("b", "a"), ("c", "b")]


class Load:
    """A publisher at one end, a transient and a durable subscription at the other, clients that come and go."""

    def __init__(self) -> None:
        self.published = self.confirmed = self.got = self.got_durable = self.visits = 0
        self.over = False

    async def publish(self, address: str) -> None:
        async with palio.connect(address, request_timeout=60) as client:
            while not self.over:
                if self.published - self.got > WINDOW:
                    await asyncio.sleep(0.01)
                    continue
                for _ in range(RATE // 20):
                    client.publish_nowait({"number": self.published, "kind": "passing", "text": "x" * 150})
                    self.published += 1
                confirmed = [{"number": n, "kind": "kept", "text": "x" * 150} for n in range(RATE // 200)]
                await client.publish(confirmed)
                self.confirmed += len(confirmed)
                await asyncio.sleep(0.05)

    async def read(self, subscription: Any) -> None:
        async for _ in subscription:
            self.got += 1

    async def take(self, subscription: Any) -> None:
        async for event in subscription:
            self.got_durable += 1
            await event.ack()

    async def visit(self, address: str) -> None:
        """Clients that subscribe, get something, and go."""
        while not self.over:
            async with palio.connect(address, request_timeout=60) as client:
                subscription = await client.subscribe(f'kind = "passing" and number > {self.visits}')
                await subscription.next(timeout=60)
            self.visits += 1


@pytest.mark.slow
def test_memory_stays_flat_under_load(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, sync="normal", log_level="warning", **SHORT) as network:
            await network.build(LINE)
            load = Load()
            async with palio.connect(network["c"].address, request_timeout=60) as client:
                transient = await client.subscribe('kind = "passing"', ready="network")
                durable = await client.subscribe('kind = "kept"', durable="kept", ready="network")
                readers = [asyncio.create_task(one) for one in (load.read(transient), load.take(durable))]
                publishing = asyncio.create_task(load.publish(network["a"].address))
                visiting = asyncio.create_task(load.visit(network["b"].address))
                used = await watch(list(network.nodes.values()), load, [publishing, visiting])
                visiting.cancel()
                load.over = True
                await publishing
                await until("all has come", lambda: load.got == load.published)
                await until("all that was confirmed has come", lambda: load.got_durable >= load.confirmed)
                assert load.got_durable == load.confirmed
            await asyncio.gather(*readers)
            for node, megabytes in used.items():
                third = len(megabytes) // 3
                assert megabytes[-1] - megabytes[third] < GROWTH, f"{node}: {megabytes}"

    play(scene)


async def watch(nodes: list[Node], load: Load, working: list[asyncio.Task[None]]) -> dict[str, list[float]]:
    """Note the memory of each broker thirty times, and print it."""
    used: dict[str, list[float]] = {node.name: [] for node in nodes}
    began = time.monotonic()
    for part in range(1, 31):
        await asyncio.wait(working, timeout=max(0.0, began + SECONDS * part / 30 - time.monotonic()))
        for task in working:
            if task.done():
                task.result()
        for node in nodes:
            used[node.name].append(node.memory())
        now = "  ".join(f"{name} {megabytes[-1]:6.1f} MB" for name, megabytes in used.items())
        print(
            f"{time.monotonic() - began:6.0f} s  {now}  {load.published:,} + {load.confirmed:,} events",
            flush=True,
        )
    return used
