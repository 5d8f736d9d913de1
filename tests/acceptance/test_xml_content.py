"""Worked examples of publish/subscribe for XML content: cards of products with a brand, a supplier, a price.

Each is named by its number in the specification of its source. A10 (the same through files and SOAP) is tested
with the bindings, A15 is about another system.
"""

from __future__ import annotations

import asyncio
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
BRAND, SUPPLIER = 'xpath("/c:card/c:brand")', 'xpath("/c:card/c:supplier")'
S1 = f'family card where {BRAND} = "Acme"'
S2 = f'family card where {BRAND} = "Acme" and {SUPPLIER} = "North"'
S3 = f'family card where {SUPPLIER} = "South"'
S4 = "family card"
OF_CARDS = 'xml.family = "card"'
PRICE = "/card/price"  # as the family calls it, whose target namespace needs no prefix


def card(code: str, brand: str | tuple[str, ...], supplier: str, price: float, space: str = SPACE) -> bytes:
    brands = "".join(f"<brand>{one}</brand>" for one in ((brand,) if isinstance(brand, str) else brand))
    return (
        f'<card xmlns="{space}"><code>{code}</code>{brands}<supplier>{supplier}</supplier>'
        f"<price>{price}</price></card>"
    ).encode()


A1 = (card("c1", "Acme", "North", 10), card("c2", "Acme", "South", 5), card("c3", "Zeta", "East", 1))
C1_AGAIN = card("c1", "Acme", "North", 12)


async def keys(subscription: palio.Subscription) -> list[str]:
    """Of all that has arrived; what has been published is there when one more has come."""
    found = []
    while True:
        event = await subscription.next(timeout=10)
        if "the end" in event.get("xml.key", ""):
            return found
        found.append(f"{event['xml.key']} {event[PRICE]:g}")


async def ended(client: palio.Client, *subscriptions: palio.Subscription) -> list[list[str]]:
    await client.publish_document(card("the end", "Acme", "North", 0))
    await client.publish_document(card("the end", "Acme", "South", 0))
    return [await keys(one) for one in subscriptions]


async def test_a1_a2_conjunctions_of_values_and_a_version_that_is_matched_again():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.families.add("card", **CARD)
        subscriptions = [await client.subscribe(one) for one in (S1, S2, S3, S4)]
        for content in (*A1, C1_AGAIN):
            await client.publish_document(content)
        assert await ended(client, *subscriptions) == [
            ["c1 10", "c2 5", "c1 12"],
            ["c1 10", "c1 12"],
            ["c2 5"],
            ["c1 10", "c2 5", "c3 1", "c1 12"],
        ]
        current = [one async for one in client.documents(OF_CARDS)]
        found = {one["xml.key"]: one[PRICE] for one in current}
        assert found == {"c1": 12, "c2": 5, "c3": 1, "the end": 0}


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


async def test_a5_subscriptions_that_can_select_nothing_and_the_same_one_twice():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.families.add("card", **CARD)
        for wrong, error in (
            ("family cart", "UnknownFamily"),
            ('family card where xpath("/c:card/c:colour") = "red"', "UnknownPath"),
        ):
            with pytest.raises(palio.RequestRefused) as refused:
                await client.subscribe(wrong)
            assert refused.value.error == error
        first = await client.subscribe(S1, durable="one", in_flight=5)
        await first.detach()
        again = await client.subscribe(S1, durable="one", in_flight=5)
        assert [one["durable"] for one in await client.inspect("subs")] == ["one"]
        await client.publish_document(A1[0])
        event = await again.next(timeout=10)
        assert event["xml.key"] == "c1"
        await event.ack()


async def test_a6_a_retroactive_subscription_gets_what_is_current_once():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.families.add("card", **CARD)
        for content in (*A1, C1_AGAIN):
            await client.publish_document(content)
        plain = await client.subscribe(S1)
        retroactive = await client.subscribe(S1, retroactive=True)
        found, none = await ended(client, retroactive, plain)
        assert sorted(found) == ["c1 12", "c2 5"]
        assert none == []


async def test_a7_who_has_unsubscribed_hears_nothing_more_and_may_do_so_again():
    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("card", **CARD)
        first, whole = await client.subscribe(S1), await client.subscribe(S4)
        await client.publish_document(A1[0])
        assert (await first.next(timeout=10))["xml.key"] == "c1"
        await first.unsubscribe()
        await first.unsubscribe()
        await client.publish_document(C1_AGAIN)
        assert await ended(client, whole) == [["c1 10", "c1 12"]]
        with pytest.raises(palio.SubscriptionEnded):
            await first.next(timeout=10)


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


async def test_a13_families_with_the_same_local_names_do_not_meet():
    other = "urn:test:other"
    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("card", **CARD)
        schema = SCHEMA.replace(SPACE, other).encode()
        await client.families.add(
            "other", [("other.xsd", schema)], PATHS, key=["/c:card/c:code"], prefixes={"c": other}
        )
        ours, theirs = (
            await client.subscribe(S1),
            await client.subscribe(S1.replace("card where", "other where")),
        )
        await client.publish_document(card("theirs", "Acme", "North", 1, other))
        await client.publish_document(card("ours", "Acme", "North", 2))
        assert (await ours.next(timeout=10))["xml.key"] == "ours"
        assert (await theirs.next(timeout=10))["xml.key"] == "theirs"


async def test_a14_a_path_that_finds_several_nodes_holds_if_one_of_them_does():
    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("card", **CARD)
        subscriptions = [await client.subscribe(one) for one in (S1, S2)]
        await client.publish_document(card("both", ("Acme", "Zeta"), "North", 1))
        await client.publish_document(card("twice", ("Acme", "Acme"), "East", 2))
        await client.publish_document(card("none", ("Zeta", "Beta"), "North", 3))
        assert await ended(client, *subscriptions) == [["both 1", "twice 2"], ["both 1"]]


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


async def test_a18_of_a_hundred_publishes_of_one_key_by_many_exactly_one_is_current():
    async with testing.broker(journal=True) as address:
        clients = [await palio.connect(address) for _ in range(10)]
        await clients[0].families.add("card", **CARD)
        several = [card("c1", "Acme", "North", price) for price in range(100)]
        confirmed = await asyncio.gather(
            *[clients[number % 10].publish_document(content) for number, content in enumerate(several)]
        )
        last = max(range(100), key=lambda number: confirmed[number].sequence)
        current = [one async for one in clients[3].documents(OF_CARDS)]
        assert [one[PRICE] for one in current] == [last]
        for client in clients:
            await client.close()
