"""Transient subscriptions: what comes, what is dropped, and how they end."""

import asyncio

import pytest

import palio
from palio import testing


async def publish_all(client, count):
    await client.publish([{"n": n} for n in range(count)])


async def test_each_subscription_gets_what_it_selects():
    async with testing.broker() as address, palio.connect(address) as client:
        small = await client.subscribe("n < 6")
        even = await client.subscribe(palio.Filter.parse("n in (0, 2, 4, 6, 8)"))
        await publish_all(client, 10)
        await client.flush(arrived=True)
        await small.unsubscribe()
        await even.unsubscribe()
        assert [event["n"] async for event in small] == [0, 1, 2, 3, 4, 5]
        assert [event["n"] async for event in even] == [0, 2, 4, 6, 8]


async def test_a_filter_may_be_in_another_language():
    async with testing.broker() as address, palio.connect(address) as client:
        topics = await client.subscribe("shop/+/books?n>5", dialect="mqtt")
        assert topics.filter == palio.Filter.parse('topic matches "shop/*/books" and n > 5')
        pattern = '{"topic": [{"wildcard": "shop*"}], "n": [{"anything-but": [6, 7]}]}'
        patterns = await client.subscribe(pattern, dialect="eventbridge")
        await client.publish([{"topic": "shop/a/books", "n": n} for n in (5, 6)])
        assert (await topics.next(timeout=10))["n"] == 6
        assert (await patterns.next(timeout=10))["n"] == 5
        expression = "topic LIKE 'shop/%' AND INT(n) % 2 = 1 AND n < m"
        computed = await client.subscribe(expression, dialect="cesql", ready="network")
        await client.publish([{"topic": "shop/b", "n": n, "m": "8"} for n in (6, 9, "7")])
        assert (await computed.next(timeout=10))["n"] == "7"
        with pytest.raises(palio.PalioError, match="dialect 'klingon' is not supported"):
            await client.subscribe("n > 5", dialect="klingon")
        with pytest.raises(palio.FilterSyntaxError, match=r"Column 1 \(mqtt\): shared subscriptions"):
            await client.subscribe("$share/g/a", dialect="mqtt")


async def test_an_event_belongs_to_the_subscription_that_it_came_by():
    async with testing.broker() as address, palio.connect(address) as client:
        one, other = await client.subscribe("n >= 0"), await client.subscribe("n >= 0")
        await publish_all(client, 1)
        events = await one.next(timeout=10), await other.next(timeout=10)
        assert [event.subscription for event in events] == [one, other]
        assert not events[0].redelivered
        await events[0].ack()  # there is nothing to do, and that does no harm
        await events[0].reject()
        with pytest.raises(palio.PalioError, match="nobody to reply to"):
            await events[0].reply({})


@pytest.mark.parametrize(("policy", "kept"), [("drop-newest", [0, 1, 2]), ("drop-oldest", [7, 8, 9])])
async def test_what_a_slow_reader_does_not_get_is_counted(policy, kept):
    async with testing.broker() as address, palio.connect(address) as client:
        slow = await client.subscribe("n >= 0", limit=3, when_full=policy)
        await publish_all(client, 10)
        await client.flush(arrived=True)
        assert slow.statistics().waiting == 3
        assert slow.statistics().dropped == {policy: 7}
        assert slow.statistics().received == 10
        assert [(await slow.next(timeout=10))["n"] for _ in kept] == kept
        await client.publish({"n": 10})
        assert (await slow.next(timeout=10))["n"] == 10


async def test_a_slow_reader_may_prefer_an_error():
    async with testing.broker() as address, palio.connect(address) as client:
        slow = await client.subscribe("n >= 0", limit=3, when_full="error")
        await publish_all(client, 10)
        await client.flush(arrived=True)
        assert [(await slow.next(timeout=10))["n"] for _ in range(3)] == [0, 1, 2]
        with pytest.raises(palio.SlowConsumer) as caught:
            await anext(slow)
        assert caught.value.limit == 3
        assert (await client.inspect("subs")) == []  # the broker does not hold it any more


async def test_what_the_broker_had_to_drop_is_an_error_for_who_wants_that_and_counted_for_others():
    from palio.protocol.deliveries import Lost

    broker = testing.broker()
    async with broker as address, palio.connect(address, name="slow") as client:
        strict = await client.subscribe("n >= 0", when_full="error")
        easy = await client.subscribe("n >= 0")
        broker.running.sessions["slow"].say(Lost(7, "The client did not read fast enough."))
        with pytest.raises(palio.EventsLost) as caught:
            await strict.next(timeout=10)
        assert caught.value.count == 7
        assert easy.statistics().lost_by_broker == 7
        assert client.statistics().dropped == {"lost by the broker": 7}


async def test_nothing_comes_in_time():
    async with testing.broker() as address, palio.connect(address) as client:
        subscription = await client.subscribe("n >= 0")
        with pytest.raises(palio.RequestTimeout):
            await subscription.next(timeout=0.01)
        await publish_all(client, 1)
        assert (await subscription.next(timeout=10))["n"] == 0


async def test_two_may_read_from_one_subscription_and_one_may_give_up():
    async with testing.broker() as address, palio.connect(address) as client:
        subscription = await client.subscribe("n >= 0")
        one, other, third = [asyncio.create_task(subscription.next(timeout=10)) for _ in range(3)]
        await asyncio.sleep(0)
        third.cancel()
        await publish_all(client, 2)
        assert {(await one)["n"], (await other)["n"]} == {0, 1}


async def test_iterating_ends_with_the_subscription():
    async with testing.broker() as address, palio.connect(address) as client:
        async with await client.subscribe("n >= 0") as subscription:
            await publish_all(client, 2)
            await client.flush(arrived=True)
        assert [event["n"] async for event in subscription] == [0, 1]
        with pytest.raises(palio.SubscriptionEnded):
            await subscription.next(timeout=10)
        assert await client.inspect("subs") == []


async def test_iterating_ends_with_the_client():
    async with testing.broker() as address:
        client = await palio.connect(address)
        subscription = await client.subscribe("n >= 0")
        reading = asyncio.create_task(_read(subscription))
        await publish_all(client, 2)
        await client.flush(arrived=True)
        await client.close()
        assert await reading == [0, 1]


async def _read(subscription):
    return [event["n"] async for event in subscription]


async def test_filters_that_cannot_be_are_refused_before_anything_is_sent():
    async with testing.broker() as address, palio.connect(address) as client:
        with pytest.raises(palio.FilterSyntaxError):
            await client.subscribe("n >")
        with pytest.raises(palio.ContradictoryFilter):
            await client.subscribe("n > 3 and n < 2")
        assert await client.inspect("subs") == []


async def test_what_the_broker_refuses_is_an_error_of_ours():
    async with testing.broker() as address, palio.connect(address) as client:
        with pytest.raises(palio.RequestRefused) as caught:
            await client.subscribe("n > 1", durable="desk")  # without a journal
        assert str(caught.value).endswith(".")
        assert caught.value.subject == "attach desk"


async def test_ready_means_that_the_whole_network_knows():
    async with (
        testing.network([("one", "two"), ("two", "three")]) as network,
        palio.connect(network["one"].address) as reader,
        palio.connect(network["three"].address) as writer,
    ):
        subscription = await reader.subscribe("n >= 0", ready="network")
        await publish_all(writer, 5)
        assert [(await subscription.next(timeout=10))["n"] for _ in range(5)] == [0, 1, 2, 3, 4]


async def test_no_event_in_time_is_not_taken_for_a_missing_answer():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        for options in ({}, {"durable": "desk"}):
            subscription = await client.subscribe("price > 100", **options)
            with pytest.raises(palio.NoEvent, match=r"price > 100 within 0\.01 seconds; it goes on") as told:
                await subscription.next(timeout=0.01)
            assert isinstance(told.value, palio.RequestTimeout | TimeoutError)
            assert told.value.seconds == 0.01
            assert "answer" not in str(told.value)
            await client.publish({"price": 101})
            assert (await subscription.next(timeout=10))["price"] == 101
