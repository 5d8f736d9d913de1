"""Subscribing by XPath over sockets: read by the broker, extracted by all before the subscription is ready."""

import asyncio

import pytest

import palio
from palio import testing
from palio.broker.settings import Limits
from palio.client.errors import BrokerTooOld
from palio.protocol.encoding import encode
from palio.protocol.greeting import PROTOCOL, Welcome
from palio.protocol.invocations import Invoke
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import WANTED
from tests.broker.test_sharing import line, start, stop
from tests.client.test_versions import OlderBroker
from tests.documents.schemas import mutual
from tests.security.world import World

CHEAP = 'family card where xpath("/card/price") < 10'


async def keys(subscription, number):
    return [(await subscription.next(timeout=10))["xml.key"] for _ in range(number)]


async def test_documents_are_selected_by_xpath():
    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        cheap = await client.subscribe(f'{CHEAP} and xpath("/card/brand") = "Acme"')
        assert cheap.filter == palio.Filter.parse(
            'xml.family = "card" and `/card/price` < 10 and `/card/brand` has "Acme"'
        )
        short = await client.subscribe('xml.family = "card" and card.price < 10 and card.brand = "Acme"')
        assert short.filter == cheap.filter
        whole = await client.subscribe("family card")
        few = await client.subscribe('family card where not xpath("count(/card/brand)") > 1 and card.price > 1')
        await client.publish({"/card/price": 1.0, "/card/brand": ("Acme",)})
        await client.publish_document(card("a", price=9))
        await client.publish_document(card("b", brand="Zeta", price=9))
        await client.publish_document(card("c", price=10))
        await client.publish_document(card("d", brand="Zeta</brand><brand>Acme", price=1))
        for subscription in (cheap, short):
            assert await keys(subscription, 2) == ["a", "d"]
        assert await keys(whole, 4) == ["a", "b", "c", "d"]
        assert await keys(few, 3) == ["a", "b", "c"]
        shown = await client.families.show("card")
        assert [one["expression"] for one in shown["paths"]] == [
            "/card/price",
            "/card/brand",
            "count(/card/brand)",
        ]


@pytest.mark.parametrize("journal", [False, True])
async def test_all_brokers_extract_a_new_path_when_the_subscription_is_ready(journal):
    brokers = line("a", "b", "c", journal=journal)
    await start(brokers)
    try:
        async with palio.connect(brokers[0].address) as one, palio.connect(brokers[2].address) as other:
            await one.families.add("card", **WANTED)
            wanted = 'family card where xpath("/card/stock") = 5'
            subscription = await other.subscribe(wanted, durable="stock" if journal else None, ready="network")
            for broker in brokers:
                family = await broker.running.documents.families.family("card")
                assert family.path("/card/stock").kind == "int"
            document = card("a").replace(b"</card>", b"<stock>5</stock></card>")
            await one.publish_document(document)
            event = await subscription.next(timeout=10)
            assert (event["xml.key"], event["/card/stock"], event.payload) == ("a", 5, document)
            if journal:
                await event.ack()
                await subscription.change('family card where xpath("/card/code") = "b"')
                await one.publish_document(card("a"))
                await one.publish_document(card("b"))
                assert (await subscription.next(timeout=10))["xml.key"] == "b"
    finally:
        await stop(brokers)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('family card where xpath("/card/prize") < 10', "UnknownPath", "Did you mean /card/price?"),
        ('family card where xpath("/card/code") = 5', "ImpossibleCondition", "strings, never the number 5"),
        ("family kard", "UnknownFamily", "there are card"),
        ('xml.family = "kard"', "UnknownFamily", "there are card"),
        ('xpath("/card/price") < 10', "UnnamedFamily", "Begin the filter with `family NAME where`"),
        ('family card where xpath("/card/x:price") < 10', "UnknownPrefix", "bound to no namespace"),
        ("family card where", "FilterSyntaxError", "found the end of the text"),
        ("family card where card.price < 1 and card.price > 2", "ContradictoryFilter", "can never match"),
    ],
)
async def test_what_can_select_nothing_is_refused_when_subscribing(text, error, said):
    async with testing.broker() as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        with pytest.raises(palio.PalioError, match=said) as refused:
            await client.subscribe(text)
        assert error in (getattr(refused.value, "error", ""), type(refused.value).__name__)
        shown = await client.families.show("card")
        assert len(shown["paths"]) == 2


async def test_plain_filters_cost_no_round_trip():
    broker = testing.broker()
    await broker.start()
    asked = []
    taken = broker.running.invoked
    broker.running.invoked = lambda *request: (asked.append(request[1].what), taken(*request))
    async with palio.connect(broker.address) as client:
        await client.families.add("card", **WANTED)
        asked.clear()
        for text in ("price < 10", "card.price < 10 and family = 1", "`/card/price` < 10"):
            await client.subscribe(text)
        assert asked == []
        await client.subscribe(CHEAP)
        assert asked == ["filters.read"]
    await broker.stop()


async def test_paths_are_added_by_right_only_and_families_are_not_shown_to_everybody(tmp_path):
    world = World(tmp_path)
    world.add("owner", "true", "true", "families")
    world.add("reader", None, 'xml.family = "card"')
    world.add("asker", None, 'xml.family = "card"', "paths")
    world.add("stranger", None, 'xml.family = "other"')
    broker = world.broker()
    await broker.start()
    tokens = world.tokens
    async with (
        palio.connect(broker.address, token=tokens["owner"]) as owner,
        palio.connect(broker.address, token=tokens["reader"]) as reader,
        palio.connect(broker.address, token=tokens["asker"]) as asker,
        palio.connect(broker.address, token=tokens["stranger"]) as stranger,
    ):
        await owner.families.add("card", **WANTED)
        stock = 'family card where xpath("/card/stock") > 1'
        with pytest.raises(palio.PalioError, match="have paths added to the family 'card'"):
            await reader.subscribe(stock)
        await reader.subscribe(CHEAP)
        assert (await reader.families.read(stock)).attributes == {"xml.family", "/card/stock"}
        assert len((await owner.families.show("card"))["paths"]) == 2
        await asker.subscribe(stock)
        await reader.subscribe(stock)
        with pytest.raises(palio.PalioError, match="there is none yet") as refused:
            await stranger.subscribe(CHEAP)
        assert refused.value.error == "UnknownFamily"
    await broker.stop()


async def test_many_who_name_new_paths_at_the_same_time_all_get_them():
    brokers = line("a", "b")
    await start(brokers)
    clients = [await palio.connect(broker.address) for broker in brokers for _ in range(4)]
    try:
        await clients[0].families.add("card", **WANTED)
        await brokers[1].until(lambda: brokers[1].running.documents.families.names() == ["card"])
        texts = [f'family card where xpath("/card/stock + {number % 5}") > 1' for number in range(len(clients))]
        made = await asyncio.gather(*[one.subscribe(text) for one, text in zip(clients, texts, strict=True)])
        for one in clients[1:]:
            await one.flush(arrived=True)
        shown = await clients[0].families.show("card")
        assert sorted(one["expression"] for one in shown["paths"])[2:] == sorted(
            f"/card/stock + {number}" for number in range(5)
        )
        await clients[7].publish_document(card("a").replace(b"</card>", b"<stock>7</stock></card>"))
        assert [await keys(one, 1) for one in made[4:]] == [["a"]] * 4
    finally:
        for one in clients:
            await one.close()
        await stop(brokers)


async def test_a_broker_from_before_is_not_asked():
    older = Welcome(PROTOCOL, "lucca")
    async with OlderBroker(encode(older)) as broker, palio.connect(broker.address) as client:
        with pytest.raises(BrokerTooOld, match="'lucca' does not know"):
            await client.subscribe(CHEAP)
        assert not any(isinstance(one, Invoke) for one in broker.heard)


async def test_the_past_is_asked_for_by_xpath():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        for price in (5, 15):
            await client.publish_document(card(f"c{price}", price=price))
        assert (await client.survey(CHEAP)).count == 1
        wanted = await client.families.read(CHEAP)
        assert [event["xml.key"] async for event in client.replay(wanted)] == ["c5"]


async def test_current_documents_are_asked_for_by_xpath_also_those_older_than_the_path():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.families.add("card", **WANTED)
        for number in (5, 15):
            stock = f"<stock>{number}</stock></card>".encode()
            await client.publish_document(card(f"c{number}", price=number).replace(b"</card>", stock))
        for text in (CHEAP, 'family card where xpath("/card/stock") < 10'):
            assert [event["xml.key"] async for event in client.documents(text)] == ["c5"]


async def test_what_takes_long_to_follow_through_a_schema_is_refused():
    files = [("e.xsd", mutual(20).encode())]
    async with testing.broker(limits=Limits(steps=100_000)) as address, palio.connect(address) as client:
        await client.families.add("e", files, key=["name(/e0)"], root="e0")
        with pytest.raises(palio.PalioError, match="steps of reasoning"):
            await client.subscribe('family e where xpath("/e0/*/*[*/*/*[*/*/*[e1]]]/e2") = "x"')
        await client.subscribe('family e where xpath("/e0/e1") = "x"')
