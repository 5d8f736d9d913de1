"""Current documents of a broker that is killed again and again: none is lost, and no old version comes."""

import asyncio
import random
import socket

import pytest

import palio
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import WANTED
from tests.broker.documents.test_retroactive import judge, named
from tests.cli.conftest import environment as environment  # noqa: PLC0414 (a fixture)
from tests.cli.processes import broker_up

PRICE = "/card/price"
KEYS = 120


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Shop:
    """A broker that is killed and started, its publishers, and what they have published."""

    def __init__(self, seed, environment, folder):
        self.chance = random.Random(seed)
        self.address = f"127.0.0.1:{free_port()}"
        self.published = []
        self._place = {"environment": environment, "folder": folder}
        self._up = None

    def start(self):
        (self._place["folder"] / "ready.json").unlink(missing_ok=True)
        self._up = broker_up("--listen", self.address, "--name", "siena", **self._place)
        self._up.__enter__()

    def kill(self):
        self._up.__exit__(None, None, None)

    async def publish(self, client, key):
        price = self.chance.choice([5, 20, 80])
        confirmed = await client.publish_document(card(key, price=price), timeout=60)
        self.published.append(((confirmed.origin, confirmed.sequence), key, price))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("durable", [None, "desk"])
def test_a_retroactive_subscription_outlives_kills(seed, durable, environment, tmp_path):
    asyncio.run(play(Shop(seed, environment, tmp_path), durable))


async def play(shop, durable):
    await asyncio.to_thread(shop.start)
    address = f"palio://{shop.address}"
    async with palio.connect(address) as client, palio.connect(address) as reader:
        await client.families.add("card", **WANTED)
        await asyncio.gather(*[shop.publish(client, f"c{n}") for n in range(KEYS)])
        stop = asyncio.Event()

        async def busy():
            while not stop.is_set():
                await shop.publish(client, f"c{shop.chance.randrange(KEYS)}")

        tasks = [asyncio.create_task(busy()) for _ in range(4)]
        subscription = await reader.subscribe(f"`{PRICE}` < 50", retroactive=True, durable=durable, timeout=60)
        kills = sorted(shop.chance.sample(range(1, 110), 2))
        came = []
        while len(came) < 160:
            if kills and len(came) >= kills[0]:
                kills.pop(0)
                await asyncio.to_thread(shop.kill)
                await asyncio.to_thread(shop.start)
            event = await subscription.next(timeout=60)
            came.append(named(event))
            await event.ack()
        stop.set()
        await asyncio.gather(*tasks)
        await shop.publish(client, "last")
        while (last := shop.published[-1])[2] >= 50:
            await shop.publish(client, "last")
        while came[-1] != last[0]:
            event = await subscription.next(timeout=60)
            came.append(named(event))
            await event.ack()
        judge(came, shop.published)
        newest = {}
        for name, key, _ in sorted(shop.published):
            newest[key] = name
        assert {one["xml.key"]: named(one) async for one in client.documents()} == newest
    await asyncio.to_thread(shop.kill)
