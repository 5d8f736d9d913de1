"""The operation log of a broker: each request leaves a row, by any binding, and whatever came of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

import palio
from palio import testing
from palio.broker import operations
from palio.broker.operations import OperationSettings
from palio.protocol.inquiries import Inspect
from palio.protocol.vocabulary import FROM_CLIENTS
from palio.routing.durable.effects import LoggedOperation
from palio.store.operation_reading import OperationQuery
from tests.broker.documents.cards import PRICE, card, know_cards
from tests.broker.gateway.calling import calling
from tests.client.conftest import pytest_pyfunc_call
from tests.security.world import World

__all__ = ["pytest_pyfunc_call"]


def rows(broker: testing.Broker) -> list[LoggedOperation]:
    """All rows that there are on disk."""
    store = broker.running.store
    assert store is not None
    return list(store.operations(OperationQuery(), after=0, limit=10_000).rows)


async def until_logged(broker: testing.Broker, count: int) -> list[LoggedOperation]:
    async with asyncio.timeout(10):
        while len(rows(broker)) < count:
            await asyncio.sleep(0.01)
    return rows(broker)


def told(found: list[LoggedOperation]) -> list[tuple[str, str, str]]:
    return [(one.kind, one.subject, one.result) for one in found]


async def test_each_request_leaves_a_row_with_what_came_of_it():
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address, name="desk") as client:
        subscription = await client.subscribe("x > 1")
        await client.publish([{"x": 1}, {"x": 2}, {"x": 3}])
        with pytest.raises(palio.PalioError):
            await client.subscribe("x >")  # which the client itself refuses: nobody has asked the broker
        durable = await client.subscribe("x > 2", durable="d")
        await subscription.unsubscribe()
        with pytest.raises(palio.PalioError):
            await client.inspect("nonsense")
        await client.publish({"x": 4}, id="once")
        await client.publish({"x": 4}, id="once")
        await client.trace({"x": 5})
        found = await until_logged(broker, 9)
        assert durable is not None
    assert told(found) == [
        ("greet", found[0].subject, "done"),
        ("subscribe", "s1", "done"),
        ("publish", "", "done"),
        ("attach", "d", "done"),
        ("release", "s1", "done"),
        ("inspect", "nonsense", "done"),
        ("publish", "", "done"),
        ("publish", "", "done"),
        ("trace", "", "done"),
    ]
    assert {one.session for one in found} == {"desk"}
    assert {one.binding for one in found} == {"palio"}
    published = [(one.sequence, one.events) for one in found if one.kind == "publish"]
    assert published == [(1, 3), (4, 1), (4, 0)]  # what was known already was given nothing new
    assert all(one.bytes > 20 for one in found[1:])
    assert found == sorted(found, key=lambda one: one.time)


async def test_a_document_leaves_a_row_with_its_sequence_and_one_that_is_refused_with_the_reason():
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address, name="desk") as client:
        await know_cards(broker.running)
        for content in (card("a"), b"<card", card("b")):
            with suppress(palio.RequestRefused):
                await client.publish_document(content)
        await client.subscribe(f'family card where xpath("{PRICE}") < 10')
        found = await until_logged(broker, 6)
    documents = [one for one in found if one.kind == "publishdocuments"]
    assert [(one.result, one.sequence, one.events) for one in documents] == [
        ("done", 1, 1),
        ("refused", 0, 0),
        ("done", 2, 1),
    ]
    assert "refused at line 1" in documents[1].reason
    assert [one.subject for one in found if one.kind == "invoke"] == ["filters.read"]


async def test_what_is_confirmed_has_its_row_after_a_crash():
    broker = testing.broker(journal=True)
    async with broker as address:
        client = palio.connect(address, name="desk", reconnect=False)
        await client
        for number in range(20):
            await client.publish({"x": number})
        await broker.crash()
        await broker.start()
        published = [one for one in rows(broker) if one.kind == "publish"]
        assert [one.sequence for one in published] == list(range(1, 21))
        assert [one.number for one in rows(broker)] == list(range(1, len(rows(broker)) + 1))
        await client.close()


async def test_a_large_request_names_all_its_sequences(monkeypatch):
    monkeypatch.setattr("palio.broker.intake.AT_ONCE_ALONE", 20_000)
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address, name="desk") as client:
        await client.publish([{"x": number, "text": "a" * 300} for number in range(500)])
        published = [one for one in rows(broker) if one.kind == "publish"]
    assert len(published) > 1
    assert [one.sequence for one in published] == [
        1 + sum(one.events for one in published[:at]) for at in range(len(published))
    ]
    assert sum(one.events for one in published) == 500
    assert sum(one.bytes for one in published) > 500 * 300
    assert 0 in {one.bytes for one in published}  # of a message, the row of its first part says how many it had


async def test_what_is_not_allowed_is_in_it_too(tmp_path):
    world = World(tmp_path)
    world.add("anna", "x = 1", "x = 1")
    broker = world.broker(journal=True)
    async with broker as address:
        async with world.connect(address, "anna", name="desk") as anna:
            with pytest.raises(palio.PalioError):
                await anna.publish({"x": 2})
            with pytest.raises(palio.PalioError):
                await anna.inspect("stats")
            with pytest.raises(palio.PalioError):
                await anna.operations()
            await anna.publish({"x": 1})
        with pytest.raises(palio.PalioError):
            await palio.connect(address, token="palio_nonsense", reconnect=False)
        async with world.connect(address, "admin", name="looking") as admin:
            await until_logged(broker, 7)
            found = (await admin.operations(after=0))["operations"]
            refused = (await admin.operations(results=["refused"], principal="anna"))["operations"]
            with pytest.raises(palio.PalioError, match="cannot be asked that"):
                await admin.operations(nonsense=1)
    assert [(one["kind"], one["result"]) for one in found[:5]] == [
        ("greet", "done"),
        ("publish", "refused"),
        ("inspect", "refused"),
        ("invoke", "refused"),
        ("publish", "done"),
    ]
    assert {(one["principal"], one["session"]) for one in found[:5]} == {("anna", "anna/desk")}
    assert found[1]["reason"].startswith("'anna' may not publish this") or "anna" in found[1]["reason"]
    assert [one["kind"] for one in refused] == ["publish", "inspect", "invoke"]
    [stranger] = [one for one in found if one["kind"] == "greet" and one["result"] == "refused"]
    assert stranger["principal"] == ""
    assert stranger["reason"]


async def test_requests_by_http_leave_one_row_each():
    async with calling() as (broker, session):
        await session.post("/events", json={"x": 1})
        await session.post("/events", data=b"{", headers={"content-type": "application/json"})
        await session.get("/nothing")
        await session.get("/health")
        await until_logged(broker, 4)
        found = rows(broker)
        assert told(found) == [
            ("publish", "", "done"),
            ("http", "POST /events", "refused"),
            ("http", "GET /nothing", "refused"),
            ("http", "GET /health", "done"),
        ]
        assert {one.binding for one in found} == {"http"}
        assert found[1].bytes == 1
        assert "not JSON" in found[1].reason
        answer = await (await session.get("/operations", params={"kind": "publish,http", "limit": 2})).json()
        assert [one["kind"] for one in answer["operations"]] == ["http", "http"]
        refused = await (await session.get("/operations?result=refused&since=1h&after=0")).json()
        assert [one["number"] for one in refused["operations"]] == [2, 3]
        for wrong in ("limit=0", "before=null", "result=odd", "since=yesterday", "nonsense=1"):
            assert (await session.get(f"/operations?{wrong}")).status == 400


async def test_a_websocket_is_told_apart():
    async with calling() as (broker, _session):
        async with palio.connect(broker.url.replace("http", "ws"), name="desk") as client:
            await client.publish({"x": 1})
            found = await until_logged(broker, 2)
        assert [(one.binding, one.kind) for one in found] == [("websocket", "greet"), ("websocket", "publish")]


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        ("all", ["greet", "subscribe", "inspect", "publish", "http", "http"]),
        ("changes", ["greet", "subscribe", "publish", "http"]),
        ("refused", ["http"]),
        ("off", []),
    ],
)
async def test_the_level_says_what_is_in_it(level, kinds):
    async with calling(operations=OperationSettings(level=level)) as (broker, session):
        async with palio.connect(broker.address, name="desk") as client:
            await client.subscribe("x > 1")
            await client.inspect("stats")
            await client.publish({"x": 1})
        await session.get("/health")
        await session.get("/nothing")
        await until_logged(broker, len(kinds))
        assert [one.kind for one in rows(broker)] == kinds


async def test_who_follows_waits_for_the_next_row():
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address, name="a") as a, palio.connect(address, name="b") as b:
        await until_logged(broker, 2)
        last = rows(broker)[-1].number
        waiting = asyncio.create_task(a.operations(after=last, kinds=["publish"], wait=10.0))
        await b.publish({"x": 1})
        assert [one["session"] for one in (await waiting)["operations"]] == ["b"]


async def test_what_a_session_leaves_open_is_unanswered_and_floods_are_counted(monkeypatch):
    monkeypatch.setattr(operations, "MOST_WAITING", 5)
    monkeypatch.setattr(operations, "MOST_OPEN", 3)
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address, name="desk") as client:
        await client.subscribe("x > 1")
        await until_logged(broker, 2)
        log, connection = broker.running.operations, broker.running.sessions["desk"]
        for number in range(1_000, 1_005):
            log.begin(Inspect(number, "stats"), connection, 1)
        assert len(log._open["desk"]) == 3
        for _ in range(20):
            log.note(connection, "greet")
        found = await until_logged(broker, 8)
        assert [one.result for one in found[2:4]] == ["unanswered", "unanswered"]
        assert (found[-1].kind, found[-1].events) == ("left out", 17)
        log.gone("desk")
        assert "desk" not in log._open


def test_every_kind_of_request_is_known():
    """What is neither logged nor known to go on with deliveries would be left out without a word."""
    kinds: set[Any] = set(FROM_CLIENTS) - operations._LOGGED
    assert {kind.__name__ for kind in kinds} == {"Acknowledged", "Rejected", "GoOn", "Respond"}
