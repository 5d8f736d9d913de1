"""Documents over HTTP: as themselves, at either address, and as the data of CloudEvents in every mode."""

import base64
import json

import pytest

import palio
from palio.documents.event_format import EVENTS
from tests.broker.documents.cards import PRICE, card, know_cards
from tests.broker.gateway.calling import calling, problem

CORE = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "card.changed"}


async def sent(session, path, body, media_type, headers=None):
    return await session.post(path, data=body, headers={"Content-Type": media_type} | (headers or {}))


@pytest.mark.parametrize("path", ["/documents", "/events"])
@pytest.mark.parametrize(
    "media_type", ["application/xml", "text/xml; charset=utf-8", "application/vnd.shop+xml"]
)
async def test_a_document_is_published_byte_for_byte(path, media_type):
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        await know_cards(broker.running)
        subscription = await client.subscribe(f'xml.family = "card" and `{PRICE}` = 10')
        answers = [await sent(session, path, card(), media_type, {"Idempotency-Key": "one"}) for _ in range(2)]
        assert [(one.status, (await one.json())["sequences"]) for one in answers] == [(200, [1])] * 2
        event = await subscription.next(timeout=10)
        assert (event.payload, event["xml.key"]) == (card(), "c1")


def in_xml():
    inner = "".join(f"<c:{name}>{value}</c:{name}>" for name, value in CORE.items() if name != "specversion")
    data = b'<c:data x:type="xs:any">%s</c:data>' % card()
    namespaces = f'xmlns:c="{EVENTS}" xmlns:x="http://www.w3.org/2001/XMLSchema-instance"'
    return f'<c:event specversion="1.0" {namespaces}>{inner}'.encode() + data + b"</c:event>"


@pytest.mark.parametrize(
    ("body", "media_type", "headers"),
    [
        (card(), "application/xml", {f"ce-{name}": value for name, value in CORE.items()}),
        (card(), "text/xml", {f"ce-{name}": value for name, value in CORE.items()}),
        (
            json.dumps(CORE | {"datacontenttype": "application/xml", "data": card().decode()}),
            "application/cloudevents+json",
            {},
        ),
        (
            json.dumps(
                [CORE | {"datacontenttype": "text/xml", "data_base64": base64.b64encode(card()).decode()}]
            ),
            "application/cloudevents-batch+json",
            {},
        ),
        (in_xml(), "application/cloudevents+xml", {}),
    ],
)
async def test_xml_data_of_an_event_are_a_document_if_there_is_a_family(body, media_type, headers):
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        subscription = await client.subscribe('type = "card.changed"')
        assert (await sent(session, "/events", body, media_type, headers)).status == 200
        event = await subscription.next(timeout=10)
        assert "xml.family" not in event
        await know_cards(broker.running)
        body = body.replace(b'"1"', b'"2"') if isinstance(body, bytes) else body.replace('"1"', '"2"')
        body = body.replace(b"<c:id>1", b"<c:id>2") if isinstance(body, bytes) else body
        headers = headers | {"ce-id": "2"} if headers else headers
        assert (await sent(session, "/events", body, media_type, headers)).status == 200
        event = await subscription.next(timeout=10)
        assert (event["id"], event["xml.key"], event[PRICE], "data" in event) == ("2", "c1", 10.0, False)
        assert b"<code>c1</code>" in event.payload


@pytest.mark.parametrize(
    ("path", "body", "media_type", "status", "error"),
    [
        ("/documents", b"<card/>", "application/json", 415, "WrongMediaType"),
        ("/documents", b"<card", "application/xml", 400, "DocumentRefused"),
        ("/events", b"<card/>", "application/xml", 400, "NoFamily"),
        ("/events", b"<!DOCTYPE a><a/>", "text/xml", 400, "DocumentRefused"),
        ("/documents", b"", "application/xml", 400, "DocumentRefused"),
        ("/documents?urgency=1", b"<card/>", "application/xml", 400, "WrongParameter"),
        ("/documents", b"<a>" + b"x" * 1_048_576 + b"</a>", "application/xml", 413, "DocumentTooLarge"),
        ("/events", b'{"xml.family": "card"}', "application/json", 403, "ReservedAttribute"),
    ],
)
async def test_what_is_wrong_is_told(path, body, media_type, status, error):
    async with calling() as (broker, session):
        await know_cards(broker.running)
        told = await problem(await sent(session, path, body, media_type), status, error)
        if error == "WrongMediaType":
            assert told["detail"].endswith("With curl: -H 'Content-Type: application/xml'.")
