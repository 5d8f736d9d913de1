"""Current documents: of many publishes one is current, whoever asks, and with what rights."""

import asyncio

import aiohttp
import pytest

import palio
from palio import testing
from palio.broker.documents.knowledge import KnowledgeBase
from palio.client.errors import RequestRefused
from tests.broker.documents.cards import CARD, PRICE, card, know_cards
from tests.broker.gateway.calling import calling, problem
from tests.security.world import World


async def started(broker):
    await broker.start()
    broker.running.documents.readers.tell([CARD])
    return broker


async def test_of_a_hundred_publishes_at_once_exactly_one_is_current():
    broker = await started(testing.broker(journal=True))
    clients = [await palio.connect(broker.address) for _ in range(4)]
    under_way = [clients[n % 4].publish_document(card(price=n), {"number": n}) for n in range(100)] + [
        clients[0].publish_document(card("other"))
    ]
    confirmed = await asyncio.gather(*under_way)
    *of_one, other = confirmed
    last = max(of_one, key=lambda one: one.sequence)
    current = await clients[0].document("card", "c1")
    assert current.sequence == last.sequence
    assert of_one.index(last) == current["number"] == current[PRICE]
    assert current.payload == card(price=current["number"])
    found = [(one["xml.key"], one.sequence) async for one in clients[1].documents('xml.family = "card"')]
    assert found == [("c1", last.sequence), ("other", other.sequence)]
    for one in clients:
        await one.close()
    await broker.stop()


async def test_it_is_there_after_a_crash_and_outlives_the_journal():
    broker = await started(testing.broker(journal=True))
    async with palio.connect(broker.address) as client:
        await client.publish_document(card(price=1))
        await client.publish_document(card(price=2))
        await client.trim_journal()
        await broker.crash()
        await started(broker)
        assert (await client.document("card", "c1", timeout=20)).payload == card(price=2)
        assert [one async for one in client.replay("true")] == []
    await broker.stop()


async def test_pages_are_complete_whatever_is_in_between():
    broker = await started(testing.broker(journal=True))
    keys = [f"k{n:03}" for n in range(230)]
    async with palio.connect(broker.address) as client:
        await asyncio.gather(*[client.publish_document(card(key, price=n)) for n, key in enumerate(keys)])
        found = [one["xml.key"] async for one in client.documents(f"`{PRICE}` < 205")]
        assert found == keys[:205]
        assert [one async for one in client.documents('xml.family = "other"')] == []
        long = ["ü" * 600 + end for end in ("a", "b")]
        for one in long:
            await client.publish_document(card(one))
        assert (await client.document("card", long[1]))["xml.key"] == long[1]
    await broker.stop()


async def test_who_may_not_subscribe_may_not_look(tmp_path):
    world = World(tmp_path)
    world.add("all", "true", "true")
    world.add("some", None, f"`{PRICE}` < 5")
    world.add("nobody", "true", None)
    broker = await started(world.broker(journal=True))
    async with (
        world.connect(broker.address, "all") as everything,
        world.connect(broker.address, "some") as some,
        world.connect(broker.address, "nobody") as nobody,
    ):
        for key, price in (("c1", 10), ("c2", 1)):
            await everything.publish_document(card(key, price=price))
        assert [one["xml.key"] async for one in everything.documents()] == ["c1", "c2"]
        assert [one["xml.key"] async for one in some.documents()] == ["c2"]
        assert (await some.document("card", "c2"))[PRICE] == 1.0
        for client, key in ((some, "c1"), (nobody, "c2"), (everything, "c9")):
            with pytest.raises(RequestRefused, match="no current document") as refused:
                await client.document("card", key)
            assert refused.value.error == "NoSuchDocument"
        with pytest.raises(palio.NotAllowed, match="no right to see"):
            await anext(nobody.documents())
    await broker.stop()


async def test_over_http_a_version_is_sent_once():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        broker.running.documents.readers.tell([CARD])
        await client.publish_document(card("a/b%", price=1))
        answer = await session.get("/documents/card/a%252Fb%2525")
        assert (answer.status, await answer.read()) == (200, card("a/b%", price=1))
        assert (answer.content_type, answer.headers["Palio-Event"]) == ("application/xml", "broker/1")
        known = {"If-None-Match": f'"x", W/{answer.headers["ETag"]}'}
        again = await session.get("/documents/card/a%252Fb%2525", headers=known)
        assert (again.status, await again.read()) == (304, b"")
        await client.publish_document(card("a/b%", price=2))
        newer = await session.get("/documents/card/a%252Fb%2525", headers=known)
        assert (newer.status, await newer.read()) == (200, card("a/b%", price=2))
        await problem(await session.get("/documents/card/c7"), 404, "NoSuchDocument")
        await problem(await session.get("/documents/card/c7?what=1"), 400, "WrongParameter")


async def test_over_http_pages_lead_to_each_document():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        broker.running.documents.readers.tell([CARD])
        for n in range(5):
            await client.publish_document(card(f"c/{n}", price=n))
        asked, found = {"filter": f"`{PRICE}` > 0", "limit": "3"}, []
        while True:
            page = await (await session.get("/documents", params=asked)).json()
            for one in page["documents"]:
                content = await (await session.get(aiohttp.client.URL(one["href"], encoded=True))).read()
                assert len(content) == one["bytes"]
                found.append((one["key"], one["attributes"][PRICE], content))
            if page["onward"] is None:
                break
            asked["after"] = page["onward"]
        assert found == [(f"c%2F{n}", float(n), card(f"c/{n}", price=n)) for n in range(1, 5)]
        await know_cards(broker.running)
        for asked in ({}, {"filter": "card.price < 2"}, {"filter": 'xpath("/c:card/c:price") < 2 or false'}):
            page = await (await session.get("/documents/card", params=asked)).json()
            prices = [one["attributes"][PRICE] for one in page["documents"]]
            assert prices == ([0.0, 1.0] if asked else [0.0, 1.0, 2.0, 3.0, 4.0])
        await problem(await session.get("/documents/kard"), 404, "UnknownFamily")
        await problem(await session.get("/documents?limit=0"), 400, "WrongParameter")
        await problem(await session.get("/documents?filter=price+>"), 400, "FilterSyntaxError")


async def test_an_answer_is_not_older_than_a_publish(monkeypatch):
    looked, heard_of = asyncio.Event(), KnowledgeBase._heard_of

    def watched(self, origin):
        looked.set()
        return heard_of(self, origin)

    async with calling() as (broker, session), palio.connect(broker.address) as client:
        broker.running.documents.readers.tell([CARD])
        for n in range(20):
            confirmed = await client.publish_document(card(price=n))
            assert (await client.document("card", "c1", at_least=confirmed))[PRICE] == n
        late = palio.client.Confirmation("broker", 21)
        monkeypatch.setattr(KnowledgeBase, "_heard_of", watched)
        waiting = asyncio.create_task(client.document("card", "c1", at_least=late))
        await looked.wait()
        await client.publish_document(card(price=99))
        assert (await waiting)[PRICE] == 99
        url = "/documents/card/c1?at_least=broker/{}&wait=0"
        assert (await session.get(url.format(21))).status == 200
        await problem(await session.get(url.format(22)), 504, "NotHeardYet")
        await problem(await session.get("/documents/card/c1?at_least=other/1"), 504, "NotHeardYet")
        await problem(await session.get("/documents/card/c1?at_least=17"), 400, "WrongParameter")


async def test_a_withdrawal_is_a_version_that_subscribers_hear_of():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        broker.running.documents.readers.tell([CARD])
        cheap = await client.subscribe(f"`{PRICE}` < 5")
        for key, price in (("c1", 1), ("c2", 9), ("c3", 2)):
            await client.publish_document(card(key, price=price), {"region": "north"})
        confirmed = await client.withdraw_document("card", "c1", id="once")
        assert await client.withdraw_document("card", "c1", id="once") == confirmed
        assert await client.withdraw_document("card", "c3") == palio.client.Confirmation("broker", 5)
        for _ in range(2):
            await cheap.next(timeout=10)
        event = await cheap.next(timeout=10)
        assert (event.sequence, event["xml.key"], event["xml.withdrawn"], event.payload) == (
            4,
            "c1",
            True,
            None,
        )
        assert (event[PRICE], event["region"]) == (1.0, "north")
        assert [one["xml.key"] async for one in client.documents()] == ["c2"]
        with pytest.raises(RequestRefused, match="was withdrawn by broker/4") as refused:
            await client.document("card", "c1", at_least=confirmed)
        assert refused.value.error == "DocumentWithdrawn"
        with pytest.raises(RequestRefused, match="was withdrawn"):
            await client.withdraw_document("card", "c1", id="twice")
        with pytest.raises(RequestRefused, match="no current document"):
            await client.withdraw_document("card", "c9")
        with pytest.raises(palio.PalioError, match="says what a document is"):
            await client.publish({"xml.family": "card", "xml.key": "c2", "xml.withdrawn": True})
        answer = await session.delete("/documents/card/c2")
        assert (answer.status, (await answer.json())["sequences"]) == (200, [6])
        await problem(await session.get("/documents/card/c2"), 410, "DocumentWithdrawn")
        await problem(await session.delete("/documents/card/c2"), 410, "DocumentWithdrawn")
        await problem(await session.delete("/documents/card/c9"), 404, "NoSuchDocument")
        await client.publish_document(card("c2", price=7))
        assert (await client.document("card", "c2"))[PRICE] == 7.0


async def test_who_may_publish_a_document_may_withdraw_it(tmp_path):
    world = World(tmp_path)
    world.add("all", "true", "true")
    world.add("some", f"`{PRICE}` < 5", None)
    broker = await started(world.broker(journal=True))
    async with (
        world.connect(broker.address, "all") as everything,
        world.connect(broker.address, "some") as some,
    ):
        for key, price in (("c1", 10), ("c2", 1)):
            await everything.publish_document(card(key, price=price))
        await some.withdraw_document("card", "c2")
        with pytest.raises(palio.NotAllowed, match="may not publish"):
            await some.withdraw_document("card", "c1")
        assert [one["xml.key"] async for one in everything.documents()] == ["c1"]
    await broker.stop()


async def test_documents_are_pulled_by_xpath():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        await know_cards(broker.running)
        for n in range(4):
            await client.publish_document(card(f"c{n}", price=n))
        wanted = 'family card where xpath("/c:card/c:price") > 1 and card.code != "c3"'
        assert [one["xml.key"] async for one in client.documents(wanted)] == ["c2"]
        page = await (await session.get("/documents", params={"filter": wanted})).json()
        assert [one["key"] for one in page["documents"]] == ["c2"]
        with pytest.raises(RequestRefused, match="no family of documents called 'other'"):
            await anext(client.documents("family other"))
        await problem(await session.get("/documents?filter=family+other"), 404, "UnknownFamily")


async def test_a_broker_without_a_journal_has_none():
    async with calling(journal=False) as (broker, session), palio.connect(broker.address) as client:
        with pytest.raises(RequestRefused, match="journal"):
            await client.document("card", "c1")
        await problem(await session.get("/documents"), 501, "NoJournal")
