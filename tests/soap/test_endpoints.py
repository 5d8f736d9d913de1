"""SOAP by hand, against a real broker: subscriptions made, pulled from, pushed, renewed and ended."""

import asyncio
import re
from datetime import datetime

import aiohttp
import msgspec
import pytest
from lxml import etree

from palio import testing
from palio.broker.soap.settings import SoapSettings
from tests.broker.gateway.calling import LOCAL, Webhook, calling
from tests.soap.speaking import (
    EVENTS,
    FULL,
    S11,
    S12,
    SPACES,
    by_content,
    by_topic,
    create,
    envelope,
    pull,
    speak,
)

JMS = "urn:palio:filter:jms"
SOAP = {"Content-Type": "application/soap+xml"}
ON = SoapSettings(enabled=True)
TRUSTING = msgspec.structs.replace(LOCAL, validate_sinks=False)


def spoken_to(**settings):
    return calling(soap=ON, **settings)


async def publish(session, *events):
    answer = await session.post("/events", json=list(events))
    assert answer.status == 200, await answer.text()


async def pull_point(session, filter="", end="PT60S", version=S12):
    """The address of a new pull point, without the host."""
    made = await speak(session, EVENTS, create(filter, end), version=version)
    assert made.status == 200, made.reason
    return made, re.sub("^http://[^/]+", "", made.text("wsa:Address"))


@pytest.mark.parametrize("version", [S11, S12])
async def test_what_is_published_is_pulled_once(version):
    async with spoken_to() as (broker, session):
        made, where = await pull_point(session, by_topic("tns1:Door/Open"), version=version)
        assert made.text("wsa:Address").startswith(broker.url)
        await publish(
            session,
            {"topic": "Door/Open", "who": "anna", "at": {"floor": 3}, "ok": True, "tags": ["a", "b"]},
            {"topic": "Door/Closed"},
        )
        said = await speak(session, where, pull(), version=version)
        message = said.find("wsnt:NotificationMessage")
        assert message.find("wsnt:Topic", SPACES).text == "Door/Open"
        items = [(one.get("Name"), one.get("Value")) for one in message.iterfind(".//tt:SimpleItem", SPACES)]
        assert items == [
            ("at.floor", "3"), ("ok", "true"), ("tags", "a"), ("tags", "b"),
            ("topic", "Door/Open"), ("who", "anna"),
        ]  # fmt: skip
        again = await speak(session, where, pull("PT0.2S"), version=version)
        assert again.items() == []


async def test_a_pull_waits_for_the_first_and_is_limited():
    async with spoken_to() as (_, session):
        _, where = await pull_point(session)
        waiting = asyncio.create_task(speak(session, where, pull("PT20S", most=2)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await publish(session, *[{"n": number} for number in range(5)])
        got = (await waiting).items()
        while len(got) < 5:
            got += (await speak(session, where, pull("PT20S", most=2))).items()
        assert got == [{"n": str(number)} for number in range(5)]


async def test_a_client_that_comes_again_takes_the_place_of_the_one_before():
    async with spoken_to() as (_, session):
        _, where = await pull_point(session)
        first = asyncio.create_task(speak(session, where, pull("PT20S")))
        await asyncio.sleep(0.1)
        second = asyncio.create_task(speak(session, where, pull("PT20S")))
        assert (await first).items() == []
        await publish(session, {"n": 1})
        assert (await second).items() == [{"n": "1"}]


async def test_a_client_that_has_gone_before_the_answer_loses_nothing():
    async with spoken_to() as (_, session):
        _, where = await pull_point(session)
        waiting = asyncio.create_task(speak(session, where, pull("PT20S")))
        await asyncio.sleep(0.2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(0.1)
        await publish(session, {"n": 1})
        assert (await speak(session, where, pull("PT10S"))).items() == [{"n": "1"}]


async def test_what_waits_outlives_the_broker():
    broker = testing.broker(journal=True, http=True, gateway=LOCAL, soap=ON)
    await broker.start()

    try:
        async with aiohttp.ClientSession(broker.url) as session:
            _, where = await pull_point(session, end="PT1H")
            await publish(session, {"n": 1}, {"n": 2})
            assert len((await speak(session, where, pull(most=1))).items()) == 1
        await broker.stop()
        await broker.start()
        async with aiohttp.ClientSession(broker.url) as session:
            got = (await speak(session, where, pull())).items()
            assert got[-1] == {"n": "2"}
    finally:
        await broker.stop()


@pytest.mark.parametrize("version", [S11, S12])
async def test_events_are_pushed_as_notify(version):
    async with spoken_to(gateway=TRUSTING) as (_, session), Webhook() as hook:
        body = (
            f"<wsnt:Subscribe><wsnt:ConsumerReference><wsa:Address>{hook.url}/in</wsa:Address>"
            "</wsnt:ConsumerReference></wsnt:Subscribe>"
        )
        made = await speak(session, EVENTS, body, version=version)
        await publish(session, {"type": "order", "price": 1.5})
        headers, pushed = await asyncio.wait_for(hook.requests.get(), 10)
        root = etree.fromstring(pushed)
        assert root.tag == f"{{{version}}}Envelope"
        assert headers["Content-Type"].startswith("text/xml" if version == S11 else "application/soap+xml")
        assert root.find(".//wsnt:Topic", SPACES).text == "order"
        where = re.sub("^http://[^/]+", "", made.text("wsa:Address"))
        assert (await speak(session, where, "<wsnt:PauseSubscription/>")).status == 200
        await publish(session, {"type": "order", "price": 2.5})
        await asyncio.sleep(0.2)
        assert hook.requests.empty()
        assert (await speak(session, where, "<wsnt:ResumeSubscription/>")).status == 200
        await asyncio.wait_for(hook.requests.get(), 10)
        assert (await speak(session, where, "<wsnt:Unsubscribe/>")).status == 200
        gone = await speak(session, where, "<wsnt:Unsubscribe/>")
        assert (gone.status, gone.fault) == (400, "ResourceUnknownFault")


async def test_raw_documents_are_pushed_without_anything_around_them():
    async with spoken_to(gateway=TRUSTING) as (_, session), Webhook() as hook:
        body = (
            f"<wsnt:Subscribe><wsnt:ConsumerReference><wsa:Address>{hook.url}/in</wsa:Address>"
            "</wsnt:ConsumerReference><wsnt:SubscriptionPolicy><wsnt:UseRaw/></wsnt:SubscriptionPolicy>"
            "</wsnt:Subscribe>"
        )
        await speak(session, EVENTS, body)
        document = b'<?xml version="1.0"?>\n<card code="c1"><price>5</price></card>'
        headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "card"}
        headers["Content-Type"] = "application/octet-stream"
        await session.post("/events", data=document, headers=headers)
        got, pushed = await asyncio.wait_for(hook.requests.get(), 10)
        assert (pushed, got["Content-Type"]) == (document, "application/xml")


async def test_ending_one_subscription_leaves_the_others():
    async with spoken_to() as (_, session):
        _, one = await pull_point(session)
        _, other = await pull_point(session)
        assert (await speak(session, one, "<wsnt:Unsubscribe/>")).status == 200
        await publish(session, {"n": 1})
        assert (await speak(session, other, pull())).items() == [{"n": "1"}]
        gone = await speak(session, one, pull())
        assert (gone.status, gone.fault) == (400, "ResourceUnknownFault")


async def test_the_end_is_as_it_was_asked_for():
    async with spoken_to() as (_, session):
        relative, where = await pull_point(session, end="PT2M")
        assert _seconds(relative) == pytest.approx(120, abs=2)
        renewed = await speak(
            session, where, "<wsnt:Renew><wsnt:TerminationTime>PT10M</wsnt:TerminationTime></wsnt:Renew>"
        )
        assert _seconds(renewed) == pytest.approx(600, abs=2)
        for end, fault in (
            ("2001-01-01T00:00:00Z", "UnacceptableInitialTerminationTimeFault"),
            ("-PT5S", "UnacceptableInitialTerminationTimeFault"),
            ("soon", "UnacceptableInitialTerminationTimeFault"),
            ("P99Y", "UnacceptableInitialTerminationTimeFault"),
        ):
            refused = await speak(session, EVENTS, create(end=end))
            assert (refused.status, refused.fault) == (400, fault)
            assert refused.text("bf:ErrorCode") == "SoapProblem"
        lasting = await speak(session, where, '<wsnt:Renew><wsnt:TerminationTime xsi:nil="true"/></wsnt:Renew>')
        assert lasting.find("wsnt:TerminationTime").get(f"{{{SPACES['xsi']}}}nil") == "true"


def _seconds(said):

    end, now = said.text("wsnt:TerminationTime"), said.text("wsnt:CurrentTime")
    return (datetime.fromisoformat(end) - datetime.fromisoformat(now)).total_seconds()


async def test_a_subscription_that_is_not_renewed_ends():
    async with spoken_to() as (_, session):
        _, where = await pull_point(session, end="PT1S")
        _, kept = await pull_point(session, end="PT1S")
        waiting = asyncio.create_task(speak(session, kept, pull("PT6S")))
        for _ in range(100):
            await asyncio.sleep(0.1)
            if len(await (await session.get("/subscriptions")).json()) < 2:
                break
        else:
            raise AssertionError("it did not end")
        gone = await speak(session, where, pull())
        assert gone.fault == "ResourceUnknownFault"
        await publish(session, {"n": 1})
        assert (await waiting).items() == [{"n": "1"}]


@pytest.mark.parametrize(
    ("filter", "fault"),
    [
        (by_topic("nowhere:Door"), "InvalidTopicExpressionFault"),
        (by_topic("Door/*"), "InvalidTopicExpressionFault"),
        (by_topic("Door", "urn:mine"), "TopicExpressionDialectUnknownFault"),
        (by_content("price &gt;"), "InvalidFilterFault"),
        (by_content("price = 1", "urn:mine"), "InvalidFilterFault"),
        (by_content("price = 1 and price = 2"), "InvalidFilterFault"),
        ("<tev:Filter><wsnt:ProducerProperties>x</wsnt:ProducerProperties></tev:Filter>", "InvalidFilterFault"),
    ],
)
async def test_filters_that_cannot_be_used_are_faults_with_a_name(filter, fault):
    async with spoken_to() as (_, session):
        refused = await speak(session, EVENTS, create(filter))
        assert (refused.status, refused.fault) == (400, fault), refused.reason


async def test_contents_are_filtered():
    async with spoken_to() as (_, session):
        _, plain = await pull_point(session, by_content("price &gt; 10"))
        _, selector = await pull_point(session, by_content("price &gt; 10 AND shop LIKE 's%'", JMS))
        _, below = await pull_point(session, by_topic("shop//.", FULL))
        await publish(
            session,
            {"price": 11, "shop": "siena"},
            {"price": 12, "shop": "lucca"},
            {"topic": "shop/a/b", "price": 1},
        )
        assert [one["price"] for one in (await speak(session, plain, pull())).items()] == ["11", "12"]
        assert [one["price"] for one in (await speak(session, selector, pull())).items()] == ["11"]
        assert [one["price"] for one in (await speak(session, below, pull())).items()] == ["1"]


@pytest.mark.parametrize(
    ("content", "status", "part"),
    [
        (b"", 400, "begin"),
        (b"hello", 400, "begin"),
        (b"<a/>", 400, "Envelope"),
        (b"<!DOCTYPE a []><a/>", 400, "DOCTYPE"),
        (envelope(""), 400, "Body with one element"),
        (envelope("<a/><b/>"), 400, "Body with one element"),
        (envelope("<tev:Nothing/>"), 400, "no operation 'Nothing'"),
        (envelope("<tev:GetEventProperties/>", '<x:y xmlns:x="urn:x" s:mustUnderstand="1"/>'), 400, "urn:x"),
        (envelope("<tev:GetEventProperties/>") + b" " * 600_000, 413, "bytes"),
    ],
)
async def test_what_is_no_request_is_a_fault(content, status, part):
    async with spoken_to() as (_, session):
        async with session.post(EVENTS, data=content, headers=SOAP) as answer:
            assert answer.status == status
            root = etree.fromstring(await answer.read())
        assert part in root.find(f".//{{{S12}}}Text").text
        assert (await speak(session, EVENTS, "<tev:GetEventProperties/>")).status == 200


async def test_it_is_off_unless_it_is_wanted():
    async with calling() as (_, session):
        async with session.post(EVENTS, data=envelope("<tev:GetEventProperties/>")) as answer:
            assert answer.status == 404
        wish = {"sink": "http://127.0.0.1:1/x", "config": {"contentmode": "notify"}}
        refused = await (await session.post("/subscriptions", json=wish)).json()
        assert "soap.enabled" in refused["detail"]


async def test_every_operation_of_the_page_is_there_and_no_other(root):
    page = (root / "docs/soap.md").read_text()
    rows = dict(re.findall(r"^\| `(/(?:onvif|wsn)[^`]*)` \| (.*) \|$", page, re.MULTILINE))
    assert len(rows) == 7
    async with spoken_to() as (_, session):
        for where, listed in rows.items():
            refused = await speak(session, where.replace("ID", "x"), "<tev:Nothing/>")
            known = refused.reason.partition("there are ")[2].rstrip(".").split(", ")
            assert known == sorted(re.findall(r"`(\w+)`", listed.partition(";")[0]))
