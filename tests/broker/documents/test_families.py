"""Families over sockets: added at one broker, known to all, also to those that join later or begin again."""

import asyncio

import pytest

import palio
from palio import testing
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA, WANTED
from tests.broker.test_sharing import line, start, stop


async def test_a_family_is_added_read_with_shown_and_removed():
    async with testing.broker() as address, palio.connect(address) as client:
        made = await client.families.add("card", **WANTED)
        assert made == {
            "name": "card",
            "namespace": "urn:test:card",
            "root": "card",
            "revision": 1,
            "registered": False,
            "key": ["/card/code"],
            "prefixes": {"": "urn:test:card"},
            "paths": [
                {"expression": "/card/price", "kind": "float", "many": False, "name": "price"},
                {"expression": "/card/brand", "kind": "string", "many": True, "name": "brand"},
            ],
            "schemas": ["card.xsd"],
        }
        assert await client.families.ls() == [made]
        shown = await client.families.show("card")
        assert shown == made | {"schemas": [{"name": "card.xsd", "content": CARD_SCHEMA}]}
        subscription = await client.subscribe("`/card/price` < 11")
        await client.publish_document(card())
        event = await subscription.next(timeout=10)
        assert (event["xml.key"], event["/card/price"], event["/card/brand"]) == ("c1", 10.0, ("Acme",))
        with pytest.raises(palio.RequestRefused, match="price"):
            await client.publish_document(card(price="cheap"))
        await client.families.remove("card")
        assert await client.families.ls() == []
        with pytest.raises(palio.RequestRefused, match="No family has documents"):
            await client.publish_document(card())


@pytest.mark.parametrize("journal", [False, True])
async def test_all_brokers_read_with_it_once_it_is_added(journal):
    brokers = line("a", "b", "c", journal=journal)
    await start(brokers)
    try:
        async with palio.connect(brokers[0].address) as one, palio.connect(brokers[2].address) as other:
            await one.families.add("card", **WANTED)
            await other.publish_document(card())
            await other.families.add_paths("card", ["stock=/card/stock", "count(/card/brand)"])
            family = await one.families.show("card")
            assert [path["expression"] for path in family["paths"]] == [
                "/card/price",
                "/card/brand",
                "/card/stock",
                "count(/card/brand)",
            ]
            subscription = await other.subscribe("`count(/card/brand)` = 1", ready="network")
            await one.publish_document(card("c2"))
            assert (await subscription.next(timeout=10))["xml.key"] == "c2"
    finally:
        await stop(brokers)


async def test_a_broker_that_joins_later_and_one_that_begins_again_know_families():
    brokers = line("a", "b", journal=True)
    await brokers[0].start()
    try:
        async with palio.connect(brokers[0].address) as client:
            await client.families.add("card", **WANTED)
            added = await client.families.add_paths("card", ["/card/stock"])
        await brokers[0].crash()
        await start(brokers)
        for broker in brokers:
            await broker.until(lambda broker=broker: broker.running.family_registry.names() == ["card"])
            async with palio.connect(broker.address) as client:
                assert await client.families.ls() == [added]
                await client.publish_document(card())
    finally:
        await stop(brokers)


async def test_paths_that_are_added_at_the_same_time_are_all_there():
    brokers = line("a", "b", "c")
    await start(brokers)
    try:
        clients = [await palio.connect(broker.address) for broker in brokers]
        await clients[0].families.add("card", **WANTED)
        several = [
            client.families.add_paths("card", [f"/card/stock + {number + 10 * turn}"])
            for number, client in enumerate(clients)
            for turn in range(3)
        ]
        await asyncio.gather(*several)
        shown = [await client.families.show("card") for client in clients]
        assert shown[0] == shown[1] == shown[2]
        assert len(shown[0]["paths"]) == 2 + 9
        for client in clients:
            await client.close()
    finally:
        await stop(brokers)
