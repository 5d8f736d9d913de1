"""Worked examples of publish/subscribe for XML content: cards of products with a brand, a supplier, a price.

Each is named by its number in the specification of its source. Those about subscribing and current documents,
and A10 (the same through files and SOAP) have modules of their own.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import palio
from palio import testing
from palio.broker.documents.settings import DocumentSettings
from palio.documents import DocumentReader
from palio.documents.family import SchemaFile
from palio.documents.making import make_family
from palio.matching import MatchIndex
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.requests import Unsubscribe
from tests.acceptance.test_siena_routing import subscribe, text
from tests.routing.harness import Bench

pytest.importorskip("lxml")

SPACE = "urn:test:card"
SCHEMA = f"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:c="{SPACE}" targetNamespace="{SPACE}"
    elementFormDefault="qualified">
  <xs:element name="card"><xs:complexType><xs:sequence>
    <xs:element name="code" type="xs:token"/>
    <xs:element name="brand" type="xs:string" maxOccurs="unbounded"/>
    <xs:element name="supplier" type="xs:string"/>
    <xs:element name="price" type="xs:decimal"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""
PATHS = ("brand=/c:card/c:brand", "supplier=/c:card/c:supplier", "price=/c:card/c:price")
CARD: dict[str, Any] = {
    "schemas": [("card.xsd", SCHEMA.encode())],
    "paths": PATHS,
    "key": ["/c:card/c:code"],
    "prefixes": {"c": SPACE},
}
S1 = 'family card where xpath("/c:card/c:brand") = "Acme"'
S4 = "family card"
OF_CARDS = 'xml.family = "card"'


def card(code: str, brand: str | tuple[str, ...], supplier: str, price: float, space: str = SPACE) -> bytes:
    brands = "".join(f"<brand>{one}</brand>" for one in ((brand,) if isinstance(brand, str) else brand))
    return (
        f'<card xmlns="{space}"><code>{code}</code>{brands}<supplier>{supplier}</supplier>'
        f"<price>{price}</price></card>"
    ).encode()


A1 = (card("c1", "Acme", "North", 10), card("c2", "Acme", "South", 5), card("c3", "Zeta", "East", 1))


async def test_a3_a4_only_who_has_advertised_publishes_and_every_request_is_logged():
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address) as client:
        await client.families.add("card", **CARD, registered=True)
        subscription = await client.subscribe(S4)
        with pytest.raises(palio.NotAllowed, match="register first"):
            await client.publish_document(A1[0])
        handle = await client.families.register("card")
        assert await client.families.register("card") == handle
        assert len(await client.families.publishers("card")) == 1
        await client.publish_document(A1[1])
        assert (await subscription.next(timeout=10))["xml.key"] == "c2"
        await client.families.withdraw("card")
        with pytest.raises(palio.NotAllowed):
            await client.publish_document(A1[0])
        await client.families.withdraw("card")
        logged: list[dict[str, Any]] = []
        while len(logged) < 3:
            after = logged[-1]["number"] if logged else 0
            page = await client.operations(kinds=["publishdocuments"], after=after, wait=10)
            logged += page["operations"]
        assert [one["result"] for one in logged] == ["refused", "done", "refused"]


async def test_a8_a9_what_is_invalid_or_too_long_is_refused_and_leaves_nothing():
    size = 3_000
    broker = testing.broker(journal=True, documents=DocumentSettings(size=size))
    async with broker as address, palio.connect(address) as client:
        await client.families.add("card", **CARD)
        subscription = await client.subscribe(S4)
        filled = card("c9", "Acme", "North", 9)
        exactly = filled.replace(b"North", b"N" * (size - len(filled) + len(b"North")))
        for content, error in (
            (A1[0].replace(b"<code>c1</code>", b""), "DocumentRefused"),
            (exactly.replace(b"NN", b"NNN", 1), "DocumentTooLarge"),
        ):
            with pytest.raises(palio.RequestRefused) as refused:
                await client.publish_document(content)
            assert refused.value.error == error
        confirmed = await client.publish_document(exactly)
        assert (confirmed.sequence, len(exactly)) == (1, size)
        assert (await subscription.next(timeout=10)).payload == exactly
        assert [one["xml.key"] async for one in client.documents(OF_CARDS)] == ["c9"]


async def test_a11_a12_what_waits_for_a_subscriber_is_delivered_bare_and_never_lost():
    broker = testing.broker(journal=True)
    await broker.start()
    async with palio.connect(broker.address) as client:
        await client.families.add("card", **CARD)
        away = await client.subscribe(S1, durable="away", in_flight=10)
        await away.detach()
        await client.publish_document(A1[0])
        await client.publish_document(A1[1])
        back = await client.subscribe(S1, durable="away", in_flight=10)
        first = await back.next(timeout=10)
        assert first.payload == A1[0]
        await first.ack()
        assert (await back.next(timeout=10)).payload == A1[1]
    await broker.crash()  # between what was sent and that it is marked
    await broker.start()
    async with palio.connect(broker.address) as client:
        again = await client.subscribe(S1, durable="away", in_flight=10)
        event = await again.next(timeout=10)
        assert (event.payload, event.redelivered) == (A1[1], True)
        await event.ack()
        with pytest.raises(palio.NoEvent):
            await again.next(timeout=0.1)
    await broker.stop()


async def test_a16_documents_are_duplicated_only_at_forks():
    links = [("a", "b"), ("b", "c"), ("b", "d")]
    async with testing.network(links) as network:
        clients = {name: await palio.connect(network[name].address) for name in "acd"}
        await clients["a"].families.add("card", **CARD)
        subscriptions = [await clients[name].subscribe(S1, ready="network") for name in "cd"]
        for content in A1:
            await clients["a"].publish_document(content)
        for subscription in subscriptions:
            assert [(await subscription.next(timeout=10))["xml.key"] for _ in range(2)] == ["c1", "c2"]
        crossed = {name: network[name].running.router.statistics().forwarding.forwarded for name in "abcd"}
        assert crossed == {"a": 2, "b": 4, "c": 0, "d": 0}
        for client in clients.values():
            await client.close()


def test_a16_unsubscribing_by_a_wider_filter_ends_all_that_it_covers():
    wide = 'xml.family = "card"'
    narrow = [f'{wide} and `/card/brand` has "Acme"', f"{wide} and `/card/price` < 10"]
    bench = Bench("2")
    for one in narrow:
        assert bench.ask("a", subscribe(one)) == {"2": {f"+ {text(one)}"}}
    ended = bench.ask("a", Unsubscribe(Filter.parse(wide)))
    assert ended == {"2": {f"- {text(one)}" for one in narrow}}


def test_a17_the_index_finds_what_asking_all_subscriptions_does():
    draw = random.Random(17)
    family = make_family("card", (SchemaFile("card.xsd", SCHEMA.encode()),), PATHS, ("/c:card/c:code",))
    reader = DocumentReader(family)
    brands, suppliers = [f"brand {n}" for n in range(30)], [f"supplier {n}" for n in range(20)]

    def condition() -> str:
        return draw.choice(
            (
                f'`/card/brand` has "{draw.choice(brands)}"',
                f'`/card/supplier` = "{draw.choice(suppliers)}"',
                f"`/card/price` {draw.choice(('<', '>', '='))} {draw.randrange(100)}",
                f'not `/card/brand` has "{draw.choice(brands)}"',
            )
        )

    filters = [
        Filter.parse(" and ".join(['xml.family = "card"', *[condition() for _ in range(draw.randrange(4))]]))
        for _ in range(10_000)
    ]
    index: MatchIndex[int] = MatchIndex(enumerate(filters))
    for number in range(6):
        chosen = tuple(draw.sample(brands, draw.randrange(1, 4)))
        content = card(f"c{number}", chosen, draw.choice(suppliers), draw.randrange(100))
        document = Notification(reader.read(content).attributes)
        expected = [place for place, filter in enumerate(filters) if filter.matches(document)]
        assert sorted(index.match(document)) == expected
        assert len(expected) > 100
