"""Documents that are older than a path: whoever looks back sees them as if the path had always been there."""

import random

import pytest

import palio
from palio import testing
from palio.documents.family import Family, FamilyPath
from palio.documents.making import WantedPath
from palio.model.errors import FilterTooLarge
from palio.model.filter import Filter
from tests.broker.documents.cards import CARD, card

BRAND, STOCK, COUNT = "/c:card/c:brand", "/c:card/c:stock", "count(/c:card/c:brand)"
EARLY = Family("card", CARD.namespace, "card", CARD.prefixes, key=CARD.key, paths=CARD.paths[:1])
MORE = [
    WantedPath(BRAND, many=True, name="brand"),
    WantedPath(STOCK, "int", many=False, name="stock"),
    WantedPath(COUNT),
]
FILTERS = [
    "true",
    f'`{BRAND}` has "Acme"',
    f"`{STOCK}` > 5",
    f"absent(`{STOCK}`)",
    f'not `{BRAND}` has "Acme" and `{STOCK}` < 9',
    f"`{COUNT}` = 2",
    f"`{STOCK}` * 2 > n",
    f'xml.key = "c1" or `{STOCK}` = 3',
    f"n < 10 and not exists(`{BRAND}`)",
]


def documents(chance, number):
    for n in range(number):
        some = [chance.choice(["Acme", "Zeta"]) for _ in range(chance.randrange(3))]
        brands = "".join(f"<brand>{one}</brand>" for one in some)
        stock = f"<stock>{chance.randrange(12)}</stock>" if chance.random() < 0.7 else ""
        inner = f"<code>c{chance.randrange(4)}</code>{brands}{stock}"
        yield f'<card xmlns="urn:test:card">{inner}</card>'.encode(), {"n": n}


async def add_paths(broker):
    await broker.documents.families.add_paths("card", MORE)


def said(event):
    """What an event says, but for when its family was changed."""
    return {name: value for name, value in event.attributes.items() if name != "xml.revision"}, event.payload


async def started(name, family):
    broker = testing.broker(name=name, journal=True)
    await broker.start()
    await broker.running.documents.families.add(lambda: family, "card")
    return broker


@pytest.mark.parametrize("seed", range(2))
async def test_history_is_as_if_the_paths_had_been_there_from_the_start(seed):
    early, always = await started("same", EARLY), await started("same", EARLY)
    await add_paths(always.running)
    published = list(documents(random.Random(seed), 30))
    async with palio.connect(early.address) as late, palio.connect(always.address) as oracle:
        holding = [await one.subscribe("false or n = -1", durable="hold") for one in (late, oracle)]
        for one in holding:
            await one.ready(10)
        for document, more in published:
            for client in (late, oracle):
                await client.publish_document(document, more)
                await client.publish({"n": more["n"], STOCK: 7})
        await add_paths(early.running)
        for text in FILTERS:
            wanted = Filter.parse(text)
            replayed = [[said(one) async for one in client.replay(wanted)] for client in (late, oracle)]
            assert replayed[0] == replayed[1], text
            surveyed = [(await client.survey(wanted)).count for client in (late, oracle)]
            assert surveyed[0] == surveyed[1] == len(replayed[0]), text
            current = [[said(one) async for one in client.documents(wanted)] for client in (late, oracle)]
            assert current[0] == current[1], text
            reaching = [await client.subscribe(wanted, since="all") for client in (late, oracle)]
            found = [[said(await one.next(timeout=10)) for _ in replayed[0]] for one in reaching]
            assert found[0] == found[1] == replayed[0], text
            retroactive = await late.subscribe(wanted, retroactive=True)
            assert [said(await retroactive.next(timeout=10)) for _ in current[0]] == current[0], text
        assert len([one async for one in late.replay(Filter.parse(FILTERS[2]))]) > 10
        event = await late.document("card", "c1")
        assert said(event) == said(await oracle.document("card", "c1"))
    for broker in (early, always):
        await broker.stop()


async def test_what_was_published_after_a_change_is_not_read_again():
    clock = testing.Clock()
    broker = testing.broker(journal=True, clock=clock)
    await broker.start()
    await broker.running.documents.families.add(lambda: EARLY, "card")
    async with palio.connect(broker.address) as client:
        await client.publish_document(card())
        completions = broker.running.documents.completions
        assert completions._settled() > 1
        await clock.advance(61.0)
        await client.publish_document(card("c2"))
        settled = completions._settled()
        assert settled == 2
        await client.publish_document(card("c3"))
        assert completions._settled() == 2
        await add_paths(broker.running)
        assert completions._settled() > 3
    await broker.stop()


async def test_what_a_family_refuses_now_stays_as_it_was():
    broker = await started("one", EARLY)
    two = card().replace(b"<price>", b"<stock>1</stock><stock>2</stock><price>")
    async with palio.connect(broker.address) as client:
        await (await client.subscribe("n = 1", durable="hold")).ready(10)
        await client.publish_document(two)
        await client.publish_document(card("c2"))
        paths = (*EARLY.paths, FamilyPath(STOCK, "int"))
        family = Family("card", EARLY.namespace, "card", EARLY.prefixes, key=EARLY.key, paths=paths)
        broker.running.documents.completions.tell([family])
        found = [one async for one in client.replay("exists(xml.family)")]
        assert [(one["xml.key"], STOCK in one) for one in found] == [("c1", False), ("c2", False)]
    await broker.stop()


async def test_what_is_too_large_to_be_widened_is_asked_for_as_a_whole(monkeypatch):
    broker = await started("one", EARLY)
    async with palio.connect(broker.address) as client:
        await (await client.subscribe("n = -1", durable="hold")).ready(10)
        for n in range(6):
            await client.publish_document(card(f"c{n}", brand="Acme" if n % 2 else "Zeta"), {"n": n})
            await client.publish({"n": n})
        await add_paths(broker.running)
        wanted = Filter.parse(f'`{BRAND}` has "Acme" and n > 2 or n = 4 and absent(xml.family)')
        plain = [said(one) async for one in client.replay(wanted)]
        assert [one["n"] for one, _ in plain] == [3, 4, 5]

        def too_large(self, other):
            raise FilterTooLarge(limit=1, got=2, what="bytes")

        monkeypatch.setattr(Filter, "union", too_large)
        broker.running.documents.completions._wider.clear()
        assert [said(one) async for one in client.replay(wanted)] == plain
    await broker.stop()
