"""Clients that do not read: memory is bounded, they are told what they lost, and others do not notice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import palio
from palio import Filter
from palio.protocol.deliveries import Events, Lost
from palio.protocol.heartbeat import Pong
from palio.protocol.requests import Accepted, Subscribe
from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, Node, play, until
from tests.live.talking import Talker

TEXT = "x" * 4_000
EVENTS, GROUP = 16_000, 100  # 64 MB
LIMIT = 2 * 1024 * 1024
BOUND = 40.0  # megabytes by which the broker may have grown: its limits, and what the allocator keeps


async def stalled(node: Node) -> Talker:
    """A client that has subscribed, and does not read any more."""
    talker = await Talker.open(node.port, "stalled")
    talker.say(Subscribe("all", Filter.parse("true")))
    await talker.hear_a(Accepted)
    talker.writer.transport.pause_reading()  # type: ignore[attr-defined]
    return talker


class Healthy:
    """A client that reads all the time; it must get everything, in order."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self._reading: asyncio.Task[None]
        self._client: palio.Client

    async def open(self, node: Node) -> None:
        self._client = await palio.connect(node.address, request_timeout=60)
        subscription = await self._client.subscribe("true")
        self._reading = asyncio.create_task(self._read(subscription))

    async def _read(self, subscription: Any) -> None:
        async for event in subscription:
            self.got.append(event["count"])

    async def close(self) -> None:
        await self._client.close()
        await self._reading


async def flood(node: Node, healthy: Healthy, slow: Talker) -> float:
    """Publish, no faster than the healthy client reads. Returns the most memory that the broker had."""
    most = 0.0
    async with palio.connect(node.address, request_timeout=60) as client:
        for first in range(0, EVENTS, GROUP):
            await client.publish([{"count": first + number, "text": TEXT} for number in range(GROUP)])
            await until("the healthy client has it", lambda end=first + GROUP: len(healthy.got) == end)
            if not slow.writer.transport.is_closing():
                slow.say(Pong())  # it is there, but it does not read
            most = max(most, node.memory())
    return most


@pytest.mark.parametrize("policy", ["drop-newest", "drop-oldest", "disconnect"])
def test_a_stalled_client_costs_a_bounded_amount_and_disturbs_nobody(tmp_path: Path, policy: str) -> None:
    async def scene() -> None:
        async with Network(tmp_path, journal=False, when_slow=policy, limits={"outgoing": LIMIT}) as network:
            node = network.add("a")
            await node.start()
            healthy = Healthy()
            await healthy.open(node)
            slow = await stalled(node)
            before = node.memory()
            most = await flood(node, healthy, slow)
            print(f"{policy}: {before:.0f} MB before, at most {most:.0f} MB")
            assert healthy.got == list(range(EVENTS))
            await healthy.close()
            assert most - before < BOUND
            statistics = (await node.inspect("stats"))[0]["broker"]
            if policy == "disconnect":
                assert "stalled" not in {row["name"] for row in await node.inspect("clients")}
                assert "did not read" in node.log
                return
            slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
            got, lost = [], 0
            while len(got) + lost < EVENTS:
                message = await slow.hear()
                if isinstance(message, Lost):
                    lost += message.count
                else:
                    assert isinstance(message, Events)
                    got += [envelope.notification.attributes["count"] for envelope in message.envelopes]
            assert len(got) + lost == EVENTS
            assert got == sorted(set(got))
            assert (got[-1] == EVENTS - 1) == (policy == "drop-oldest")
            assert lost == statistics["dropped"][f"slow consumer, {policy}"] > EVENTS // 2
            slow.close()

    play(scene)


def test_what_waits_for_a_stalled_durable_taker_is_on_disk(tmp_path: Path) -> None:
    durable = {"tick": 0.2, "settle_within": 0.1, "outbox": 500, "patience": {"acknowledge_within": 600.0}}

    async def scene() -> None:
        async with Network(tmp_path, durable=durable, sync="normal") as network:
            node = network.add("a")
            await node.start()
            publisher = Publisher("p", sizes=(GROUP,))
            stalled, healthy = Taker("stalled", "true"), Taker("healthy", "true")
            await publisher.open(node.address)
            stalled.go_on.clear()
            for taker in (stalled, healthy):
                await taker.open(node.address, ready="network")
            used = []
            for _ in range(20):
                await publisher.publish(EVENTS // 25, text=TEXT)
                await healthy.complete([publisher])
                used.append(node.memory())
            half = len(used) // 2  # by then the cache of the store, of 32 MB, is full
            print("MB: " + ", ".join(f"{one:.0f}" for one in used))
            assert len(stalled.first) < 500
            assert max(used[half:]) - used[half] < BOUND / 2
            stalled.go_on.set()
            await finished([publisher], [stalled, healthy])

    play(scene)
