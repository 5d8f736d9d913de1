"""Publishing and subscribing over real sockets."""

import asyncio

import pytest

import palio
from palio.broker.broker import Broker
from palio.broker.settings import Settings


def test_what_is_published_comes():
    async def main():
        broker = Broker(Settings(name="one", listen="127.0.0.1:0", http="off", journal=False))
        await broker.start()
        async with palio.connect(f"palio://127.0.0.1:{broker.port}") as client:
            cheap = await client.subscribe("price > 100", ready="network")
            first = await client.publish({"symbol": "ACME", "price": 101.5})
            client.publish_nowait({"symbol": "ACME", "price": 99})
            client.publish_nowait({"symbol": "ACME", "price": 102, "tags": ["a", "b"]})
            one, other = await cheap.next(timeout=5), await cheap.next(timeout=5)
            assert (one.origin, one.sequence) == (first.origin, first.sequence)
            assert (one["price"], other["price"], other["tags"]) == (101.5, 102, ("a", "b"))
            await cheap.unsubscribe()
            assert [event async for event in cheap] == []
            with pytest.raises(palio.SubscriptionEnded):
                await cheap.next(timeout=5)
        await broker.stop()

    asyncio.run(main())
