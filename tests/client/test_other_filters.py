"""A durable subscription that is there with another filter: whoever asks gets it, or hears why not."""

import asyncio

import pytest

import palio
from palio import testing
from palio.broker.storing import StoreBridge
from palio.model.filter import Filter
from palio.protocol.durable.subscriptions import Attach
from tests.client.test_durable import EAGER, journaling, take


async def test_another_filter_is_refused_and_both_are_named():
    async with journaling() as address, palio.connect(address) as one, palio.connect(address) as other:
        mine = await one.subscribe("n > 100", durable="desk")
        with pytest.raises(palio.FilterDiffers) as caught:
            await other.subscribe("n < 5", durable="desk")
        problem = caught.value
        assert (problem.name, problem.present, problem.asked) == ("desk", "n > 100", "n < 5")
        assert "change=True" in str(problem)
        assert "filter=None" in str(problem)
        await one.publish([{"n": 1}, {"n": 101}])
        assert await take(mine, 1) == [101]  # whoever took it goes on
        with pytest.raises(palio.FilterDiffers):
            await other.subscribe("n < 5", durable="desk", since="all", anew=True)


async def test_filters_are_the_same_by_what_they_mean():
    async with journaling() as address, palio.connect(address) as client:
        desk = await client.subscribe("int n > 1 and int n < 9", durable="desk")
        await desk.detach()
        desk = await client.subscribe("int n between 0 and 9 and n != 9 and not n in (0, 1)", durable="desk")
        assert desk.filter == Filter.parse("int n > 1 and int n < 9")


async def test_it_is_changed_in_place_or_taken_as_it_is():
    async with journaling() as address, palio.connect(address) as client:
        desk = await client.subscribe("n < 10", durable="desk", ready="network")
        await client.publish({"n": 3})
        await desk.detach()
        desk = await client.subscribe("n > 5", durable="desk", change=True)
        assert desk.filter == Filter.parse("n > 5")
        await client.publish([{"n": 4}, {"n": 12}])
        assert await take(desk, 2) == [3, 12]  # what waited stays
        await desk.detach()
        desk = await client.subscribe(None, durable="desk")
        assert desk.filter == Filter.parse("n > 5")
        await desk.detach()
        await client.subscribe("n > 5", durable="desk", change=True)


async def test_what_was_handed_out_before_it_was_attached_does_not_come_twice(monkeypatch):
    # The store answers a turn of the loop later, as one on disk does: so a delivery to the subscription that is
    # detached is under way when the same client attaches anew.
    monkeypatch.setattr(StoreBridge, "take", later(StoreBridge.take))
    async with journaling() as address, palio.connect(address) as client:
        desk = await client.subscribe("n < 10", durable="desk", ready="network")
        await client.publish({"n": 3})
        await desk.detach()
        desk = await client.subscribe(None, durable="desk")
        await client.publish({"n": 4})
        assert await take(desk, 2) == [3, 4]


def later(take):
    return lambda bridge, messages: asyncio.get_running_loop().call_soon(take, bridge, messages)


async def test_what_is_not_there_cannot_be_taken_as_it_is():
    async with journaling() as address, palio.connect(address) as client:
        with pytest.raises(palio.NoSuchSubscription) as caught:
            await client.subscribe(None, durable="desk")
        assert caught.value.name == "desk"
        assert await client.inspect("subs") == []
        for wrong in ({"filter": None}, {"filter": None, "durable": "desk", "change": True}):
            with pytest.raises(palio.PalioError, match="filter"):
                await client.subscribe(**wrong)
        with pytest.raises(palio.PalioError, match="durable"):
            await client.subscribe("n > 1", change=True)


async def test_a_reconnecting_client_is_not_refused_and_its_filter_tells_the_truth():
    broker = journaling()
    async with broker as address, palio.connect(address, name="reader") as reader:
        desk = await reader.subscribe("n < 10", durable="desk", ready="network")
        await desk.change("n > 5")
        await broker.crash()
        await broker.start()
        await reader.publish([{"n": 4}, {"n": 6}])
        assert await take(desk, 1) == [6]
        # Another filter than the one that it was subscribed with, as a third client would leave it.
        desk._attach = Attach("desk", Filter.parse("n < 10"), as_is=desk._attach.as_is)
        await broker.crash()
        await broker.start()
        await reader.publish([{"n": 5}, {"n": 7}])
        assert await take(desk, 1) == [7]
        assert desk.filter == Filter.parse("n > 5")


async def test_the_home_is_asked_before_it_lets_go():
    async with (
        testing.network([("a", "b")], journal=True, durable=EAGER) as brokers,
        palio.connect(brokers["a"].address) as one,
        palio.connect(brokers["b"].address) as other,
    ):
        mine = await one.subscribe("n > 100", durable="desk", ready="network")
        with pytest.raises(palio.FilterDiffers, match="n > 100"):
            await other.subscribe("n < 5", durable="desk")
        await other.publish([{"n": 1}, {"n": 101}])
        assert await take(mine, 1) == [101]
        theirs = await other.subscribe("n < 5", durable="desk", change=True)
        with pytest.raises(palio.TakenOver):
            await mine.next(timeout=10)
        await one.publish([{"n": 1}, {"n": 101}])
        assert await take(theirs, 1) == [1]


async def test_any_subscription_can_be_removed_from_anywhere():
    async with (
        testing.network([("a", "b")], journal=True, durable=EAGER) as brokers,
        palio.connect(brokers["a"].address) as one,
        palio.connect(brokers["b"].address) as other,
    ):
        mine = await one.subscribe("n > 0", durable="desk", ready="network")
        await other.remove("desk")
        with pytest.raises(palio.TakenOver):
            await mine.next(timeout=10)
        with pytest.raises(palio.NoSuchSubscription):
            await other.remove("desk")
        mine = await one.subscribe("n < 0", durable="desk")  # the name is free
        await one.remove("desk")  # one's own
        assert await asyncio.wait_for(anext(aiter(mine), None), 10) is None
