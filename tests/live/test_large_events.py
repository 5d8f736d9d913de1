"""Events as large as they may be: together they exceed any frame and outbox, and yet they come, in order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import palio
from palio.client.client import Client
from palio.protocol.encoding import encode
from palio.protocol.frames import MAX_FRAME, frame
from palio.protocol.requests import Publish
from tests.live.network import Network, play
from tests.live.talking import Talker

LINE = [("b", "a"), ("c", "b")]
SETTINGS = {"sync": "off"}
COUNT = 40
PAYLOAD = 1_000_000  # bytes


async def take(client: Client, first: int, last: int) -> None:
    subscription = await client.subscribe("true", durable="large", in_flight=1_000)
    for expected in range(first, last):
        event = await subscription.next(timeout=60)
        assert event["number"] == expected
        assert len(event.payload or b"") == PAYLOAD
        await event.ack(confirmed=expected + 1 == last)


def test_large_events_wait_and_move_with_their_subscription(tmp_path: Path) -> None:
    """Fetched from another origin in several pages, handed out in several frames, handed over in one letter."""

    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.build(LINE)
            async with palio.connect(network["c"].address, request_timeout=60) as client:
                await client.subscribe("true", durable="large", ready="network")
            async with palio.connect(network["a"].address, request_timeout=60) as client:
                for number in range(COUNT):
                    payload = number.to_bytes() * PAYLOAD
                    await client.publish(palio.Notification({"number": number}, payload=payload))
            async with palio.connect(network["c"].address, request_timeout=60) as client:
                await take(client, 0, 5)
            async with palio.connect(network["b"].address, request_timeout=60) as client:
                await take(client, 5, COUNT)

    play(scene)


def test_a_full_frame_of_small_events_leaves_in_several(tmp_path: Path) -> None:
    """With an envelope around each of them they exceed what a client reads."""
    many = 150_000
    body = palio.Notification({"text": "x" * 80}).body

    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS, limits={"outgoing": 1 << 30}) as network:
            await network.build([("b", "a")])
            async with palio.connect(network["b"].address, request_timeout=60) as reader:
                subscription = await reader.subscribe("true", ready="network", limit=2 * many)
                talker = await Talker.open(network["a"].port, "eager")
                publish = frame(encode(Publish((palio.Notification.of_body(body),) * many)))
                assert len(publish) < MAX_FRAME < len(publish) + 25 * many
                talker.writer.write(publish)
                async with asyncio.timeout(60):
                    left = many
                    async for _ in subscription:
                        left -= 1
                        if not left:
                            break
                talker.close()

    play(scene)
