"""A client library for cameras that nobody here has written, unchanged, and a broker."""

import asyncio
import datetime
import re
import time

import aiohttp
import pytest
from lxml import etree

from palio.broker.access.tokens import create_token
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.soap.settings import SoapSettings
from tests.broker.gateway.calling import Webhook
from tests.security.world import World
from tests.soap.speaking import CONCRETE_SET, SPACES

pytestmark = pytest.mark.slow
onvif = pytest.importorskip("onvif", reason="onvif-zeep-async is not installed")
exceptions = pytest.importorskip("zeep.exceptions")

TRUSTING = GatewaySettings(sinks=("127.0.0.0/8",), validate_sinks=False)
MINUTES = datetime.timedelta(minutes=10)
SECONDS = datetime.timedelta(seconds=5)


class Scene:
    """A broker, a camera client with it, and somebody who publishes."""

    def __init__(self, folder):
        folder.mkdir()
        self.world = World(folder)
        self.world.add("viewer", "true", "true")
        self.token = create_token(folder, "viewer", now=time.time(), digest=True)[1]
        settings = {"journal": True, "http": True, "gateway": TRUSTING}
        self.broker = self.world.broker(soap=SoapSettings(enabled=True), **settings)
        self.lost = []

    def camera(self, password=None, **more):
        host, port = self.broker.url.removeprefix("http://").split(":")
        return onvif.ONVIFCamera(host, int(port), "viewer", password or self.token, no_cache=True, **more)

    async def __aenter__(self):
        await self.broker.start()
        self.client = self.camera(adjust_time=True)
        await self.client.update_xaddrs()
        return self

    async def __aexit__(self, *_):
        await self.client.close()
        await self.broker.stop()

    async def publish(self, **event):
        headers = {"Authorization": f"Bearer {self.token}"}
        async with aiohttp.ClientSession(self.broker.url, headers=headers) as session:
            assert (await session.post("/events", json=event)).status == 200

    async def puller(self):
        return await self.client.create_pullpoint_manager(MINUTES, lambda: self.lost.append("pull"))


def items(answer):
    return [
        {one.Name: one.Value for one in m.Message._value_1.Data.SimpleItem} for m in answer.NotificationMessage
    ]


async def pulled(manager):
    return items(await manager.get_service().PullMessages({"MessageLimit": 10, "Timeout": SECONDS}))


async def test_it_subscribes_pulls_renews_and_ends(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        capabilities = await scene.client.get_capabilities()
        assert capabilities["Events"]["WSPullPointSupport"] is True
        manager = await scene.puller()
        await manager.set_synchronization_point()
        await scene.publish(topic="RuleEngine/CellMotion", IsMotion=True)
        assert await pulled(manager) == [{"IsMotion": "true", "topic": "RuleEngine/CellMotion"}]
        due = await manager._call_subscription_renew()
        assert due - asyncio.get_running_loop().time() == pytest.approx(0.8 * 600, abs=5)
        second = scene.camera()
        await second.update_xaddrs()
        other = await second.create_pullpoint_manager(MINUTES, lambda: scene.lost.append("pull"))
        await manager.stop()
        await scene.publish(n=1)
        assert await pulled(other) == [{"n": "1"}]
        with pytest.raises(exceptions.Fault, match="no subscription"):
            await pulled(manager)
        await other.stop()
        await second.close()
        assert scene.lost == []


async def test_it_is_pushed_to(tmp_path):
    async with Scene(tmp_path / "access") as scene, Webhook() as hook:
        manager = await scene.client.create_notification_manager(
            f"{hook.url}/in", MINUTES, lambda: scene.lost.append("push")
        )
        await scene.publish(topic="Door/Open", who="anna")
        _, body = await asyncio.wait_for(hook.requests.get(), 10)
        assert items(manager.process(body)) == [{"topic": "Door/Open", "who": "anna"}]
        await manager.stop()


async def test_absolute_times_and_clocks_that_are_apart(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        service = await scene.client.create_events_service()
        end = (
            (datetime.datetime.now(datetime.UTC) + MINUTES).isoformat(timespec="seconds").replace("+00:00", "Z")
        )
        made = await service.CreatePullPointSubscription({"InitialTerminationTime": end})
        assert made.TerminationTime == datetime.datetime.fromisoformat(end)
        # Without the time of the broker, a client with a wrong clock is told so.
        astray = scene.camera()
        astray.dt_diff = datetime.timedelta(hours=1)
        devices = await astray.create_devicemgmt_service()
        with pytest.raises(exceptions.Fault, match="clocks may be"):
            await devices.GetServices({"IncludeCapability": False})
        await astray.close()


async def test_a_wrong_password_is_told_as_a_fault(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        stranger = scene.camera(password="wrong")
        devices = await stranger.create_devicemgmt_service()
        with pytest.raises(exceptions.Fault) as refused:
            await devices.GetServices({"IncludeCapability": False})
        assert [code.localname for code in refused.value.subcodes] == ["NotAuthorized"]
        await stranger.close()


async def test_a_restart_is_gone_through(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        manager = await scene.puller()
        await scene.broker.stop()
        await scene.broker.start()
        await scene.publish(n=1)
        assert await pulled(manager) == [{"n": "1"}]
        await manager.stop()


async def test_filters_of_topics_and_contents(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        service = await scene.client.create_events_service()
        topic = etree.Element(f"{{{SPACES['wsnt']}}}TopicExpression", Dialect=CONCRETE_SET)
        topic.text = "Door//."
        wish = {"Filter": {"_value_1": [topic]}, "InitialTerminationTime": "PT60S"}
        made = await service.CreatePullPointSubscription(wish)
        scene.client.xaddrs["http://www.onvif.org/ver10/events/wsdl/PullPointSubscription"] = (
            made.SubscriptionReference.Address._value_1
        )
        point = await scene.client.create_pullpoint_service()
        await scene.publish(topic="Window/Open")
        await scene.publish(topic="Door/Front/Open")
        assert items(await point.PullMessages({"MessageLimit": 5, "Timeout": SECONDS})) == [
            {"topic": "Door/Front/Open"}
        ]


async def test_the_page_is_what_one_writes(tmp_path, root):
    page = (root / "docs/soap.md").read_text()
    [example] = re.findall(r"^```python\n([^`]*def watch.*?)^```", page, re.DOTALL | re.MULTILINE)
    names = {}
    exec(example, names)
    async with Scene(tmp_path / "access") as scene:
        host, port = scene.broker.url.removeprefix("http://").split(":")
        events = names["watch"](host, int(port), "viewer", scene.token)
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(1)
        await scene.publish(topic="RuleEngine/CellMotion", IsMotion=True)
        topic, got = await first
        assert (topic, got) == ("RuleEngine/CellMotion", {"IsMotion": "true", "topic": topic})
        await events.aclose()
