"""Retroactive subscriptions: the current documents once, then what is published; nothing else, all of it."""

import asyncio
import json
import random
from types import SimpleNamespace

import pytest

import palio
from palio import testing
from palio.broker.documents.retroactive import BEGINNING, BEGUN, BegunPosition, RetroactiveBeginnings
from palio.broker.documents.settings import DocumentSettings
from palio.client import knowledge
from palio.client.errors import RequestRefused, WrongSubscription
from palio.routing.documents.beginning import RetroactivePosition
from tests.broker.documents.cards import PRICE, card, know_cards
from tests.broker.gateway.calling import calling, problem, streaming
from tests.security.world import World

CHEAP = f'xml.family = "card" and `{PRICE}` < 50'


async def started(broker):
    await broker.start()
    if not broker.running.documents.families.names():
        await know_cards(broker.running)
    return broker


def named(event):
    return event.origin, event.sequence


async def test_current_documents_come_once_and_old_versions_never():
    broker = await started(testing.broker(journal=True))
    async with palio.connect(broker.address) as client:
        for key, price in (("c1", 10), ("c2", 5), ("c3", 70), ("c1", 12), ("c4", 1)):
            await client.publish_document(card(key, price=price))
        await client.withdraw_document("card", "c4")
        since_now = await client.subscribe(CHEAP)
        subscription = await client.subscribe(CHEAP, retroactive=True)
        found = [await subscription.next(timeout=10) for _ in range(2)]
        assert [(one["xml.key"], one[PRICE], named(one)) for one in found] == [
            ("c1", 12.0, ("broker", 4)),
            ("c2", 5.0, ("broker", 2)),
        ]
        assert found[0].payload == card("c1", price=12)
        await client.publish_document(card("c2", price=6))
        assert named(await subscription.next(timeout=10)) == ("broker", 7)
        assert named(await since_now.next(timeout=10)) == ("broker", 7)
        with pytest.raises(palio.client.NoEvent):
            await subscription.next(timeout=0.05)
    await broker.stop()


async def test_what_is_wished_together_must_go_together():
    broker = await started(testing.broker(journal=True))
    async with palio.connect(broker.address) as client:
        for more in ({"since": "all"}, {"after": {"broker": 1}}, {"change": True, "durable": "d"}):
            with pytest.raises(WrongSubscription, match="retroactive"):
                await client.subscribe("true", retroactive=True, **more)
        with pytest.raises(RequestRefused, match="name"):
            await client._session.invoke("documents.begin", {"name": ""})
    await broker.stop()


class Publisher:
    """Somebody who publishes versions of few documents, and remembers all of them."""

    def __init__(self, client, chance):
        self.client = client
        self.published = []  # (origin, sequence), key, price
        self._chance = chance

    async def publish(self):
        key, price = f"c{self._chance.randrange(40)}", self._chance.choice([5, 20, 80])
        priority = self._chance.randrange(10)
        confirmed = await self.client.publish_document(card(key, price=price), priority=priority)
        self.published.append(((confirmed.origin, confirmed.sequence), key, price))


def judge(came, published):
    """What comes to a retroactive subscription, against all that was published.

    For some position: of each document the version that was current there, or none if it was not wanted, or a
    newer one was there before it was read; and everything wanted after it.
    """
    assert len(set(came)) == len(came), "something came twice"
    by_name = {name: (key, price) for name, key, price in published}
    assert all(by_name[name][1] < 50 for name in came)
    for origin in {name[0] for name, _, _ in published}:
        mine = [(name[1], key, price) for name, key, price in sorted(published) if name[0] == origin]
        sequences = {one[1] for one in came if one[0] == origin}
        assert any(_fits(position, mine, sequences) for position in range(len(mine) + 1))


def _fits(position, mine, came):
    current = {}
    for sequence, key, price in mine:
        if sequence <= position:
            current[key] = sequence, price
    later = {sequence for sequence, _, price in mine if sequence > position and price < 50}
    documents = {sequence for sequence, price in current.values() if price < 50}
    newer = {key for sequence, key, _ in mine if sequence > position}
    may_lack = {current[key][0] for key in newer if key in current}
    return later <= came and came - later <= documents and documents - may_lack <= came


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("durable", [None, "desk"])
async def test_nothing_is_missing_and_nothing_comes_twice_while_others_publish(seed, durable):
    chance = random.Random(seed)
    broker = await started(testing.broker(journal=True))
    async with palio.connect(broker.address) as client, palio.connect(broker.address) as reader:
        publishers = [Publisher(client, chance) for _ in range(4)]
        stop = asyncio.Event()

        async def busy(one):
            while not stop.is_set():
                await one.publish()
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(busy(one)) for one in publishers]
        await broker.until(lambda: sum(len(one.published) for one in publishers) > chance.randrange(20, 60))
        subscription = await reader.subscribe(CHEAP, retroactive=True, durable=durable)
        came = []
        while len(came) < 60:
            event = await subscription.next(timeout=20)
            came.append(named(event))
            await event.ack()
        stop.set()
        await asyncio.gather(*tasks)
        last = await client.publish_document(card("last", price=1))
        published = [row for one in publishers for row in one.published]
        while came[-1] != (last.origin, last.sequence):
            came.append(named(await subscription.next(timeout=20)))
        judge(came, [*published, ((last.origin, last.sequence), "last", 1)])
    await broker.stop()


async def test_who_is_interrupted_begins_with_the_documents_again():
    broker = await started(testing.broker(journal=True))
    async with palio.connect(broker.address) as client:
        for n in range(3):
            await client.publish_document(card(f"c{n}", price=n))
        async with palio.connect(broker.address) as reader:
            subscription = await reader.subscribe(CHEAP, retroactive=True, durable="desk")
            first = await subscription.next(timeout=10)
            await first.ack()
            await client.publish_document(card("c2", price=9))
            await broker.crash()
            await started(broker)
        async with palio.connect(broker.address) as reader:
            subscription = await reader.subscribe(CHEAP, retroactive=True, durable="desk")
            found = [await subscription.next(timeout=10) for _ in range(3)]
            assert [(one["xml.key"], one[PRICE]) for one in found] == [("c0", 0.0), ("c1", 1.0), ("c2", 9.0)]
            for one in found:
                await one.ack()
            with pytest.raises(palio.client.NoEvent):
                await subscription.next(timeout=0.05)
            store = broker.running.store
            async with asyncio.timeout(10):
                while store.records("document.beginning"):
                    await asyncio.sleep(0.01)
        async with palio.connect(broker.address) as reader:
            subscription = await reader.subscribe(CHEAP, retroactive=True, durable="desk")
            await client.publish_document(card("c1", price=3))
            assert (await subscription.next(timeout=10))[PRICE] == 3.0
    await broker.stop()


async def test_documents_of_a_whole_network_come_from_a_broker_that_keeps_them():
    keep = DocumentSettings(keep='xml.family = "card"')
    network = testing.network([("a", "b"), ("b", "c")], journal=True, documents=keep)
    chance = random.Random(3)
    async with network:
        await know_cards(network["a"].running)
        for one in network.brokers.values():
            await one.until(lambda one=one: one.running.documents.families.names() == ["card"])
        clients = [await palio.connect(network[name].address) for name in "abc"]
        publishers = [Publisher(one, chance) for one in clients]
        for one in publishers:
            one._chance = random.Random(one.client.broker)
        stop = asyncio.Event()

        async def busy(one, prefix):
            while not stop.is_set():  # documents of its own: between origins only clocks decide
                key, price = f"{prefix}{chance.randrange(12)}", chance.choice([5, 20, 80])
                confirmed = await one.client.publish_document(card(key, price=price))
                one.published.append(((confirmed.origin, confirmed.sequence), key, price))
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(busy(one, name)) for one, name in zip(publishers, "abc", strict=True)]
        async with asyncio.timeout(20):
            while min(len(one.published) for one in publishers) < 15:
                await asyncio.sleep(0.005)
        subscription = await clients[1].subscribe(CHEAP, retroactive=True, timeout=20)
        came = [named(await subscription.next(timeout=20)) for _ in range(30)]
        stop.set()
        await asyncio.gather(*tasks)
        lasts = {}
        for n, one in enumerate(clients):
            lasts[named(await one.publish_document(card(f"last{n}", price=1)))] = n
        while not lasts.keys() <= set(came):
            came.append(named(await subscription.next(timeout=20)))
        published = [row for one in publishers for row in one.published]
        judge(came, [*published, *[(name, f"last{n}", 1) for name, n in lasts.items()]])
        for one in clients:
            await one.close()


async def test_a_stream_begins_with_the_current_documents():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        await know_cards(broker.running)
        for n in range(70):
            await client.publish_document(card(f"c{n % 35:02}", price=n))
        asked = {"filter": f"`{PRICE}` < 50", "retroactive": "true"}
        async with streaming(session, **asked) as stream:
            found = [await stream.next() for _ in range(15)]
            assert [json.loads(one["data"])[PRICE] for one in found] == [float(n) for n in range(35, 50)]
            assert all("id" not in one for one in found)
            await client.publish_document(card("c01", price=2))
            event = await stream.next()
            assert json.loads(event["data"])["xml"]["key"] == "c01"
            assert event["id"].partition("@")[0] == "broker/71"
        await client.publish_document(card("c02", price=3))
        async with streaming(session, event["id"], **asked) as stream:
            assert (await stream.data())["xml"]["key"] == "c02"
        await problem(await session.get("/events?retroactive=true&since=all"), 400, "WrongParameter")


async def test_nobody_sees_more_than_it_may(tmp_path):
    world = World(tmp_path)
    world.add("all", "true", "true")
    world.add("some", None, f"`{PRICE}` < 5")
    broker = await started(world.broker(journal=True, documents=DocumentSettings(keep="true")))
    async with world.connect(broker.address, "all") as client, world.connect(broker.address, "some") as some:
        for key, price in (("c1", 10), ("c2", 1)):
            await client.publish_document(card(key, price=price))
        subscription = await some.subscribe("true", retroactive=True, durable="desk")
        assert (await subscription.next(timeout=10))["xml.key"] == "c2"
        await client.publish_document(card("c3", price=2))
        assert (await subscription.next(timeout=10))["xml.key"] == "c3"
    await broker.stop()


@pytest.fixture
def before_position(monkeypatch):
    """What is done when a subscription is there, and before its position is taken."""
    position, todo = RetroactiveBeginnings.position, []

    async def later(self, name, wait):
        while todo:
            await todo.pop(0)()
        return await position(self, name, wait)

    monkeypatch.setattr(RetroactiveBeginnings, "position", later)
    return todo


async def until_no_records(broker, kind):
    async with asyncio.timeout(10):
        while broker.running.store.records(kind):
            await asyncio.sleep(0.01)


async def test_another_life_of_a_client_passes_over_what_was_among_the_documents(before_position):
    broker = await started(testing.broker(journal=True))
    async with palio.connect(broker.address) as client:

        async def publish():
            for price in (2, 3):
                await client.publish_document(card("c0", price=price))

        before_position.append(publish)
        async with palio.connect(broker.address) as reader:
            subscription = await reader.subscribe(CHEAP, retroactive=True, durable="desk")
            first = await subscription.next(timeout=10)
            assert named(first) == ("broker", 2)
            await first.ack()
            await until_no_records(broker, BEGINNING)
        await client.publish_document(card("c1", price=4))
        for price in (4, 5):
            async with palio.connect(broker.address) as reader:
                subscription = await reader.subscribe(CHEAP, retroactive=True, durable="desk")
                event = await subscription.next(timeout=10)
                assert (event["xml.key"], event[PRICE]) == ("c1", price)
                await event.ack(confirmed=True)
            await client.publish_document(card("c1", price=price + 1))
        assert not broker.running.store.records(BEGUN), "the subscription is beyond the position"
    await broker.stop()


async def test_of_a_beginning_that_was_left_nothing_is_passed_over(before_position, monkeypatch):
    """Its documents may never have come."""
    monkeypatch.setattr(knowledge, "PAGE", 1)
    async with testing.network([("one", "two")], journal=True) as network:
        await know_cards(network["one"].running)
        quick = palio.Backoff(first=0.001, longest=0.05)
        async with (
            palio.connect(network["one"].address) as writer,
            palio.connect(network.address, backoff=quick) as reader,
        ):
            assert reader.broker == "one"
            await writer.publish_document(card("c0", price=1))

            async def publish():
                await writer.publish_document(card("c1", price=2))

            before_position.append(publish)
            subscription = await reader.subscribe(CHEAP, retroactive=True, durable="desk", ready="network")
            first = await subscription.next(timeout=10)
            assert first["xml.key"] == "c0"
            await network["one"].stop()
            await reader.publish({"n": 1})
            assert reader.broker == "two"
            await network["one"].start()
            await network.until_linked()
            assert (await subscription.next(timeout=20))["xml.key"] == "c1"
            assert network["two"].running.store.records(BEGINNING), "another life would begin again"
            await first.ack()
            await until_no_records(network["two"], BEGINNING)


async def test_who_moves_before_all_documents_are_acknowledged_begins_again_in_another_life():
    async with testing.network([("one", "two")], journal=True) as network:
        await know_cards(network["one"].running)
        await network["two"].until(lambda: network["two"].running.documents.families.names() == ["card"])
        async with palio.connect(network["one"].address) as one, palio.connect(network["two"].address) as two:
            await one.publish_document(card("here", price=1))
            await two.publish_document(card("there", price=2))
            async with palio.connect(network["one"].address) as reader:
                subscription = await reader.subscribe(CHEAP, retroactive=True, durable="desk", ready="network")
                assert (await subscription.next(timeout=10))["xml.key"] == "here"  # and is not acknowledged
            async with palio.connect(network["two"].address) as reader:
                subscription = await reader.subscribe(CHEAP, retroactive=True, durable="desk")
                event = await subscription.next(timeout=10)
                assert event["xml.key"] == "there"
                await event.ack()
                await until_no_records(network["two"], BEGINNING)


@pytest.mark.parametrize("place", [(2, "life 1"), (2, "life 2")])
def test_nothing_is_passed_over_of_a_journal_that_came_back_older(place):
    position = RetroactivePosition("broker", {"broker": 2}, None)
    durable = SimpleNamespace(
        places=lambda of: {"broker": place},
        outbox=SimpleNamespace(deliveries={}),
        stored_position={"broker": (1, "life 1")},
    )
    left = BegunPosition(position, {"broker": (2, "life 1")}).ahead(durable)
    assert left == (position if place == (2, "life 1") else None)
