"""A broker whose index has hints delivers what one without them does."""

import asyncio

import palio
from palio.broker.broker import BrokerServer
from palio.broker.settings import Settings
from palio.matching.hints import AttributeHints, Hints


def test_a_broker_with_hints_delivers(tmp_path):
    path = tmp_path / "hints.json"
    path.write_bytes(Hints({"kind": AttributeHints(1.0, values=[("a", 0.001)])}, events=10).encode())

    async def scenario() -> list[int]:
        settings = Settings(name="b", listen="127.0.0.1:0", http="off", journal=False, hints=str(path))
        broker = BrokerServer(settings)
        await broker.start()
        assert broker.router.configuration.hints.events == 10
        try:
            async with palio.connect(f"palio://127.0.0.1:{broker.port}") as client:
                subscription = await client.subscribe('kind = "a" and x > 1')
                await client.publish([{"kind": kind, "x": x} for x in range(4) for kind in "ab"])
                return [(await anext(subscription))["x"] for _ in range(2)]
        finally:
            await broker.stop()

    assert asyncio.run(asyncio.wait_for(scenario(), 20)) == [2, 3]
