"""Brokers for tests do what they say."""

import palio
import palio.sync
from palio import testing
from palio.protocol.durable.retry import Patience
from palio.routing.durable.desk import DurableSettings


async def test_what_is_in_the_journal_survives_a_crash():
    broker = testing.broker(journal=True)
    async with broker as address:
        async with palio.connect(address) as client:
            await client.subscribe("n >= 0", durable="desk")
            await client.publish({"n": 1})
        await broker.crash()
        assert not broker.is_running
        await broker.start()
        assert broker.address == address
        async with palio.connect(address) as client:
            desk = await client.subscribe("n >= 0", durable="desk")
            assert (await desk.next(timeout=10))["n"] == 1


async def test_hours_pass_when_the_test_says_so():
    clock = testing.Clock(start=1_000.0)
    patience = DurableSettings(patience=Patience(acknowledge_within=3_600.0, first_pause=0.0))
    broker = testing.broker(journal=True, clock=clock, durable=patience)
    async with broker as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk")
        await client.publish({"n": 1})
        event = await desk.next(timeout=10)
        assert event.taken.timestamp() < 10_000
        await clock.advance(3_500.0)
        assert desk.statistics().received == 1
        await clock.advance(200.0)
        again = await desk.next(timeout=10)
        assert (again["n"], again.attempt) == (1, 2)


async def test_a_network_is_ready_while_its_clock_stands_still():
    clock = testing.Clock(start=1_000.0)
    async with (
        testing.network([("one", "two")], journal=True, clock=clock) as network,
        palio.connect(network["one"].address) as one,
        palio.connect(network["two"].address) as two,
    ):
        desk = await one.subscribe("n >= 0", durable="desk", ready="network", timeout=10)
        await two.publish({"n": 1}, lifetime=60)
        assert (await desk.next(timeout=10))["n"] == 1
        await desk.detach()
        moved = await two.subscribe("n >= 0", durable="desk")  # to another home
        assert (await moved.next(timeout=10)).redelivered
        assert clock.now() == 1_000.0


async def test_timers_run_in_their_order_and_not_when_cancelled():
    clock = testing.Clock(start=0.0)
    seen = []
    clock.call_at(2.0, lambda: seen.append(("two", clock.now())))
    clock.call_at(1.0, lambda: clock.call_at(1.5, lambda: seen.append(("one and a half", clock.now()))))
    clock.call_at(1.7, lambda: seen.append(("cancelled", clock.now()))).cancel()
    clock.call_at(9.0, lambda: seen.append(("late", clock.now())))
    await clock.advance(3.0)
    assert seen == [("one and a half", 1.5), ("two", 2.0)]
    assert clock.now() == 3.0


async def test_a_network_with_cycles():
    links = [("one", "two"), ("two", "three"), ("three", "one")]
    async with (
        testing.network(links, graph=True) as network,
        palio.connect(network["one"].address) as one,
        palio.connect(network["two"].address) as two,
        palio.connect(network["three"].address) as three,
    ):
        subscriptions = [await client.subscribe("n >= 0", ready="network") for client in (one, two, three)]
        await one.publish([{"n": n} for n in range(3)])
        for subscription in subscriptions:
            assert [(await subscription.next(timeout=10))["n"] for _ in range(3)] == [0, 1, 2]


async def test_the_address_of_a_network_names_all_its_brokers():
    async with testing.network([("one", "two")]) as network, palio.connect(network.address) as client:
        assert client.broker == "one"
        await network["one"].stop()
        await client.publish({"n": 1})
        assert client.broker == "two"


def test_it_needs_no_event_loop():
    with testing.broker(journal=True) as address, palio.sync.connect(address) as client:
        assert client.publish({"n": 1}).sequence == 1
