"""Webhooks that are sent the current documents first: each once, then what is published, across restarts."""

import asyncio
import re

import aiohttp
import pytest

import palio
from palio import testing
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.soap.settings import SoapSettings
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA
from tests.broker.gateway.calling import LOCAL, Webhook, calling, problem

QUICK = GatewaySettings(sinks=LOCAL.sinks, validate_sinks=False, push_first_pause=0.01, push_longest_pause=0.05)
SPOKEN = SoapSettings(enabled=True)  # for the content mode `document`


def wish(hook, **more):
    return {
        "id": "cards",
        "sink": f"{hook.url}/in",
        "filters": [{"palio": 'xml.family = "card" and `/card/price` < 100'}],
        "config": {"contentmode": "document", "retroactive": True},
    } | more


async def add_cards(address):
    async with palio.connect(address) as client:
        await client.families.add("card", [("card.xsd", CARD_SCHEMA)], ["/card/price"], key=["/card/code"])


async def publish(address, *cards):
    async with palio.connect(address) as client:
        for code, price in cards:
            await client.publish_document(card(code, price=price))


async def next_cards(hook, count):
    """What comes next, as codes and prices."""
    found = []
    for _ in range(count):
        _, body = await asyncio.wait_for(hook.requests.get(), 20)
        code, price = re.search(rb"<code>(.*)</code>.*<price>(.*)</price>", body).groups()
        found.append((code.decode(), int(price)))
    return found


async def test_current_documents_come_first_and_each_once():
    async with calling(gateway=QUICK, soap=SPOKEN) as (broker, session), Webhook() as hook:
        await add_cards(broker.address)
        await publish(broker.address, ("a", 1), ("b", 200), ("a", 2), ("c", 3))
        assert (await session.post("/subscriptions", json=wish(hook))).status == 201
        assert await next_cards(hook, 2) == [("a", 2), ("c", 3)]
        await publish(broker.address, ("b", 4), ("a", 300), ("c", 5))
        assert await next_cards(hook, 2) == [("b", 4), ("c", 5)]
        assert hook.requests.empty()


async def test_while_others_publish_none_is_missing_and_no_version_comes_twice():
    async with calling(gateway=QUICK, soap=SPOKEN) as (broker, session), Webhook() as hook:
        await add_cards(broker.address)
        await publish(broker.address, *[(f"k{number}", 1) for number in range(30)])
        publishing = asyncio.create_task(
            publish(broker.address, *[(f"k{number}", price) for price in (2, 3) for number in range(30)])
        )
        await asyncio.sleep(0)
        assert (await session.post("/subscriptions", json=wish(hook))).status == 201
        await publishing
        last, seen = {}, set()
        while len(last) < 30 or set(last.values()) != {3}:
            [(code, price)] = await next_cards(hook, 1)
            assert (code, price) not in seen
            seen.add((code, price))
            assert price > last.get(code, 0), code
            last[code] = price


async def test_a_webhook_that_was_away_gets_all_of_them_and_a_restart_sends_none_again():
    broker = testing.broker(journal=True, http=True, gateway=QUICK, soap=SPOKEN)
    async with Webhook() as hook:
        await broker.start()
        await add_cards(broker.address)
        await publish(broker.address, ("a", 1), ("b", 2))
        hook.status = 503
        async with aiohttp.ClientSession(broker.url) as session:
            assert (await session.post("/subscriptions", json=wish(hook))).status == 201
        await next_cards(hook, 3)
        hook.status = 200
        found = set()
        while found != {("a", 1), ("b", 2)}:
            found |= set(await next_cards(hook, 1))
        await publish(broker.address, ("c", 3))
        while ("c", 3) not in await next_cards(hook, 1):
            pass
        await broker.stop()
        await broker.start()
        await publish(broker.address, ("d", 4))
        again = await next_cards(hook, 1)
        if again == [("c", 3)]:  # whose acknowledgement was not on disk
            again = await next_cards(hook, 1)
        assert again == [("d", 4)]
        await broker.stop()


@pytest.mark.parametrize(
    "changed",
    [{"sink": None}, {"config": {"retroactive": True, "since": "all"}}, {"config": {"retroactive": "yes"}}],
)
async def test_what_makes_no_sense_is_refused(changed):
    async with calling(gateway=QUICK, soap=SPOKEN) as (broker, session), Webhook() as hook:
        await add_cards(broker.address)
        asked = {name: value for name, value in wish(hook, **changed).items() if value is not None}
        answer = await session.post("/subscriptions", json=asked)
        assert "retroactive" in (await problem(answer, 400, "WrongParameter"))["detail"]


async def test_one_that_is_there_does_not_begin_again():
    async with calling(gateway=QUICK, soap=SPOKEN) as (broker, session), Webhook() as hook:
        await add_cards(broker.address)
        plain = wish(hook, config={})
        made = await session.post("/subscriptions", json=plain)
        assert made.status == 201, await made.text()
        answer = await session.put("/subscriptions/cards", json=wish(hook))
        assert "Only a new subscription" in (await problem(answer, 400, "WrongParameter"))["detail"]
