"""Publishing by Notify: messages of items, documents in the envelope and beside it, by hand and by zeep."""

import asyncio

import pytest
import zeep
from lxml import etree

import palio
from palio.broker.soap.attachments import MOST_PARTS, UnknownAttachment, WrongAttachments, read_parts, referred
from palio.broker.soap.settings import SoapSettings
from tests.broker.documents.cards import PRICE, card, know_cards
from tests.broker.gateway.calling import calling
from tests.soap.speaking import S11, S12, TYPES, by_topic, create, envelope, pull, speak

ON = SoapSettings(enabled=True)


def notify(*messages, topic=""):
    said = f"<wsnt:Topic>{topic}</wsnt:Topic>" if topic else ""
    held = [f"{said}<wsnt:Message>{one}</wsnt:Message>" for one in messages]
    held = [f"<wsnt:NotificationMessage>{one}</wsnt:NotificationMessage>" for one in held]
    return f"<wsnt:Notify>{''.join(held)}</wsnt:Notify>"


def items(**values):
    said = "".join(f'<tt:SimpleItem Name="{name}" Value="{value}"/>' for name, value in values.items())
    return f'<tt:Message UtcTime="2026-07-02T10:45:00Z"><tt:Data>{said}</tt:Data></tt:Message>'


async def post(session, content, content_type):
    async with session.post("/wsn", data=content, headers={"Content-Type": content_type}) as answer:
        return answer.status, await answer.read()


async def test_items_become_events():
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        taken = await client.subscribe("level = '3'", ready="broker")
        message = notify(items(level=3, who="anna"), items(level=4), topic="Door/Open")
        status, content = await post(session, envelope(message), TYPES[S12])
        assert (status, content) == (202, b"")
        event = await anext(aiter(taken))
        assert dict(event.attributes) == {"level": "3", "who": "anna", "topic": "Door/Open"}
        assert event.notification.time.isoformat() == "2026-07-02T10:45:00+00:00"


async def test_the_same_message_id_is_published_once():
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        taken = await client.subscribe("true", ready="broker")
        header = "<wsa:MessageID>urn:uuid:1</wsa:MessageID>"
        for level in (1, 1):
            await post(session, envelope(notify(items(level=level)), header), TYPES[S12])
        await post(session, envelope(notify(items(level=2))), TYPES[S12])
        got = [(await anext(aiter(taken)))["level"] for _ in range(2)]
        assert got == ["1", "2"]


@pytest.mark.parametrize(
    "body",
    ["<wsnt:Notify/>", notify(""), notify("<a/><b/>"), notify("<a/>"), notify(*["<a/>"] * 1_001)],
)
async def test_what_cannot_be_published_is_a_fault(body):
    async with calling(soap=ON) as (_, session):
        refused = await speak(session, "/wsn", body)
        assert refused.status == 400


@pytest.mark.parametrize("version", ["Soap11", "Soap12"])
async def test_zeep_publishes(version):
    async with calling(soap=ON) as (broker, _), palio.connect(broker.address) as client:
        taken = await client.subscribe("true", ready="broker")
        made = await asyncio.to_thread(zeep.Client, f"{broker.url}/wsn?wsdl")
        port = made.bind("NotificationConsumer", f"NotificationConsumer{version}")
        message = etree.fromstring(
            '<tt:Message xmlns:tt="http://www.onvif.org/ver10/schema"><tt:Data>'
            '<tt:SimpleItem Name="n" Value="1"/></tt:Data></tt:Message>'
        )
        holder = {"Topic": {"_value_1": "a"}, "Message": {"_value_1": message}}
        await asyncio.to_thread(port.Notify, NotificationMessage=[holder])
        assert dict((await anext(aiter(taken))).attributes) == {"n": "1", "topic": "a"}


# Requests of several parts

RELATED = 'multipart/related; type="text/xml"; boundary="here"; start="<root>"'


def related(*parts, end=b"--here--\r\n"):
    """Each part is a Content-ID, further headers, and bytes."""
    written = b"a preamble\r\n"
    for id, more, content in parts:
        written += b"--here\r\nContent-ID: <" + id + b">\r\n" + more + b"\r\n" + content + b"\r\n"
    return written + end


def test_parts_are_taken_as_they_are():
    content = bytes(range(256)) + b"\r\n--her\r\n\r\n"
    parts = read_parts(RELATED, related((b"other", b"X: y\r\n", content), (b"root", b"", b"<a/>")))
    assert parts.envelope == b"<a/>"
    assert parts.others == {"other": content}
    assert read_parts("text/xml", b"<a/>").envelope == b"<a/>"


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("multipart/related", b"", "boundary"),
        ('multipart/related; boundary=""', b"", "boundary"),
        (f"multipart/related; boundary={'x' * 71}", b"", "boundary"),
        (RELATED, b"", "ends them"),
        (RELATED, b"--here--", "none"),
        (RELATED, related((b"other", b"", b"x")), "start"),
        (RELATED, related((b"root", b"", b"x"), end=b""), "ends them"),
        (RELATED, related((b"root", b"", b"x"), (b"root", b"", b"y")), "same"),
        (RELATED, related((b"root", b"Content-Transfer-Encoding: base64\r\n", b"eA==")), "base64"),
        (RELATED, related((b"root", b"X: " + b"y" * 5_000 + b"\r\n", b"x")), "head"),
        (RELATED, b"--here\r\nContent-ID: <root>--here--", "head"),
        (RELATED, b"--here\r\nContent-ID: <root>\r\n--here--", "head"),
        (RELATED, related(*[(b"%d" % n, b"", b"x") for n in range(MOST_PARTS + 1)]), "more than"),
        (RELATED, related(*[(b"%d" % n, b"", b"x") for n in range(10_000)]), "more than"),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(kind, body, reason):
    with pytest.raises(WrongAttachments, match=reason) as refused:
        read_parts(kind, body)
    assert str(refused.value).endswith(".")


def test_references_by_both_standards():
    others = {"a b": b"x"}
    include = '<m><i:Include xmlns:i="http://www.w3.org/2004/08/xop/include" href="cid:a%20b"/></m>'
    assert referred(etree.fromstring(include), others) == b"x"
    assert referred(etree.fromstring('<m href="cid:a%20b"/>'), others) == b"x"
    assert referred(etree.fromstring('<m href="http://elsewhere/"/>'), others) is None
    with pytest.raises(UnknownAttachment):
        referred(etree.fromstring('<m href="cid:other"/>'), others)


@pytest.mark.parametrize("version", [S11, S12])
async def test_an_attachment_that_is_not_there_is_a_fault(version):
    async with calling(soap=ON) as (_, session):
        said = notify("").replace("<wsnt:Message>", '<wsnt:Message href="cid:x">')
        status, content = await post(session, related((b"root", b"", envelope(said, "", version))), RELATED)
        assert status in (400, 500)
        assert b"no part" in content


# Documents


async def scene(client, broker):
    await know_cards(broker.running)
    return await client.subscribe('xml.family = "card"', ready="broker")


async def test_a_document_in_the_envelope_is_read_as_one():
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        taken = await scene(client, broker)
        inside = card(price=7).decode()
        status, content = await post(session, envelope(notify(inside, items(n=1), topic="cards")), TYPES[S12])
        assert status == 202, content
        event = await taken.next(timeout=10)
        assert (event[PRICE], event["xml.key"], event["topic"]) == (7.0, "c1", "cards")
        told = etree.fromstring(event.payload)
        assert etree.tostring(told, method="c14n2") == etree.tostring(etree.fromstring(inside), method="c14n2")


@pytest.mark.parametrize("version", [S11, S12])
@pytest.mark.parametrize("xop", [True, False])
async def test_an_attachment_is_published_byte_for_byte(version, xop):
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        taken = await scene(client, broker)
        content = b'<?xml version="1.0"?>\r\n<!-- as it is -->' + card()
        include = '<i:Include xmlns:i="http://www.w3.org/2004/08/xop/include" href="cid:doc"/>' if xop else ""
        said = notify(include)
        if not xop:
            said = said.replace("<wsnt:Message>", '<wsnt:Message href="cid:doc">')
        body = related((b"root", b"", envelope(said, "", version)), (b"doc", b"", content))
        status, answer = await post(session, body, RELATED)
        assert status == 202, answer
        assert (await taken.next(timeout=10)).payload == content


async def test_a_document_that_is_refused_is_a_fault_with_its_line():
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        await scene(client, broker)
        refused = await speak(session, "/wsn", notify(card(price="cheap").decode()))
        assert (refused.status, refused.find("palio:Error").get("name")) == (400, "DocumentRefused")


async def test_a_document_that_was_published_is_pushed_and_pulled_as_it_is():
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        await scene(client, broker)
        made = await speak(session, "/onvif/event_service", create(by_topic("card")))
        await post(session, envelope(notify(card(price=7).decode())), TYPES[S12])
        where = "/" + made.text("wsa:Address").split("/", 3)[3]
        said = await speak(session, where, pull())
        assert said.find("{urn:test:card}price").text == "7"
        assert said.text("wsnt:Topic") == "card"


async def test_an_empty_document_is_a_document():
    async with calling(soap=ON) as (_, session):
        made = await speak(session, "/onvif/event_service", create())
        headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "x"}
        headers["Content-Type"] = "application/octet-stream"
        await session.post("/events", data=b"<nothing/>", headers=headers)
        said = await speak(session, "/" + made.text("wsa:Address").split("/", 3)[3], pull())
        assert said.find("nothing") is not None
