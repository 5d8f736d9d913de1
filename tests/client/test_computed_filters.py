"""Filters that compute something: live, durable, reaching back, and through other brokers."""

import palio
from palio import testing

EVENTS = [
    {"n": 1, "bid": 2, "ask": 1.5},
    {"n": 2, "bid": 1, "ask": 1.5},
    {"n": 3, "bid": 2},
    {"n": 4, "bid": 7, "ask": 6},
    {"n": 5, "bid": "b", "ask": 1},
]


async def heard(subscription, last: int) -> list[int]:
    found = []
    async for event in subscription:
        if event["n"] == last:
            return found
        found.append(event["n"])
    return found


async def test_every_subscription_gets_what_it_computes_whatever_way_the_events_take():
    async with (
        testing.network([("one", "two"), ("two", "three")], journal=True) as addresses,
        palio.connect(addresses["one"].address) as publisher,
        palio.connect(addresses["three"].address) as client,
    ):
        last = "n = 99 or "
        live = await client.subscribe(last + "bid > ask", ready="network")
        narrow = await client.subscribe(last + "bid > ask and bid < 5", ready="network")
        unmet = await client.subscribe(last + "not bid > ask", ready="network")
        durable = await client.subscribe(last + "bid > ask", durable="desk", ready="network")
        selector = await client.subscribe("n = 99 OR NOT ask * 1 >= bid", dialect="jms", ready="network")
        await publisher.publish([*EVENTS, {"n": 99}])
        assert await heard(live, 99) == [1, 4]
        assert await heard(narrow, 99) == [1]
        assert await heard(unmet, 99) == [2, 3, 5]
        assert await heard(durable, 99) == [1, 4]
        assert await heard(selector, 99) == [1, 4]
        back = await client.subscribe(last + "bid > ask", since="all")
        assert await heard(back, 99) == [1, 4]
