"""Durable subscriptions: what is not acknowledged comes again, what is does not, whatever happens between."""

import asyncio

import pytest

import palio
from palio import testing
from palio.client.dialling import Backoff
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import Changed
from palio.routing.durable.desk import DurableSettings

# Rejected deliveries come again at once.
EAGER = DurableSettings(tick=0.05, settle_within=0.01, patience=Patience(first_pause=0.0, attempts=3))


def journaling(**settings):
    return testing.broker(journal=True, **settings)


async def take(subscription, count, acknowledge=True):
    events = [await subscription.next(timeout=10) for _ in range(count)]
    for event in events:
        if acknowledge:
            await event.ack(confirmed=True)
    return [event["n"] for event in events]


async def test_what_is_acknowledged_is_not_there_for_the_next_client_and_the_rest_is():
    async with journaling() as address:
        async with palio.connect(address) as client:
            desk = await client.subscribe("n >= 0", durable="desk")
            await client.publish([{"n": n} for n in range(5)])
            assert await take(desk, 2) == [0, 1]
            assert await take(desk, 1, acknowledge=False) == [2]
        async with palio.connect(address) as client:
            await client.publish({"n": 5})
            desk = await client.subscribe("n >= 0", durable="desk")
            events = [await desk.next(timeout=10) for _ in range(4)]
            assert [event["n"] for event in events] == [2, 3, 4, 5]
            assert events[0].redelivered
            assert not events[3].redelivered


async def test_what_may_be_missing_is_told_to_whoever_attaches_once(caplog):
    broker = journaling()
    async with broker as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk")
        assert desk.gaps == []
        (kept,) = broker.running.router.durable.homes.subscriptions.values()
        kept.gaps = (JournalGap("siena", 1_704, None, 12.5),)
        await desk.detach()
        again = await client.subscribe("n >= 0", durable="desk")
        await client.flush(arrived=True)
        assert [str(gap) for gap in again.gaps] == ["siena after 1,704"]
        again.gap_noticed(again.gaps[0])  # as after a connection was lost
        assert len(again.gaps) == 1
    assert [one.getMessage() for one in caplog.records if one.name == "palio.client"] == [
        "A journal came back older than it was: the durable subscription 'desk' may miss what it had, "
        "siena after 1,704."
    ]


async def test_what_is_damaged_on_a_disk_is_not_delivered_and_is_told(caplog):
    """Events by their sequences, when they are read; deliveries that waited by their numbers."""
    broker = journaling()
    async with broker as address:
        disk = broker._host.place.disk
        async with palio.connect(address) as client:
            await client.subscribe("n > 9", durable="other")  # for which all is kept
            await client.publish([{"n": n} for n in range(1, 7)])
            disk.flip(2)
            disk.flip(3)
            desk = await client.subscribe("n > 0", durable="desk", since="all")
            assert await take(desk, 1) == [1]
            assert await take(desk, 3, acknowledge=False) == [4, 5, 6]
            assert [(gap.after, gap.upto, gap.what) for gap in desk.gaps] == [(1, 3, "damaged")]
            numbers = sorted(disk.subscriptions["desk"].spool)
            disk.flip_delivery("desk", numbers[1])
        await broker.crash()
        await broker.start()
        async with palio.connect(address) as client:
            desk = await client.subscribe("n > 0", durable="desk")
            assert await take(desk, 2) == [4, 6]
            assert [str(gap) for gap in desk.gaps] == [
                "broker after 1 up to 3",
                f"delivery {numbers[1]} at broker",
            ]
    assert "A disk has damaged events: the durable subscription 'desk' may miss what it had" in caplog.text


async def test_another_event_with_the_sequence_of_one_that_was_acknowledged_is_seen():
    """A journal that came back older gives sequences a second time."""
    async with journaling() as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk")
        await client.publish({"n": 1})
        event = await desk.next(timeout=10)
        other = event.copy()
        other._taken += 1.0
        desk._acknowledge(event)  # which nobody has confirmed
        desk.hand([(99, 1, other), (98, 2, event.copy())])
        assert (await desk.next(timeout=10))._taken == other._taken
        assert desk.statistics().dropped == {"acknowledged before": 1}


async def test_processing_acknowledges_and_an_exception_rejects():
    async with journaling(durable=EAGER) as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk")
        await client.publish([{"n": 0}, {"n": 1}])
        handled = []
        async for event in desk:
            try:
                async with event.process():
                    if event["n"] == 0 and event.attempt == 1:
                        raise ValueError
                    handled.append((event["n"], event.attempt))
            except ValueError:
                pass
            if len(handled) == 2:
                break
        assert handled == [(1, 1), (0, 2)]
        await client.drain()
        async with palio.connect(address) as other:
            await other.subscribe("n >= 0", durable="desk", ready="network")
            assert [row["pending"] for row in await other.inspect("subs")] == [0]


async def test_a_filter_is_changed_in_place():
    async with journaling() as address, palio.connect(address) as client:
        desk = await client.subscribe("n < 10", durable="desk", ready="network")
        changed = await desk.change("n > 5")
        assert changed.drops is not None
        assert changed.adds is not None
        await client.publish([{"n": 3}, {"n": 7}, {"n": 12}])
        assert await take(desk, 2) == [7, 12]
        assert str(desk.filter) == "n > 5"
        with pytest.raises(palio.FilterSyntaxError):
            await desk.change("n >")


async def test_a_change_that_an_earlier_taker_asked_for_is_no_answer_to_a_later_one():
    async with journaling() as address, palio.connect(address) as client:
        desk = await client.subscribe("n < 10", durable="desk", ready="network")
        change = asyncio.create_task(desk.change("n > 5"))
        await asyncio.sleep(0)
        client._session._changed(Changed("desk", None, None, palio.Filter.parse("n < 3")))
        await asyncio.sleep(0)
        assert not change.done()
        assert str((await change).filter) == str(desk.filter) == "n > 5"


async def test_the_latest_client_is_the_taker():
    async with journaling() as address, palio.connect(address) as one, palio.connect(address) as other:
        mine = await one.subscribe("n >= 0", durable="desk")
        theirs = await other.subscribe("n >= 0", durable="desk")
        await one.publish({"n": 1})
        assert await take(theirs, 1) == [1]
        with pytest.raises(palio.TakenOver) as caught:
            await mine.next(timeout=10)
        assert caught.value.subscription == "desk"
        with pytest.raises(palio.PalioError, match="already"):
            await other.subscribe("n >= 0", durable="desk")


async def test_unsubscribing_ends_it_and_detaching_does_not():
    async with journaling() as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk")
        await desk.detach()
        await client.publish({"n": 1})
        desk = await client.subscribe("n >= 0", durable="desk")
        assert await take(desk, 1, acknowledge=False) == [1]
        await desk.unsubscribe()
        assert [event async for event in desk] == []
        desk = await client.subscribe("n >= 0", durable="desk")
        await client.publish({"n": 2})
        assert await take(desk, 1) == [2]


async def test_a_crash_of_the_broker_loses_nothing_that_was_confirmed():
    broker = journaling()
    async with broker as address, palio.connect(address) as writer, palio.connect(address) as reader:
        desk = await reader.subscribe("n >= 0", durable="desk", in_flight=1000)
        confirmed, taken = [], []

        async def write():
            for n in range(200):
                await writer.publish({"n": n})
                confirmed.append(n)

        async def read():
            async for event in desk:
                taken.append(event["n"])
                await event.ack()
                if len(set(taken)) == 200:
                    return

        writing, reading = asyncio.create_task(write()), asyncio.create_task(read())
        for crash_at in (20, 70, 130):
            await broker.until(lambda at=crash_at: len(confirmed) >= at)
            await broker.crash()
            await broker.start()
        await writing
        await reading
        first_deliveries = list(dict.fromkeys(taken))
        assert first_deliveries == confirmed == list(range(200))


async def test_what_was_acknowledged_as_the_connection_was_cut_is_not_seen_again():
    broker = journaling()
    async with broker as address, palio.connect(address, name="reader") as reader:
        desk = await reader.subscribe("n >= 0", durable="desk")
        await reader.publish([{"n": 0}, {"n": 1}])
        first, second = await desk.next(timeout=10), await desk.next(timeout=10)
        broker.cut_off("reader")
        await first.ack()  # it does not arrive
        while reader.state.value == "live":
            await asyncio.sleep(0)
        await reader.publish({"n": 2})  # there is a connection again
        seen = [await desk.next(timeout=10), await desk.next(timeout=10)]
        assert [event["n"] for event in seen] == [1, 2]
        assert desk.statistics().dropped == {"acknowledged before": 1}
        await second.ack()
        await seen[1].ack(confirmed=True)
        rows = await reader.inspect("subs")
        assert [row["pending"] for row in rows] == [0]


async def test_a_confirmation_that_cannot_come_is_an_error():
    broker = journaling()
    async with broker as address, palio.connect(address, name="reader") as reader:
        desk = await reader.subscribe("n >= 0", durable="desk")
        await reader.publish([{"n": 0}, {"n": 1}])
        first, second = await desk.next(timeout=10), await desk.next(timeout=10)
        broker.cut_off("reader")
        with pytest.raises(palio.ConnectionLost, match="'acknowledge'"):
            await first.ack(confirmed=True)  # it does not arrive
        while desk.statistics().dropped != {"acknowledged before": 1}:  # there is a connection again
            await asyncio.sleep(0.001)
        await second.ack(confirmed=True)  # it has come again
        assert [row["pending"] for row in await reader.inspect("subs")] == [0]


async def test_what_came_on_a_lost_connection_is_not_confirmed_on_the_next_one():
    broker = journaling()
    async with broker as address, palio.connect(address, name="reader") as reader:
        desk = await reader.subscribe("n >= 0", durable="desk")
        await reader.publish({"n": 0})
        event = await desk.next(timeout=10)
        broker.cut_off("reader")
        while reader.state.value == "live":
            await asyncio.sleep(0)
        with pytest.raises(palio.ConnectionLost):
            await event.ack(confirmed=True)


async def test_an_event_that_is_being_handled_while_it_comes_again_is_acknowledged_once_for_all():
    broker = journaling()
    async with broker as address, palio.connect(address, name="reader") as reader:
        desk = await reader.subscribe("n >= 0", durable="desk")
        await reader.publish({"n": 0})
        event = await desk.next(timeout=10)
        broker.cut_off("reader")
        while desk.statistics().received < 2:  # it has come again
            await asyncio.sleep(0.001)
        await event.ack()
        await reader.publish({"n": 1})
        assert await take(desk, 1) == [1]


async def test_draining_waits_for_what_is_being_handled():
    async with journaling() as address:
        client = await palio.connect(address)
        desk = await client.subscribe("n >= 0", durable="desk", in_flight=2)
        await client.publish([{"n": n} for n in range(5)])
        event = await desk.next(timeout=10)
        draining = asyncio.create_task(client.drain())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not draining.done()
        await event.ack()
        await draining
        assert client.state.value == "closed"
        async with palio.connect(address) as other:
            desk = await other.subscribe("n >= 0", durable="desk")
            assert await take(desk, 4) == [1, 2, 3, 4]


async def test_a_client_moves_to_another_broker_with_its_backlog():
    async with testing.network([("one", "two")], journal=True) as network:
        writer = await palio.connect(network["one"].address)
        reader = await palio.connect(network["one"].address)
        desk = await reader.subscribe("n >= 0", durable="desk", ready="network")
        await writer.publish([{"n": n} for n in range(4)])
        assert await take(desk, 2) == [0, 1]
        await reader.close()
        async with palio.connect(network["two"].address) as reader:
            desk = await reader.subscribe("n >= 0", durable="desk")
            assert desk.home == "two"
            assert await take(desk, 2) == [2, 3]
        await writer.close()


async def test_a_home_that_cannot_be_reached_is_waited_for():
    async with testing.network([("one", "two")], journal=True) as network:
        address = network.address
        async with palio.connect(address, backoff=Backoff(first=0.001, longest=0.05)) as reader:
            assert reader.broker == "one"
            desk = await reader.subscribe("n >= 0", durable="desk", ready="network")
            await reader.publish({"n": 0})
            assert await take(desk, 1) == [0]
            await network["one"].stop()
            await reader.publish({"n": 1})
            assert reader.broker == "two"  # which cannot know where the subscription is
            await network["one"].start()
            await network.until_linked()
            assert await take(desk, 1) == [1]
            assert desk.home == "two"


async def test_a_durable_subscription_may_be_called_as_others_are_called_by_themselves():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        durables = [await client.subscribe("x = 1", durable=f"s{number}") for number in range(6)]
        others = [await client.subscribe("x = 1") for _ in range(4)]
        for one in others[:2]:
            await one.unsubscribe()
        await client.publish({"x": 1})
        for one in (*durables, *others[2:]):
            assert (await one.next(timeout=10))["x"] == 1
