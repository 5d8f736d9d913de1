"""Subscribing by XPath over HTTP: as resources, and as streams."""

import json
from contextlib import asynccontextmanager

import pytest

import palio
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import WANTED
from tests.broker.gateway.calling import calling, problem

CHEAP = 'family card where xpath("/card/price") < 10'
PLAIN = 'xml.family = "card" and `/card/price` < 10'
DOCUMENT = {"Content-Type": "application/xml"}


@asynccontextmanager
async def scene():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        await client.families.add("card", **WANTED)
        yield session, client


@pytest.mark.parametrize(
    "said",
    [
        {"filter": CHEAP, "dialect": "palio"},
        {"filters": [{"palio": CHEAP}]},
        {"filters": [{"any": [{"palio": CHEAP}, {"palio": "family card where card.price < 0"}]}]},
    ],
)
async def test_a_subscription_by_xpath_is_made_and_kept_as_a_plain_filter(said):
    async with scene() as (session, client):
        made = await session.post("/subscriptions", json={"id": "cheap", **said})
        assert made.status == 201, await made.text()
        subscription = await client.subscribe(None, durable="cheap")
        for price in (15, 5):
            await session.post("/documents", data=card(f"c{price}", price=price), headers=DOCUMENT)
        event = await subscription.next(timeout=10)
        assert event["xml.key"] == "c5"
        shown = await (await session.get("/subscriptions/cheap")).json()
        assert "xpath" not in json.dumps(shown)
        assert "/card/price" in json.dumps(shown)


async def test_a_subscription_is_changed_by_xpath_and_its_path_is_extracted():
    async with scene() as (session, client):
        assert (
            await session.post("/subscriptions", json={"id": "s", "filter": "x = 1", "dialect": "palio"})
        ).status == 201
        text = 'family card where xpath("/card/stock") = 3'
        answer = await session.put("/subscriptions/s", json={"id": "s", "filter": text, "dialect": "palio"})
        assert answer.status == 200, await answer.text()
        subscription = await client.subscribe(None, durable="s")
        await client.publish_document(card("a").replace(b"</card>", b"<stock>3</stock></card>"))
        assert (await subscription.next(timeout=10))["/card/stock"] == 3


async def test_a_stream_by_xpath():
    async with scene() as (session, client):
        for price in (15, 5):
            await client.publish_document(card(f"c{price}", price=price))
        answer = await session.get("/events", params={"filter": CHEAP, "since": "all", "wait": "1"})
        assert answer.status == 200, await answer.text()
        lines = (await answer.text()).splitlines()
        [data] = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
        assert data["/card/price"] == 5


@pytest.mark.parametrize(
    ("text", "status", "error", "said"),
    [
        ("family kard", 404, "UnknownFamily", "there are card"),
        ("family card where card.prize < 1", 400, "UnknownPath", "Did you mean card.price?"),
        ("family card where card.price = 'x'", 400, "ImpossibleCondition", "never the string"),
        ('xpath("/card") = "x"', 400, "UnnamedFamily", "family NAME where"),
        ('family card where xpath("/card[") = "x"', 400, "XPathSyntaxError", "name is expected"),
    ],
)
async def test_what_can_select_nothing_is_refused(text, status, error, said):
    async with scene() as (session, _):
        for answer in (
            await session.post("/subscriptions", json={"id": "s", "filter": text, "dialect": "palio"}),
            await session.get("/events", params={"filter": text, "wait": "0"}),
        ):
            document = await problem(answer, status, error)
            assert said in document["detail"]
