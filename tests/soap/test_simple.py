"""`/wsn/simple`: zeep makes itself of the WSDL and carries out what the protocol has; each is answered."""

import asyncio
import re

import pytest
import zeep
from lxml import etree

import palio
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.soap.settings import SoapSettings
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA
from tests.broker.gateway.calling import LOCAL, Webhook, calling
from tests.soap.speaking import speak

NAMESPACE = "urn:test:card"
TRUSTING = GatewaySettings(sinks=LOCAL.sinks, validate_sinks=False)


class Simple:
    """A participant, with zeep."""

    def __init__(self, url, address="http://publisher.example/"):
        self.client = zeep.Client(f"{url}/wsn/simple?wsdl")
        self.service = self.client.bind("Simple", "SimpleSoap12")
        self.address = address
        self.value = self.client.get_type("{http://docs.oasis-open.org/wsn/b-2}TopicExpressionType")

    def publisher(self, schema="card.xsd"):
        return {"PublisherReference": {"Address": self.address}, "Topic": {"schemalocation": schema}}

    def subscription(self, sink, *conditions, **more):
        wanted = [{"xpath": {"expression": path}, "value": value} for path, value in conditions]
        topic = {"subscription": wanted, "Dialect": NAMESPACE}
        return {"ConsumerReference": {"Address": sink}, "Filter": {"TopicExpression": topic}, **more}

    def message(self, document):
        element = etree.fromstring(document)
        return [{"ProducerReference": {"Address": self.address}, "Message": {"_value_1": element}}]


async def add_cards(broker, **options):
    async with palio.connect(broker.address) as client:
        paths = ["price=/card/price", "brand=/card/brand"]
        await client.families.add("card", [("card.xsd", CARD_SCHEMA)], paths, key=["/card/code"], **options)


def calling_simple():
    return calling(gateway=TRUSTING, soap=SoapSettings(enabled=True))


async def said(call, *arguments, **named):
    found = await asyncio.to_thread(call, *arguments, **named)
    return found.valueACK, found.handle, found.code, found.reason


async def test_a_publisher_and_a_subscriber_by_zeep():
    async with calling_simple() as (broker, _), Webhook() as hook:
        await add_cards(broker, registered=True)
        peer = await asyncio.to_thread(Simple, broker.url)
        service = peer.service
        refused = await said(service.Notify, peer.message(card("c1")))
        assert refused[0] is False
        assert refused[2] == "NotAllowed"
        registered = await said(service.RegisterPublisher, **peer.publisher())
        assert registered == (True, registered[1], None, None)
        assert await said(service.RegisterPublisher, **peer.publisher()) == registered
        wanted = peer.subscription(f"{hook.url}/in", ("/card/brand", "Acme"), ("/card/price", "10"))
        subscribed = await said(service.Subscribe, **wanted)
        assert subscribed == (True, subscribed[1], None, None)
        assert await said(service.Subscribe, **wanted) == subscribed
        for code, price in (("c1", 10), ("c2", 11), ("c3", 10)):
            assert (await said(service.Notify, peer.message(card(code, price=price))))[0] is True
        got = [etree.fromstring((await hook.requests.get())[1]) for _ in range(2)]
        assert [one.findtext(f"{{{NAMESPACE}}}code") for one in got] == ["c1", "c3"]
        assert (await said(service.Unsubscribe, **wanted))[0] is True
        assert (await said(service.Unsubscribe, handle=subscribed[1]))[0] is True
        assert (await said(service.DestroyRegistration, **peer.publisher()))[0] is True
        assert (await said(service.DestroyRegistration, **peer.publisher()))[0] is True
        assert (await said(service.Notify, peer.message(card("c4"))))[2] == "NotAllowed"


async def test_current_documents_come_with_the_result():
    async with calling_simple() as (broker, _):
        await add_cards(broker)
        peer = await asyncio.to_thread(Simple, broker.url)
        for code, price in (("c1", 10), ("c2", 11), ("c1", 12)):
            assert (await said(peer.service.Notify, peer.message(card(code, price=price))))[0] is True
        every = await asyncio.to_thread(peer.service.GetCurrentMessage, **peer.subscription(""))
        assert [one.findtext(f"{{{NAMESPACE}}}price") for one in every._value_1] == ["12", "11"]
        wanted = peer.subscription("", ("/card/price", "11"))
        [one] = (await asyncio.to_thread(peer.service.GetCurrentMessage, **wanted))._value_1
        assert [child.text for child in one] == ["c2", "Acme", "11"]


async def test_a_retroactive_subscription_begins_with_what_is_current():
    async with calling_simple() as (broker, _), Webhook() as hook:
        await add_cards(broker)
        peer = await asyncio.to_thread(Simple, broker.url)
        for code, price in (("c1", 10), ("c1", 11)):
            assert (await said(peer.service.Notify, peer.message(card(code, price=price))))[0] is True
        wanted = peer.subscription(f"{hook.url}/in", retroactive=True)
        assert (await said(peer.service.Subscribe, **wanted))[0] is True
        assert b"<price>11</price>" in (await hook.requests.get())[1]
        # Who has no address takes it up by its handle, and begins with the same.
        done, handle, *_ = await said(peer.service.Subscribe, **peer.subscription("urn:desk", retroactive=True))
        assert done
        async with palio.connect(broker.address) as client:
            taken = await client.subscribe(None, durable=handle, retroactive=True)
            event = await taken.next(timeout=10)
            assert (event["xml.key"], event["/card/price"]) == ("c1", 11)
            await client.publish_document(card("c2"))
            assert (await taken.next(timeout=10))["xml.key"] == "c2"


@pytest.mark.parametrize(
    ("conditions", "code", "reason"),
    [
        ([("/card/prize", "1")], "UnknownPath", "/card/price"),
        ([("/card/price", "cheap")], "WrongSimpleRequest", "of the kind"),
        ([("/card[", "1")], "XPathSyntaxError", "Column 7"),
        ([("", "1")], "WrongSimpleRequest", "no expression"),
        ([("/card/price", "1")] * 65, "WrongSimpleRequest", "64 are the most"),
    ],
)
async def test_what_is_wrong_with_a_subscription_is_in_the_result(conditions, code, reason):
    async with calling_simple() as (broker, _):
        await add_cards(broker)
        peer = await asyncio.to_thread(Simple, broker.url)
        refused = await said(peer.service.Subscribe, **peer.subscription("http://127.0.0.1:1/", *conditions))
        assert refused[:3] == (False, None, code)
        assert reason in refused[3]


async def test_a_condition_without_a_value_is_to_be_true_or_to_find_something():
    async with calling_simple() as (broker, _), Webhook() as hook:
        await add_cards(broker)
        peer = await asyncio.to_thread(Simple, broker.url)
        wanted = peer.subscription(f"{hook.url}/in", ("/card/price > 10", None), ("/card/brand", None))
        assert (await said(peer.service.Subscribe, **wanted))[0] is True
        for price in (10, 11):
            assert (await said(peer.service.Notify, peer.message(card(str(price), price=price))))[0] is True
        assert b"<price>11</price>" in (await hook.requests.get())[1]


async def test_the_page_is_what_one_writes(root):
    page = (root / "docs/soap.md").read_text()
    example = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[2]
    names = {}
    exec(example, names)
    async with calling_simple() as (broker, _):
        await add_cards(broker)
        asked = broker.url, NAMESPACE, card("c1", price=7)
        assert await asyncio.to_thread(names["price_of"], *asked) == ["7"]


BR = 'xmlns="http://docs.oasis-open.org/wsn/br-2"'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (f"<RegisterPublisher {BR}/>", "WrongSimpleRequest"),
        (f'<RegisterPublisher {BR}><Topic Dialect="urn:none"/></RegisterPublisher>', "UnknownFamily"),
        ("<wsnt:Subscribe/>", "WrongSimpleRequest"),
        ("<wsnt:Unsubscribe/>", "WrongSimpleRequest"),
        ("<wsnt:Notify/>", "SoapProblem"),
        (
            "<wsnt:Subscribe><wsnt:Filter><wsnt:TopicExpression Dialect='urn:test:card'/></wsnt:Filter>"
            "</wsnt:Subscribe>",
            "WrongSimpleRequest",
        ),
    ],
)
async def test_requests_that_lack_something_are_answered_with_what(body, code):
    async with calling_simple() as (broker, session):
        await add_cards(broker)
        answer = (await speak(session, "/wsn/simple", body)).find("result")
        assert (answer.get("valueACK"), answer.get("code")) == ("false", code)
        assert answer.get("reason").endswith(".")


async def test_what_is_no_operation_is_a_fault():
    async with calling_simple() as (_, session):
        answer = await speak(session, "/wsn/simple", "<wsnt:Renew/>")
        assert answer.status == 400
        assert "RegisterPublisher" in answer.reason
