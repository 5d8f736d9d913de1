"""The CloudEvents project's own cases for its JSON format, sent through HTTP; and a client of that project."""

import asyncio
import json

import requests
from cloudevents.core.bindings.http import (
    HTTPMessage,
    from_http_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent

import palio
from tests.broker.gateway.calling import Webhook, calling
from tests.conformance.test_cloudevents import cases


async def statuses(session, media_type, documents):
    """What is answered to each."""
    found = []
    for document in documents:
        headers = {"Content-Type": media_type}
        async with session.post("/events", data=json.dumps(document), headers=headers) as answer:
            found.append((answer.status, answer.content_type))
    return found


def test_the_format_suite(shared):
    async def check():
        async with calling() as (_, session):
            for kind, key, media_type in (
                ("events", "event", "application/cloudevents+json"),
                ("batches", "batch", "application/cloudevents-batch+json"),
            ):
                valid = [case[key] for case in cases(shared, f"json-valid-{kind}")]
                invalid = [case[key] for case in cases(shared, f"json-invalid-{kind}")]
                assert len(valid) > 2
                assert len(invalid) > 2
                answers = await statuses(session, media_type, valid)
                assert answers == [(200, "application/json")] * len(valid)
                answers = await statuses(session, media_type, invalid)
                assert answers == [(400, "application/problem+json")] * len(invalid)

    asyncio.run(asyncio.wait_for(check(), 60))


def test_a_client_of_the_cloudevents_project_publishes():
    async def check():
        async with calling() as (broker, _), palio.connect(broker.address) as client:
            subscription = await client.subscribe('type = "order.created" and data.price > 10')
            for make, id in ((to_binary_event, "1"), (to_structured_event, "2")):
                event = CloudEvent(
                    {
                        "id": id,
                        "source": "/shop/siena",
                        "type": "order.created",
                        "specversion": "1.0",
                        "subject": "Größe €",
                        "datacontenttype": "application/json",
                    },
                    {"price": 12.5},
                )
                message = make(event)
                answer = await asyncio.to_thread(
                    requests.post,
                    f"{broker.url}/events",
                    data=message.body,
                    headers=message.headers,
                    timeout=10,
                )
                assert answer.status_code == 200, answer.text
                taken = await subscription.next(timeout=10)
                assert (taken["id"], taken["subject"], taken["data.price"]) == (id, "Größe €", 12.5)

    asyncio.run(asyncio.wait_for(check(), 60))


def test_a_client_of_the_cloudevents_project_reads_what_a_webhook_is_sent():
    async def check():
        async with calling() as (_, session), Webhook() as hook:
            for mode in ("binary", "structured"):
                wish = {"id": mode, "sink": hook.url, "config": {"contentmode": mode}}
                assert (await session.post("/subscriptions", json=wish)).status == 201
            event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "subject": "Größe € 5%"}
            headers = {"Content-Type": "application/cloudevents+json"}
            await session.post("/events", data=json.dumps(event | {"data": {"n": [1, 2]}}), headers=headers)
            await session.post("/events", json={"plain": True})
            for _ in range(4):
                message = HTTPMessage(*await asyncio.wait_for(hook.requests.get(), 10))
                read = from_http_event(message)
                if read.get_type() == "t":
                    assert (read.get_id(), read.get_source(), read.get_subject()) == ("1", "/s", "Größe € 5%")
                    assert read.get_data() == {"n": [1, 2]}
                else:
                    assert (read.get_type(), read.get_data()) == ("palio.event", {"plain": True})

    asyncio.run(asyncio.wait_for(check(), 60))
