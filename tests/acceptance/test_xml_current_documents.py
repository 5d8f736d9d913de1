"""Product cards of a thesis about notifications of XML content: versions, retroactive subscriptions, pull."""

import asyncio
from contextlib import asynccontextmanager

import palio
from palio import testing
from palio.documents.family import Family, FamilyPath

F = "urn:test:card"
CARD = Family(
    "card",
    F,
    "card",
    {"c": F},
    key=("/c:card/c:code",),
    paths=(
        FamilyPath("/c:card/c:brand", many=True, name="brand"),
        FamilyPath("/c:card/c:supplier", name="supplier"),
        FamilyPath("/c:card/c:price", "float", name="price"),
    ),
)
ACME = 'family card where card.brand has "Acme"'
SUBSCRIPTIONS = {
    "S1": ACME,
    "S2": f'{ACME} and card.supplier = "North"',
    "S3": 'family card where card.supplier = "South"',
    "S4": "family card",
}


def card(code, brand, supplier, price):
    inner = f"<code>{code}</code><brand>{brand}</brand><supplier>{supplier}</supplier><price>{price}</price>"
    return f'<card xmlns="{F}">{inner}</card>'.encode()


A1 = [card("c1", "Acme", "North", 10), card("c2", "Acme", "South", 5), card("c3", "Zeta", "East", 1)]
A2 = card("c1", "Acme", "North", 12)


@asynccontextmanager
async def shop():
    """A client of a broker that knows the family."""
    broker = testing.broker(journal=True)
    await broker.start()
    await broker.running.documents.families.add(lambda: CARD, "card")
    async with palio.connect(broker.address) as client:
        yield client
    await broker.stop()


async def what_came(subscriptions, last):
    """By subscription, what it got before the last document, which all of them want."""
    found = {}
    for name, one in subscriptions.items():
        found[name] = []
        while (event := await one.next(timeout=10)).payload != last:
            found[name].append(event.payload)
    return found


async def test_a2_a_new_version_is_current_and_comes_once_to_each():
    async with shop() as client:
        subscriptions = {name: await client.subscribe(text) for name, text in SUBSCRIPTIONS.items()}
        for one in (*A1, A2):
            await client.publish_document(one)
        last = card("end", "Acme</brand><brand>Zeta", "North", 0)  # for all but S3
        other = card("end", "Zeta", "South", 0)
        await client.publish_document(last)
        await client.publish_document(other)
        s3 = subscriptions.pop("S3")
        came = await what_came(subscriptions, last) | await what_came({"S3": s3}, other)
        assert came == {"S1": [A1[0], A1[1], A2], "S2": [A1[0], A2], "S3": [A1[1]], "S4": [*A1, A2]}
        assert (await client.document("card", "c1")).payload == A2
        versions = [one async for one in client.documents('family card where xml.key = "c1"')]
        assert [one.payload for one in versions] == [A2]


async def test_a6_a_retroactive_subscription_has_current_versions_once_and_no_old_one():
    async with shop() as client:
        for one in (*A1, A2):
            await client.publish_document(one)
        plain = await client.subscribe(ACME)
        retroactive = await client.subscribe(ACME, retroactive=True)
        last = card("end", "Acme", "West", 0)
        await client.publish_document(last)
        came = await what_came({"plain": plain, "retroactive": retroactive}, last)
        assert came == {"plain": [], "retroactive": [A2, A1[1]]}


async def test_a18_of_a_hundred_versions_at_once_exactly_one_is_current():
    async with shop() as client:
        confirmed = await asyncio.gather(
            *[client.publish_document(card("c1", "Acme", "North", n)) for n in range(100)]
        )
        [current] = [one async for one in client.documents("family card")]
        last = max(range(100), key=lambda n: confirmed[n].sequence)
        assert current.payload == card("c1", "Acme", "North", last)


async def test_pull_has_the_last_current_document_of_what_is_asked_for():
    async with shop() as client:
        for one in (*A1, A2):
            await client.publish_document(one)
        found = [one async for one in client.documents(SUBSCRIPTIONS["S1"])]
        assert max(found, key=lambda one: one.sequence).payload == A2
        await client.withdraw_document("card", "c1")
        assert [one.payload async for one in client.documents(SUBSCRIPTIONS["S1"])] == [A1[1]]
