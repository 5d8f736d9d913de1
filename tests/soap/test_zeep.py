"""zeep, a client of SOAP that others wrote, makes itself of the WSDL and calls what it describes."""

import asyncio
import re

import pytest
import zeep
from lxml import etree

from palio.broker.soap.settings import SoapSettings
from tests.broker.gateway.calling import LOCAL, Webhook, calling
from tests.soap.speaking import CONCRETE, SPACES

TRUSTING = LOCAL.__class__(sinks=LOCAL.sinks, validate_sinks=False)
BINDINGS = ["Soap11", "Soap12"]


class Peer:
    """A client of WS-BaseNotification."""

    def __init__(self, url, version):
        self._client = zeep.Client(f"{url}/wsn?wsdl")
        self._version = version
        self.producer = self._client.bind("NotificationProducer", f"NotificationProducer{version}")

    def port(self, name, reference):
        return self._client.create_service(f"{{urn:palio:wsn}}{name}{self._version}", reference.Address)

    def items(self, messages):
        return [
            {
                item.get("Name"): item.get("Value")
                for item in message.Message._value_1.iterfind(".//tt:SimpleItem", SPACES)
            }
            for message in messages or ()
        ]


async def publish(session, *events):
    assert (await session.post("/events", json=list(events))).status == 200


@pytest.mark.parametrize("version", BINDINGS)
async def test_a_pull_point_by_the_standard(version):
    async with calling(soap=SoapSettings(enabled=True)) as (broker, session):
        peer = await asyncio.to_thread(Peer, broker.url, version)
        point = await asyncio.to_thread(peer.producer.CreatePullPoint)
        topic = {"TopicExpression": {"_value_1": "orders/new", "Dialect": CONCRETE}}
        content = {"MessageContent": {"_value_1": "price > 5", "Dialect": "urn:palio:filter"}}
        made = await asyncio.to_thread(
            peer.producer.Subscribe, {"Address": point.Address}, topic | content, "PT10M"
        )
        assert (made.TerminationTime - made.CurrentTime).total_seconds() == pytest.approx(600, abs=1)
        await publish(
            session, *[{"topic": "orders/new", "price": price} for price in (4, 6, 7)], {"topic": "x"}
        )
        pulling = peer.port("PullPoint", point)
        got = []
        while len(got) < 2:
            got += peer.items(await asyncio.to_thread(pulling.GetMessages, 1))
        assert [one["price"] for one in got] == ["6", "7"]
        with pytest.raises(zeep.exceptions.Fault, match="already"):
            await asyncio.to_thread(peer.producer.Subscribe, {"Address": point.Address})
        await asyncio.to_thread(pulling.DestroyPullPoint)
        with pytest.raises(zeep.exceptions.Fault, match="no subscription"):
            await asyncio.to_thread(pulling.GetMessages)


@pytest.mark.parametrize("version", BINDINGS)
async def test_a_consumer_by_the_standard(version):
    async with (
        calling(soap=SoapSettings(enabled=True), gateway=TRUSTING) as (broker, session),
        Webhook() as hook,
    ):
        peer = await asyncio.to_thread(Peer, broker.url, version)
        made = await asyncio.to_thread(peer.producer.Subscribe, {"Address": f"{hook.url}/in"})
        manager = peer.port("SubscriptionManager", made.SubscriptionReference)
        renewed = await asyncio.to_thread(manager.Renew, "PT1H")
        assert (renewed.TerminationTime - renewed.CurrentTime).total_seconds() == pytest.approx(3600, abs=1)
        await asyncio.to_thread(manager.PauseSubscription)
        await publish(session, {"n": 1})
        await asyncio.sleep(0.2)
        assert hook.requests.empty()
        await asyncio.to_thread(manager.ResumeSubscription)
        _, body = await asyncio.wait_for(hook.requests.get(), 10)
        assert etree.fromstring(body).find(".//tt:SimpleItem", SPACES).get("Value") == "1"
        await asyncio.to_thread(manager.Unsubscribe)
        with pytest.raises(zeep.exceptions.Fault, match="no subscription"):
            await asyncio.to_thread(manager.Renew, "PT1H")


async def test_the_page_is_what_one_writes(root):
    page = (root / "docs/soap.md").read_text()
    _, example, _ = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    names = {}
    exec(example, names)
    async with calling(soap=SoapSettings(enabled=True)) as (broker, session):
        first = asyncio.create_task(asyncio.to_thread(next, names["orders"](broker.url)))
        while not await (await session.get("/subscriptions")).json():
            await asyncio.sleep(0.05)
        await publish(session, {"price": 99}, {"price": 101})
        assert await first == {"price": "101"}
