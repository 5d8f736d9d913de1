"""Publishing over HTTP: every form of an event, confirmations, and what is wrong as problem details."""

import asyncio
import base64
import json

import aiohttp
import pytest

import palio
from palio.broker.gateway.settings import GatewaySettings
from tests.broker.gateway.calling import calling, problem

EVENT = {"specversion": "1.0", "id": "17", "source": "/shop/siena", "type": "order.created"}


async def published(session, body, media_type="application/json", headers=None, **parameters):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = {"Content-Type": media_type} if media_type else {}
    return await session.post("/events", data=data, headers=more | (headers or {}), params=parameters)


async def test_plain_json_is_confirmed_and_comes_as_it_was():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        subscription = await client.subscribe("price > 100")
        content = {
            "symbol": "ACME",
            "price": 101.5,
            "order": {"id": 7, "lines": [{"sku": "a"}, 1]},
            "gone": None,
        }
        answer = await published(session, content, id="a-1", priority="7", lifetime="60")
        assert answer.status == 200
        assert await answer.json() == {"origin": "broker", "sequences": [1], "journaled": True}
        event = await subscription.next(timeout=5)
        assert (event["symbol"], event["order.id"], event.id, event.priority) == ("ACME", 7, "a-1", 7)
        assert event.notification.unindexed == ("order.lines",)
        assert event.notification.lifetime.total_seconds() == 60


async def test_arrays_and_lines_are_published_together_in_their_order():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        subscription = await client.subscribe("true")
        answer = await published(session, [{"n": n} for n in range(500)])
        assert (await answer.json())["sequences"] == list(range(1, 501))
        lines = b'{"n": 500}\n\n  {"n": 501}\r\n'
        answer = await published(session, lines, "application/x-ndjson")
        assert (await answer.json())["sequences"] == [501, 502]
        assert [(await subscription.next(timeout=5))["n"] for _ in range(502)] == list(range(502))
        assert (await (await published(session, [])).json())["sequences"] == []


async def test_what_is_large_is_read_beside_the_event_loop():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        subscription = await client.subscribe("n = 9999", limit=10)
        answer = await published(session, [{"n": n, "text": "x" * 100} for n in range(10_000)])
        assert len((await answer.json())["sequences"]) == 10_000
        assert (await subscription.next(timeout=5))["n"] == 9_999


async def test_one_that_is_wrong_refuses_all_of_them():
    async with calling() as (broker, session):
        found = await problem(
            await published(session, [{"n": 1}, {"n": {"x": 10**30}}]), 400, "InvalidNotification"
        )
        assert found["path"] == "$[1].n.x"
        found = await problem(
            await published(session, b'{"n": 1}\n{"n": \n', "application/x-ndjson"), 400, "InvalidNotification"
        )
        assert found["path"].startswith("line 2")
        batch = [EVENT, EVENT | {"id": ""}]
        found = await problem(
            await published(session, batch, "application/cloudevents-batch+json"), 400, "InvalidNotification"
        )
        assert found["path"] == "$[1].id"
        assert broker.running.router.durable.journal.head == 0


async def test_cloudevents_come_the_same_in_every_mode():
    data = {"price": 12.5, "lines": [{"sku": "a"}]}
    whole = EVENT | {"time": "2026-01-31T12:00:00Z", "subject": "Größe ⌘ 100%", "data": data}
    whole["datacontenttype"] = "application/json"
    encoded = "Gr%C3%B6%C3%9Fe%20%E2%8C%98%20100%25"
    headers = {f"ce-{name}": value for name, value in EVENT.items()}
    headers |= {"ce-time": whole["time"], "ce-subject": encoded}
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        subscription = await client.subscribe('type = "order.created" and data.price > 10')
        assert (await published(session, data, headers=headers)).status == 200
        structured = "application/cloudevents+json; charset=UTF-8"
        assert (await published(session, whole | {"id": "18"}, structured)).status == 200
        batch = [whole | {"id": "19"}, whole | {"id": "20"}]
        assert (await published(session, batch, "application/cloudevents-batch+json")).status == 200
        events = [await subscription.next(timeout=5) for _ in range(4)]
        assert [event["id"] for event in events] == ["17", "18", "19", "20"]
        assert [event.id for event in events] == [f"/shop/siena {id}" for id in ("17", "18", "19", "20")]
        contents = [{**event.attributes, "id": None} for event in events]
        assert contents == [contents[0]] * 4
        assert contents[0]["subject"] == "Größe ⌘ 100%"
        assert events[0].payload == events[3].payload


async def test_data_of_other_kinds():
    headers = {f"ce-{name}": value for name, value in EVENT.items()}
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        subscription = await client.subscribe("true")
        await published(session, b"\x00\xff", "image/png", headers=headers)
        await published(session, "schön".encode(), "text/plain", headers=headers | {"ce-id": "18"})
        await published(session, b"", "", headers=headers | {"ce-id": "19"})
        structured = EVENT | {"id": "20", "data_base64": base64.b64encode(b"\x00\xff").decode()}
        await published(session, structured, "application/cloudevents+json")
        image, text, nothing, encoded = [await subscription.next(timeout=5) for _ in range(4)]
        assert (image.payload, image["datacontenttype"]) == (b"\x00\xff", "image/png")
        assert text["data"] == "schön"
        assert (nothing.payload, "data" in nothing) == (None, False)
        assert encoded.payload == b"\x00\xff"


async def test_what_was_published_before_is_recognised():
    async with calling() as (broker, session):
        first = await (await published(session, EVENT, "application/cloudevents+json")).json()
        headers = {f"ce-{name}": value for name, value in EVENT.items()}
        again = await (await published(session, b"", "", headers=headers)).json()
        other = await (
            await published(session, EVENT | {"source": "/b"}, "application/cloudevents+json")
        ).json()
        assert (first["sequences"], again["sequences"], other["sequences"]) == ([1], [1], [2])
        key = {"Idempotency-Key": "k"}
        first = await (await published(session, [{"n": 1}, {"n": 2}], headers=key)).json()
        again = await (await published(session, [{"n": 1}, {"n": 2}, {"n": 3}], headers=key)).json()
        assert (first["sequences"], again["sequences"]) == ([3, 4], [3, 4, 5])
        await broker.crash()
        await broker.start()
        again = await (await published(session, EVENT, "application/cloudevents+json")).json()
        assert again["sequences"] == [1]


async def test_many_at_once_share_a_session_and_are_all_confirmed():
    async with calling() as (broker, session):
        answers = await asyncio.gather(*[published(session, {"n": n}) for n in range(200)])
        sequences = [(await answer.json())["sequences"][0] for answer in answers]
        assert sorted(sequences) == list(range(1, 201))
        assert list(broker.running.sessions) == ["http"]


async def test_without_a_journal_nothing_is_promised():
    async with calling(journal=False) as (_, session):
        assert (await (await published(session, {"n": 1})).json())["journaled"] is False


@pytest.mark.parametrize(
    ("body", "media_type", "headers", "status", "told"),
    [
        (b"{", "application/json", {}, 400, "InvalidNotification $"),
        (b'{"a": 1, "a": 2}', "application/json", {}, 400, "InvalidNotification $.….a"),
        (b'"text"', "application/json", {}, 400, "InvalidNotification $"),
        (b"\xff", "application/json", {}, 400, "InvalidNotification $"),
        (b"[" * 100_000, "application/json", {}, 400, "InvalidNotification $"),
        (b"{}", "application/json; charset=utf-16", {}, 400, "WrongParameter Content-Type"),
        (b"{}", "application/x-www-form-urlencoded", {}, 415, "WrongMediaType"),
        (b"<e/>", "application/cloudevents+xml", {}, 400, "InvalidNotification $"),
        (b"<!DOCTYPE e><e/>", "application/cloudevents+xml", {}, 400, "DocumentRefused"),
        (b"{}", "", {}, 415, "WrongMediaType"),
        (b"{}", "application/json", {"ce-id": "1"}, 400, "InvalidNotification $.specversion"),
        (b"{}", "application/json", {"ce-specversion": "0.3"}, 400, "InvalidNotification $.specversion"),
        (b"{}", "application/json", {"ce-id": "%ff"}, 400, "WrongParameter ce-id"),
        (b"{}", "application/json", {"ce-data": "x"}, 400, "WrongParameter ce-data"),
        (b"{}", "application/json", {"Content-Encoding": "gzip"}, 415, "EncodedBody"),
        (b"{}", "application/json", {"Idempotency-Key": "k" * 300}, 400, "WrongParameter Idempotency-Key"),
    ],
)
async def test_what_is_wrong_is_told(body, media_type, headers, status, told):
    error, _, path = told.partition(" ")
    async with calling() as (_, session):
        found = await problem(await published(session, body, media_type, headers), status, error)
        assert found.get("path", "") == path


async def test_parameters_are_looked_at():
    async with calling() as (_, session):
        found = await problem(await published(session, {}, priority="high"), 400, "WrongParameter")
        assert found["path"] == "priority"
        found = await problem(await published(session, {}, priority="10"), 400, "WrongParameter")
        assert found["path"] == "priority"
        await problem(await published(session, {}, lifetime="nan"), 400, "WrongParameter")
        await problem(await published(session, {}, urgency="1"), 400, "WrongParameter")
        both = await session.post("/events?id=", json={}, headers={"Idempotency-Key": "k"})
        assert (await problem(both, 400, "WrongParameter"))["path"] == "id"


async def test_limits():
    small = GatewaySettings(body=1_000, body_within=0.3)
    async with calling(gateway=small) as (_, session):
        found = await problem(await published(session, b" " * 1_001), 413, "BodyTooLarge")
        assert found["limit"] == 1_000

        async def parts():
            yield b"{"
            await asyncio.sleep(1)
            yield b"}"

        headers = {"Content-Type": "application/json"}
        answer = await session.post("/events", data=parts(), headers=headers)
        await problem(answer, 408, "BodyTooSlow")


async def test_advertisements_and_frames_are_as_on_every_other_way_in():
    async with calling(advertisements=True) as (_, session):
        await problem(await published(session, {"n": 1}), 403, "NotAdvertised")
    from palio.broker.settings import Limits

    async with calling(limits=Limits(frame=100_000)) as (_, session):
        found = await problem(await published(session, [{"t": "x" * 50_000}] * 3), 413, "FrameTooLarge")
        assert found["limit"] == 100_000
        assert (await published(session, {"n": 1})).status == 200


async def test_a_token_that_is_none_is_refused():
    async with calling() as (_, session):
        answer = await published(session, {"n": 1}, headers={"Authorization": "Basic eDp5"})
        await problem(answer, 401, "NotAuthenticated")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_paths_and_methods_that_are_not_there():
    async with calling() as (_, session):
        await problem(await session.get("/nothing"), 404, "NotFound")
        answer = await session.delete("/events")
        found = await problem(answer, 405, "WrongMethod")
        assert found["allowed"] == answer.headers["Allow"]


async def test_pages_of_other_places_may_not_call_unless_they_are_named():
    allowed = GatewaySettings(origins=("https://app.example",))
    async with calling(gateway=allowed) as (broker, session):
        await problem(
            await published(session, {}, headers={"Origin": "https://evil.example"}), 403, "StrangeOrigin"
        )
        await problem(await published(session, {}, headers={"Origin": "null"}), 403, "StrangeOrigin")
        await problem(await published(session, {}, headers={"Host": "evil.example"}), 403, "StrangeHost")
        assert (await published(session, {}, headers={"Origin": "https://app.example"})).status == 200
        assert (await published(session, {}, headers={"Origin": broker.url})).status == 200
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await session.ws_connect("/palio", headers={"Origin": "https://evil.example"})
        assert caught.value.status == 403
