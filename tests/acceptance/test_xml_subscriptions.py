"""XML content: cards of products, and who subscribes to which by their brands and suppliers."""

import asyncio

import pytest

import palio
from palio import testing
from tests.broker.gateway.calling import calling, problem
from tests.broker.test_sharing import line, start, stop

pytest.importorskip("lxml.etree", reason="lxml is not installed")

NAMESPACE = "urn:test:card"
CARD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:test:card"
    elementFormDefault="qualified">
  <xs:element name="card"><xs:complexType><xs:sequence>
    <xs:element name="code" type="xs:string"/>
    <xs:element name="brand" type="xs:string" maxOccurs="unbounded"/>
    <xs:element name="supplier" type="xs:string"/>
    <xs:element name="price" type="xs:decimal"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>
"""
S1 = 'family card where xpath("/card/brand") = "Acme"'
S2 = f'{S1} and xpath("/card/supplier") = "North"'
S3 = 'family card where xpath("/card/supplier") = "South"'
S4 = "family card"


def card(code, brands, supplier, price, namespace=NAMESPACE):
    said = "".join(f"<brand>{one}</brand>" for one in brands.split())
    inner = f"<code>{code}</code>{said}<supplier>{supplier}</supplier><price>{price}</price>"
    return f'<card xmlns="{namespace}">{inner}</card>'


async def add(client, name="card", schema=CARD):
    await client.families.add(name, [(f"{name}.xsd", schema)], key=["/card/code"])


async def came(subscriptions):
    """What has come to each, once a last event has come to all."""
    found = []
    for one in subscriptions:
        events = []
        while not events or events[-1] != "end":
            event = await one.next(timeout=10)
            events.append(event.get("xml.key", "end"))
        found.append(events[:-1])
    return found


async def subscribed(client, *texts):
    """Subscriptions that a last event reaches, too."""
    return [await client.subscribe((await client.subscribe(text)).filter.union(END)) for text in texts]


END = palio.Filter.parse('end = "end"')


async def test_a1_brands_and_suppliers_decide_who_gets_a_card():
    async with testing.broker() as address, palio.connect(address) as client:
        await add(client)
        subscriptions = await subscribed(client, S1, S2, S3, S4)
        await client.publish_document(card("c1", "Acme", "North", 10))
        await client.publish_document(card("c2", "Acme", "South", 5))
        await client.publish_document(card("c3", "Zeta", "East", 1))
        await client.publish({"end": "end"})
        assert await came(subscriptions) == [["c1", "c2"], ["c1"], ["c2"], ["c1", "c2", "c3"]]


async def test_a2_a_new_version_is_told_again_once_each():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await add(client)
        subscriptions = await subscribed(client, S1, S2, S3, S4)
        for price in (10, 12):
            await client.publish_document(card("c1", "Acme", "North", price))
        await client.publish({"end": "end"})
        assert await came(subscriptions) == [["c1", "c1"], ["c1", "c1"], [], ["c1", "c1"]]
        current = await client.document("card", "c1")
        assert b"<price>12</price>" in current.payload


async def test_a5_what_is_not_there_is_refused_and_the_same_subscription_is_one():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        await add(client)
        for text, error in (
            ("family other", "UnknownFamily"),
            ('family card where xpath("/card/colour") = "red"', "UnknownPath"),
        ):
            with pytest.raises(palio.RequestRefused) as refused:
                await client.subscribe(text)
            assert refused.value.error == error
        wish = {"id": "s1", "filter": S1, "dialect": "palio"}
        answers = [await session.post("/subscriptions", json=wish) for _ in range(2)]
        assert [one.status for one in answers] == [201, 200]
        assert len({(await one.json())["id"] for one in answers}) == 1
        assert len(await (await session.get("/subscriptions")).json()) == 1
        other = {"id": "s1", "filter": S3, "dialect": "palio"}
        await problem(await session.post("/subscriptions", json=other), 409, "SubscriptionExists")


async def test_a7_whoever_has_unsubscribed_hears_nothing():
    async with testing.broker() as address, palio.connect(address) as client:
        await add(client)
        gone, stays = [await client.subscribe(text) for text in (S1, S4)]
        await gone.unsubscribe()
        await gone.unsubscribe()
        await client.publish_document(card("c1", "Acme", "North", 10))
        assert (await stays.next(timeout=10))["xml.key"] == "c1"
        with pytest.raises(palio.PalioError):
            await gone.next(timeout=0.1)


async def test_a12_the_content_alone_is_what_comes():
    async with testing.broker() as address, palio.connect(address) as client:
        await add(client)
        subscription = await client.subscribe(S1)
        content = ('<?xml version="1.0"?>\n' + card("c1", "Acme", "North", 10) + "<!-- end -->").encode()
        await client.publish_document(content)
        assert (await subscription.next(timeout=10)).payload == content


async def test_a13_families_with_the_same_names_are_not_mixed_up():
    other = "urn:test:other"
    async with testing.broker() as address, palio.connect(address) as client:
        await add(client)
        await add(client, "second", CARD.replace(NAMESPACE.encode(), other.encode()))
        subscriptions = await subscribed(client, S1, 'family second where xpath("/card/brand") = "Acme"')
        await client.publish_document(card("c1", "Acme", "North", 10))
        await client.publish_document(card("c2", "Acme", "North", 10, other))
        await client.publish({"end": "end"})
        assert await came(subscriptions) == [["c1"], ["c2"]]


async def test_a14_one_of_several_brands_is_enough():
    async with testing.broker() as address, palio.connect(address) as client:
        await add(client)
        none = 'family card where not xpath("/card/brand") = "Acme"'
        subscriptions = await subscribed(client, S1, S2, none)
        await client.publish_document(card("c1", "Zeta Acme", "North", 10))
        await client.publish_document(card("c2", "Acme Zeta", "South", 10))
        await client.publish_document(card("c3", "Zeta Beta", "North", 10))
        await client.publish({"end": "end"})
        assert await came(subscriptions) == [["c1", "c2"], ["c1"], ["c3"]]


async def test_a_wider_subscription_covers_the_others_on_the_way():
    """What lies within another subscription is not told to the next broker; its documents come all the same."""
    brokers = line("left", "right")
    await start(brokers)
    try:
        async with palio.connect(brokers[0].address) as publisher, palio.connect(brokers[1].address) as client:
            await add(publisher)
            subscriptions = [await client.subscribe(text, ready="network") for text in (S4, S1, S2)]
            told = brokers[0].running.router.received("right")
            assert [str(one) for one in told.values()] == ['xml.family = "card"']
            await publisher.publish_document(card("c1", "Acme", "North", 10))
            events = await asyncio.gather(*[one.next(timeout=10) for one in subscriptions])
            assert [one["xml.key"] for one in events] == ["c1"] * 3
    finally:
        await stop(brokers)
