"""The CloudEvents project's own cases for its JSON format, sent through HTTP; and a client of that project."""

import asyncio
import json

import requests
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

import palio
from tests.broker.gateway.calling import calling
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
