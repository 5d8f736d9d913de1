"""`GetCurrentMessage` by the standard: what was published last on the topic that a family is."""

import asyncio

import aiohttp
import pytest
import zeep
from lxml import etree

import palio
from palio import testing
from palio.broker.documents import newest
from palio.broker.documents.settings import DocumentSettings
from palio.broker.soap.settings import SoapSettings
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA
from tests.broker.gateway.calling import calling
from tests.security.world import World
from tests.soap.speaking import CONCRETE, FULL, S11, S12, SPACES, speak, username_token


async def add_cards(broker):
    async with palio.connect(broker.address) as client:
        await client.families.add(
            "card", [("card.xsd", CARD_SCHEMA)], ["price=/card/price"], key=["/card/code"]
        )


def asking(topic, dialect=CONCRETE):
    said = f'<wsnt:Topic Dialect="{dialect}">{topic}</wsnt:Topic>' if topic is not None else ""
    return f"<wsnt:GetCurrentMessage>{said}</wsnt:GetCurrentMessage>"


@pytest.mark.parametrize("version", ["Soap11", "Soap12"])
async def test_zeep_gets_the_document_that_was_published_last(version):
    async with calling(soap=SoapSettings(enabled=True)) as (broker, _):
        await add_cards(broker)
        client = await asyncio.to_thread(zeep.Client, f"{broker.url}/wsn?wsdl")
        service = client.bind("NotificationProducer", f"NotificationProducer{version}")
        topic = {"_value_1": "card", "Dialect": CONCRETE}
        with pytest.raises(zeep.exceptions.Fault, match="No document of the family"):
            await asyncio.to_thread(service.GetCurrentMessage, topic)
        async with palio.connect(broker.address) as publisher:
            for code, cost in (("c2", 1), ("c1", 2), ("c2", 3), ("c1", 4)):
                await publisher.publish_document(card(code, price=cost))
                found = await asyncio.to_thread(service.GetCurrentMessage, topic)
                document = found._value_1 if hasattr(found, "_value_1") else found
                assert [one.text for one in document] == [code, "Acme", str(cost)]


async def test_a_withdrawal_is_the_last_message_and_a_restart_changes_nothing():
    async with calling(soap=SoapSettings(enabled=True)) as (broker, session):
        await add_cards(broker)
        async with palio.connect(broker.address) as publisher:
            for code in ("c1", "c2", "c3"):
                await publisher.publish_document(card(code))
            await publisher.withdraw_document("card", "c2")
        said = await speak(session, "/wsn", asking("card"))
        [items] = said.items()
        assert (items["xml.key"], items["xml.withdrawn"]) == ("c2", "true")
        await broker.stop()
        await broker.start()
        assert (await speak(session, "/wsn", asking("card"))).items() == [items]


async def test_nobody_gets_what_it_may_not_see(tmp_path, monkeypatch):
    world = World(tmp_path)
    world.add("all", "true", "true", "families")
    world.add("cheap", None, 'xml.family = "card" and `/card/price` < 10')
    world.add("orders", None, 'xml.family = "order"')
    broker = world.broker(journal=True, http=True, soap=SoapSettings(enabled=True))
    await broker.start()
    async with world.connect(broker.address, "all") as client, aiohttp.ClientSession(broker.url) as session:
        await client.families.add("card", [("card.xsd", CARD_SCHEMA)], ["/card/price"], key=["/card/code"])
        for code, cost in (("c1", 5), ("c2", 6), ("c3", 70)):
            await client.publish_document(card(code, price=cost))
        said = {}
        for name in ("all", "cheap", "orders"):
            header = username_token(name, world.tokens[name])
            answer = await speak(session, "/wsn", asking("card"), header=header)
            said[name] = answer.fault or answer.text("{urn:test:card}code")
        assert said == {"all": "c3", "cheap": "c2", "orders": "TopicNotSupportedFault"}
        monkeypatch.setattr(newest, "LOOKED_AT", 2)
        for name, reason in (("all", None), ("cheap", "more than 2 documents")):
            answer = await speak(
                session, "/wsn", asking("card"), header=username_token(name, world.tokens[name])
            )
            assert (answer.status == 200) == (reason is None)
            assert reason is None or reason in answer.reason
    await broker.stop()


async def test_what_is_kept_of_other_brokers_counts_too():
    settings = {"soap": SoapSettings(enabled=True), "documents": DocumentSettings(keep='xml.family = "card"')}
    network = testing.network([("a", "b")], journal=True, http=True, **settings)
    async with network:
        await add_cards(network["a"])
        clients = [await palio.connect(network[name].address) for name in "ab"]
        for number in range(6):
            confirmed = await clients[number % 2].publish_document(card(f"c{number % 4}", price=number))
            for name in "ab":
                async with aiohttp.ClientSession(network[name].url) as session:
                    async with palio.connect(network[name].address) as client:
                        await client.document("card", f"c{number % 4}", at_least=confirmed)
                    said = await speak(session, "/wsn", asking("card"))
                    assert said.text("{urn:test:card}price") == str(number), (name, number)
        for client in clients:
            await client.close()


FAULTS = [
    ("none", CONCRETE, "TopicNotSupportedFault"),
    ("card/sub", CONCRETE, "TopicNotSupportedFault"),
    ("card|none", FULL, "MultipleTopicsSpecifiedFault"),
    ("card//.", FULL, "MultipleTopicsSpecifiedFault"),
    ("*", FULL, "MultipleTopicsSpecifiedFault"),
    ("card", "urn:none", "TopicExpressionDialectUnknownFault"),
    ("no:card", CONCRETE, "InvalidTopicExpressionFault"),
    (None, CONCRETE, "InvalidTopicExpressionFault"),
    ("card", CONCRETE, "NoCurrentMessageOnTopicFault"),
]


async def test_what_cannot_be_answered_has_the_fault_of_the_standard():
    async with calling(soap=SoapSettings(enabled=True)) as (broker, session):
        await add_cards(broker)
        for version in (S11, S12):
            for topic, dialect, fault in FAULTS:
                said = await speak(session, "/wsn", asking(topic, dialect), version=version)
                assert said.fault == fault, topic
                assert etree.QName(said.find(f"wsnt:{fault}")).namespace == SPACES["wsnt"]
