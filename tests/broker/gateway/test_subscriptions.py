"""Subscriptions as resources: made once, shown without secrets, pushed to webhooks, there after a restart."""

import asyncio
import errno
import json
import os

import pytest

import palio
from palio.broker.gateway.definitions import (
    FILE,
    Definition,
    FileKeeper,
    StoredDefinition,
    UnreadableDefinitions,
)
from palio.broker.gateway.settings import GatewaySettings
from palio.protocol.durable.retry import Retry
from tests.broker.gateway.calling import LOCAL, Webhook, calling, problem, streaming

EVENT = {"specversion": "1.0", "id": "17", "source": "/shop", "type": "order.created", "subject": "Siena €"}


def wish(hook, **more):
    return {"id": "orders", "filters": [{"prefix": {"type": "order."}}], "sink": hook.url + "/in"} | more


async def post_event(session, **more):
    headers = {"Content-Type": "application/cloudevents+json"}
    return await session.post("/events", json=EVENT | more, headers=headers)


async def called(hook):
    return await asyncio.wait_for(hook.requests.get(), 10)


async def until_status(session, id, check):
    while True:
        shown = await (await session.get(f"/subscriptions/{id}")).json()
        if check(shown["status"]):
            return shown["status"]
        await asyncio.sleep(0.02)


async def test_from_wish_to_webhook():
    async with calling() as (_, session), Webhook() as hook:
        made = await session.post("/subscriptions", json=wish(hook))
        assert made.status == 201
        assert made.headers["Location"] == "/subscriptions/orders"
        shown = await made.json()
        assert shown["filter"] == 'type starts with "order."'
        assert (await (await session.get("/subscriptions/orders")).json())["sink"] == hook.url + "/in"
        await post_event(session, type="other")
        await post_event(session, id="18", data={"price": 5})
        headers, body = await called(hook)
        assert (headers["ce-id"], headers["ce-type"], headers["ce-source"]) == ("18", "order.created", "/shop")
        assert headers["ce-subject"] == "Siena%20%E2%82%AC"
        assert (headers["Content-Type"], json.loads(body)) == ("application/json", {"price": 5})
        assert hook.asked[0]["WebHook-Request-Origin"] == "broker"
        status = await until_status(session, "orders", lambda status: status["pushed"] == 1)
        assert status == {"state": "pushing", "pushed": 1, "failed": {}, "problem": None}


async def test_structured_with_headers_and_a_secret_that_is_never_shown():
    async with calling() as (_, session), Webhook() as hook:
        secret = {"accesstoken": "hush-hush"}
        more = {"config": {"contentmode": "structured", "in_flight": 1}, "sinkcredential": secret}
        more |= {"protocolsettings": {"headers": {"X-Tenant": "siena"}}, "filters": [{"palio": "n > 0"}]}
        made = await session.post("/subscriptions", json=wish(hook, **more))
        assert made.status == 201
        assert "hush" not in await made.text()
        assert "hush" not in await (await session.get("/subscriptions")).text()
        await session.post("/events", json=[{"n": n} for n in range(20)])
        for n in range(1, 20):  # one at a time: in order
            headers, body = await called(hook)
            assert headers["Authorization"] == "Bearer hush-hush"
            assert headers["X-Tenant"] == "siena"
            assert palio.Notification.from_cloudevent(body)["data.n"] == n
        shown = await (await session.get("/subscriptions/orders")).json()
        again = await session.put("/subscriptions/orders", json=shown | {"filters": [{"palio": "n > 5"}]})
        assert again.status == 200, await again.text()
        await session.post("/events", json=[{"n": 3}, {"n": 6}])
        headers, body = await called(hook)
        assert (headers["Authorization"], json.loads(body)["data"]) == ("Bearer hush-hush", {"n": 6})


async def test_the_same_wish_twice_is_one_subscription():
    async with calling() as (_, session), Webhook() as hook:
        first = await session.post("/subscriptions", json=wish(hook))
        second = await session.post("/subscriptions", json=wish(hook))
        assert (first.status, second.status) == (201, 200)
        other = await session.post("/subscriptions", json=wish(hook, types=["order.x"]))
        assert (await problem(other, 409, "SubscriptionExists"))["id"] == "orders"
        unnamed = {"filters": [{"exact": {"type": "x"}}]}
        key = {"Idempotency-Key": "once"}
        made = [
            await (await session.post("/subscriptions", json=unnamed, headers=key)).json() for _ in range(2)
        ]
        assert made[0]["id"] == made[1]["id"]
        answers = await asyncio.gather(
            *[session.post("/subscriptions", json=unnamed | {"id": "q"}) for _ in range(8)]
        )
        assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
        assert len(await (await session.get("/subscriptions")).json()) == 3


async def test_many_that_are_made_and_ended_at_once_are_all_on_disk():
    async with calling() as (broker, session):
        wishes = [{"id": f"s{n}"} for n in range(24)]
        await asyncio.gather(*[session.post("/subscriptions", json=wish) for wish in wishes])
        await asyncio.gather(*[session.delete(f"/subscriptions/s{n}") for n in range(0, 24, 2)])
        expected = sorted(f"s{n}" for n in range(1, 24, 2))
        assert sorted(kept.definition.id for kept in broker.running.keeper().load()) == expected
        await broker.crash()
        await broker.start()
        assert sorted(one["id"] for one in await (await session.get("/subscriptions")).json()) == expected


async def test_a_broker_that_begins_anew_goes_on_pushing():
    async with calling() as (broker, session), Webhook() as hook:
        await session.post("/subscriptions", json=wish(hook))
        hook.status = 503
        await post_event(session)
        await called(hook)
        await broker.crash()
        hook.status = 200
        await broker.start()
        headers, _ = await called(hook)
        assert headers["ce-id"] == "17"
        await post_event(session, id="18")
        assert (await called(hook))[0]["ce-id"] == "18"


async def test_while_a_webhook_is_in_trouble_nothing_is_lost_and_nobody_is_flooded():
    async with calling() as (broker, session), Webhook() as hook:
        await session.post("/subscriptions", json=wish(hook))
        hook.status = 500
        for n in range(50):
            await post_event(session, id=str(n))
        status = await until_status(session, "orders", lambda status: status["failed"].get("500", 0) >= 10)
        assert status["state"] in ("trying again", "waiting", "pushing")
        assert status["problem"] == "The webhook answered with 500."
        assert hook.requests.qsize() <= 8 + 12
        hook.status = 200
        while not hook.requests.empty():
            hook.requests.get_nowait()
        seen = set()
        while len(seen) < 50:
            seen.add((await called(hook))[0]["ce-id"])
        durable = broker.running.router.durable.homes.subscriptions["orders"]
        await broker.until(lambda: not durable.outbox.deliveries)
        assert not durable.dead


async def test_what_a_webhook_never_takes_becomes_a_dead_letter():
    few = GatewaySettings(sinks=("127.0.0.1",), push_attempts=3, push_first_pause=0.02, push_longest_pause=0.05)
    async with calling(gateway=few) as (broker, session), Webhook() as hook:
        await session.post("/subscriptions", json=wish(hook))
        hook.status = 422
        await post_event(session)
        durable = broker.running.router.durable.homes.subscriptions["orders"]
        await broker.until(lambda: len(durable.dead) == 1)
        assert hook.requests.qsize() == 3
        ((_, failures),) = durable.dead.failures
        assert [str(one) for one in failures] == ["rejected: The webhook answered with 422."] * 3
        assert broker.running.gateway_statistics().pushes == {"422": 3}
        hook.status = 200
        await post_event(session, id="18")
        while (await called(hook))[0]["ce-id"] != "18":
            pass


async def test_attempts_and_pauses_are_those_of_the_definition():
    async with calling() as (broker, session), Webhook() as hook:
        config = {"attempts": 1, "first_pause": 60, "longest_pause": 300.5}
        made = await session.post("/subscriptions", json=wish(hook, config=config))
        assert (await made.json())["config"] == config
        durable = broker.running.router.durable.homes.subscriptions["orders"]
        assert durable.retry == Retry(attempts=1, first_pause=60.0, longest_pause=300.5)
        hook.status = 422
        await post_event(session)
        await broker.until(lambda: len(durable.dead) == 1)
        again = await session.put("/subscriptions/orders", json=wish(hook))
        assert again.status == 200
        assert durable.retry == Retry()  # as the broker says


async def test_a_webhook_that_is_gone_ends_its_subscription():
    async with calling() as (broker, session), Webhook() as hook:
        await session.post("/subscriptions", json=wish(hook))
        hook.status = 410
        await post_event(session)
        await broker.until(lambda: "orders" not in broker.running.router.durable.homes.subscriptions)
        while (await session.get("/subscriptions/orders")).status != 404:
            await asyncio.sleep(0.02)


async def test_redirects_are_not_followed():
    async with calling() as (_, session), Webhook() as hook:
        await session.post("/subscriptions", json=wish(hook))
        hook.status = 307
        await post_event(session)
        await until_status(session, "orders", lambda status: status["failed"].get("307"))
        assert hook.requests.qsize() <= 2


async def test_a_rate_is_kept_to():
    async with calling() as (_, session), Webhook() as hook:
        hook.rate = "600"  # one in a tenth of a second
        await session.post("/subscriptions", json=wish(hook))
        began = asyncio.get_running_loop().time()
        for n in range(6):
            await post_event(session, id=str(n))
        for _ in range(6):
            await called(hook)
        assert asyncio.get_running_loop().time() - began >= 0.4


async def test_a_webhook_has_to_agree():
    async with calling() as (_, session), Webhook() as hook:
        hook.allowed = None
        await problem(await session.post("/subscriptions", json=wish(hook)), 400, "SinkDeclined")
        hook.allowed = "other.example"
        await problem(await session.post("/subscriptions", json=wish(hook)), 400, "SinkDeclined")
        hook.allowed = "broker"
        assert (await session.post("/subscriptions", json=wish(hook))).status == 201
        hook.allowed = None
        await problem(await session.put("/subscriptions/orders", json=wish(hook)), 400, "SinkDeclined")
        closed = {"sink": "http://127.0.0.1:1/"}
        found = await problem(await session.post("/subscriptions", json=closed), 400, "SinkNotReached")
        assert found["sink"] == "http://127.0.0.1:1/"


async def test_without_a_sink_it_is_read_as_a_stream_or_by_any_client():
    async with calling() as (broker, session):
        made = await session.post("/subscriptions", json={"id": "desk", "filters": [{"palio": "n > 1"}]})
        assert made.status == 201
        await session.post("/events", json=[{"n": 1}, {"n": 2}])
        async with streaming(session, durable="desk") as stream:
            assert await stream.data() == {"n": 2}
        async with palio.connect(broker.address) as client:
            subscription = await client.subscribe(None, durable="desk")
            assert (await subscription.next(timeout=5))["n"] == 2


async def test_one_that_was_made_in_another_way_is_changed_and_ended_all_the_same():
    async with calling() as (broker, session):
        async with streaming(session, durable="desk", filter="n > 1"):
            pass
        wanted = {"id": "desk", "filters": [{"palio": "n > 5"}]}
        found = await problem(await session.post("/subscriptions", json=wanted), 409, "FilterDiffers")
        assert (found["present"], found["asked"]) == ("n > 1", "n > 5")
        changed = await session.put("/subscriptions/desk", json=wanted)
        assert (changed.status, (await changed.json())["filter"]) == (200, "n > 5")
        same = await session.post("/subscriptions", json=wanted)
        assert same.status == 200
        assert (await session.delete("/subscriptions/desk")).status == 204
        async with streaming(session, durable="desk", filter="n > 1"):
            pass
        assert (await session.delete("/subscriptions/desk")).status == 204
        assert not broker.running.router.durable.homes.subscriptions
        await problem(await session.delete("/subscriptions/desk"), 404, "UnknownSubscription")
        await problem(await session.put("/subscriptions/desk", json={}), 404, "UnknownSubscription")


async def test_one_is_paused_resumed_and_moved_however_it_was_made():
    async with calling() as (broker, session):
        async with streaming(session, durable="desk", filter="n >= 0"):
            pass
        paused = await session.post("/subscriptions/desk/pause")
        assert (paused.status, await paused.json()) == (200, {"id": "desk", "paused": True})
        shown = {"id": "desk", "protocol": "HTTP", "filter": "n >= 0", "paused": True}
        assert await (await session.get("/subscriptions/desk")).json() == shown
        assert await (await session.get("/subscriptions")).json() == [shown]
        await session.post("/events", json=[{"n": n} for n in range(4)])
        async with streaming(session, durable="desk") as stream:
            resumed = await session.post("/subscriptions/desk/resume")
            assert await resumed.json() == {"id": "desk", "paused": False}
            last = [await stream.next() for _ in range(4)][1]["id"]
        inside = broker.running.router.durable.homes.subscriptions["desk"]
        await broker.until(lambda: inside.taker is None)
        dry = await session.post("/subscriptions/desk/seek", json={"position": last, "dry": True})
        assert await dry.json() == {"id": "desk", "dropped": 2, "unread": False}
        moved = await session.post("/subscriptions/desk/seek", json={"position": last})
        assert (await moved.json())["dropped"] == 2
        async with streaming(session, durable="desk") as stream:
            assert [await stream.data() for _ in range(2)] == [{"n": 2}, {"n": 3}]
        await session.post("/subscriptions/desk/seek", json={"since": "all"})
        async with streaming(session, durable="desk") as stream:
            assert {(await stream.data())["n"] for _ in range(4)} == {0, 1, 2, 3}
        for wrong in (
            {},
            {"since": "all", "position": last},
            {"since": "soon"},
            {"position": "x"},
            {"to": 1},
            [],
        ):
            answer = await session.post("/subscriptions/desk/seek", json=wrong)
            await problem(answer, 400, "WrongParameter")
        await problem(await session.post("/subscriptions/nosuch/pause"), 404, "NotHome")
        await problem(await session.post("/subscriptions/nosuch/seek", json={"since": "all"}), 404, "NotHome")


async def test_ending_one_ends_what_waits_for_it():
    async with calling() as (broker, session), Webhook() as hook:
        await session.post("/subscriptions", json=wish(hook))
        hook.status = 500
        await post_event(session)
        await called(hook)
        assert (await session.delete("/subscriptions/orders")).status == 204
        await problem(await session.delete("/subscriptions/orders"), 404, "UnknownSubscription")
        assert "orders" not in broker.running.router.durable.homes.subscriptions
        hook.status = 200
        await session.post("/subscriptions", json=wish(hook))
        await post_event(session, id="18")
        while (await called(hook))[0]["ce-id"] != "18":
            pass


async def test_source_types_and_since():
    async with calling() as (_, session), Webhook() as hook:
        await post_event(session, id="0")
        more = {"source": "/shop", "types": ["order.created", "x"], "config": {"since": "all"}}
        shown = await (await session.post("/subscriptions", json=wish(hook, **more))).json()
        assert palio.Filter.parse(shown["filter"]) == palio.Filter.parse(
            'source = "/shop" and type in ("order.created", "x") and type starts with "order."'
        )
        assert (await called(hook))[0]["ce-id"] == "0"


@pytest.mark.parametrize(
    ("document", "error", "path"),
    [
        ([], "WrongParameter", "$"),
        ({"id": "../x"}, "WrongParameter", "$.id"),
        ({"id": "x" * 65}, "WrongParameter", "$.id"),
        ({"id": "orders\n"}, "WrongParameter", "$.id"),
        (
            {"protocolsettings": {"headers": {"X": "a\n"}}},
            "WrongParameter",
            "$.protocolsettings.headers[...]",
        ),
        ({"filter": "n > 5", "filters": {}}, "WrongParameter", "$.filters"),
        ({"filters": [{"soap": "a = 'b'"}]}, "UnknownDialect", "$.filters[0]"),
        ({"filters": [{"sql": 5}]}, "WrongExpression", "$.filters[0].sql"),
        ({"filters": [{"sql": "a = "}]}, "WrongDialectText", None),
        ({"filters": [{"sql": "a = 'b' AND a = 'c'"}]}, "ContradictoryFilter", None),
        ({"filters": [{"exact": {}}]}, "WrongExpression", "$.filters[0].exact"),
        ({"filters": [{"palio": "x > 1 and x < 0"}]}, "ContradictoryFilter", None),
        ({"filters": [{"exact": {"type": "a"}}], "types": ["b"]}, "ContradictoryFilter", None),
        ({"wish": 1}, "WrongParameter", "$"),
        ({"protocol": "KAFKA"}, "WrongParameter", "$.protocol"),
        ({"sink": "ftp://x/"}, "SinkNotAllowed", None),
        ({"sink": "http://u:p@example.com/"}, "SinkNotAllowed", None),
        ({"sink": "http:///x"}, "SinkNotAllowed", None),
        ({"sink": "x" * 3_000}, "WrongParameter", "$.sink"),
        ({"config": {"in_flight": 0}}, "WrongParameter", "$.config.in_flight"),
        ({"config": {"attempts": 0}}, "WrongParameter", "$.config.attempts"),
        ({"config": {"first_pause": -1}}, "WrongParameter", "$.config.first_pause"),
        ({"config": {"since": "soon"}}, "WrongParameter", "since"),
        (
            {"protocolsettings": {"headers": {"X": "a\r\nb"}}},
            "WrongParameter",
            "$.protocolsettings.headers[...]",
        ),
        (
            {"protocolsettings": {"headers": {"Host": "inside"}}},
            "WrongParameter",
            "$.protocolsettings.headers.Host",
        ),
        (
            {"protocolsettings": {"headers": {"content-length": "5"}}},
            "WrongParameter",
            "$.protocolsettings.headers.content-length",
        ),
    ],
)
async def test_what_is_wrong_is_told(document, error, path):
    async with calling() as (_, session):
        found = await problem(await session.post("/subscriptions", json=document), 400, error)
        assert found.get("path") == path


async def test_limits_and_what_is_not_there():
    few = GatewaySettings(subscriptions=2)
    async with calling(gateway=few) as (_, session):
        for id in ("a", "b"):
            assert (await session.post("/subscriptions", json={"id": id})).status == 201
        found = await problem(await session.post("/subscriptions", json={"id": "c"}), 429, "GatewayFull")
        assert found["limit"] == 2
        await problem(await session.get("/subscriptions/c"), 404, "UnknownSubscription")
        await problem(await session.put("/subscriptions/c", json={}), 404, "UnknownSubscription")
        await problem(await session.put("/subscriptions/a", json={"id": "b"}), 400, "WrongParameter")
        await problem(await session.put("/subscriptions/a", data=b"{}"), 415, "WrongMediaType")
    async with calling(journal=False) as (_, session):
        await problem(await session.post("/subscriptions", json={"id": "a"}), 501, "NoJournal")


def test_definitions_are_on_disk_and_for_nobody_else(tmp_path):
    keeper = FileKeeper(tmp_path / "data")
    assert keeper.load() == []
    kept = [
        StoredDefinition("anna", Definition(id="a", filters=[{"exact": {"type": "x"}}], sink="http://x/"), 5.0)
    ]
    keeper.save(kept)
    keeper.save([*kept, StoredDefinition("", Definition(id="b"))])
    assert keeper.load() == [*kept, StoredDefinition("", Definition(id="b"))]
    file = tmp_path / "data" / FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in file.parent.iterdir()] == [FILE]
    file.write_text("[{]")
    with pytest.raises(UnreadableDefinitions, match="Put a copy in its place"):
        keeper.load()


async def test_statistics_of_webhooks_are_metrics():
    async with calling(gateway=LOCAL) as (_, session), Webhook() as hook:
        await session.post("/subscriptions", json=wish(hook))
        await post_event(session)
        await until_status(session, "orders", lambda status: status["pushed"] == 1)
        text = await (await session.get("/metrics")).text()
        assert 'palio_pushes_total{broker="broker",result="taken"} 1.0' in text
        assert 'palio_http_subscriptions{broker="broker"} 1.0' in text
        assert 'palio_http_requests_total{broker="broker",route="/subscriptions",status="201"} 1.0' in text
        assert 'route="/subscriptions/{id}"' in text


class FullDisk:
    """While it is, no subscription can be written down."""

    def __init__(self, broker, monkeypatch) -> None:
        self.keeper = broker.running.keeper()
        self.patch = monkeypatch

    def __enter__(self) -> None:
        def save(kept):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        self.patch.setattr(self.keeper, "save", save)

    def __exit__(self, *_) -> None:
        self.patch.undo()


async def test_what_cannot_be_written_is_not_made_changed_or_ended(monkeypatch):
    async with calling() as (broker, session), Webhook() as hook:
        disk = FullDisk(broker, monkeypatch)
        subscriptions = broker.running.router.durable.homes.subscriptions
        with disk:
            found = await problem(await session.post("/subscriptions", json=wish(hook)), 503, "NotStored")
            assert found["reason"] == "No space left on device"
        await broker.until(lambda: not subscriptions)
        assert (await session.get("/subscriptions/orders")).status == 404
        assert (await session.post("/subscriptions", json=wish(hook))).status == 201
        with disk:
            other = wish(hook, filters=[{"exact": {"type": "other"}}])
            await problem(await session.put("/subscriptions/orders", json=other), 503, "NotStored")
        await broker.until(lambda: str(subscriptions["orders"].filter) == 'type starts with "order."')
        await post_event(session, id="18", type="other")
        await post_event(session, id="19")
        assert (await called(hook))[0]["ce-id"] == "19"
        with disk:
            await problem(await session.delete("/subscriptions/orders"), 503, "NotStored")
        await until_status(session, "orders", lambda status: status["state"] == "pushing")
        await post_event(session, id="20")
        assert (await called(hook))[0]["ce-id"] == "20"
        assert (await session.delete("/subscriptions/orders")).status == 204
        await broker.until(lambda: not subscriptions)
        assert (await session.get("/subscriptions")).status == 200


def test_a_subscription_of_an_earlier_version_that_cannot_be_read_is_put_aside(tmp_path, caplog):
    keeper = FileKeeper(tmp_path)
    keeper.save([StoredDefinition("desk", Definition(id="good"))])
    written = json.loads((tmp_path / FILE).read_text())
    wrong = {"owner": "desk", "definition": {"id": "orders\n"}, "rate": None}
    (tmp_path / FILE).write_text(json.dumps([*written, wrong]))
    for _ in range(2):
        assert [one.definition.id for one in keeper.load()] == ["good"]
    aside = tmp_path / "subscriptions.aside.jsonl"
    assert [json.loads(line) for line in aside.read_text().splitlines()] == [wrong]
    assert aside.stat().st_mode & 0o777 == 0o600
    assert "subscriptions.aside.jsonl" in caplog.text


async def test_a_filter_may_be_there_with_its_dialect():
    async with calling() as (_, session):
        wished = {"id": "desk", "filters": [{"palio": "n > 5"}], "filter": "shop/+", "dialect": "mqtt"}
        made = await session.post("/subscriptions", json=wished)
        assert made.status == 201, await made.text()
        shown = await made.json()
        # It is kept in our own language, and what is shown can be put again as it is.
        assert shown["filters"] == [{"palio": "n > 5"}, {"palio": 'topic matches "shop/*"'}]
        both = palio.Filter.parse('n > 5 and topic matches "shop/*"')
        assert palio.Filter.parse(shown["filter"]) == both
        assert "dialect" not in shown
        assert (await session.put("/subscriptions/desk", json=shown)).status == 200
        again = await (await session.get("/subscriptions/desk")).json()
        assert again["filters"] == shown["filters"]
        pattern = {"filter": {"n": [{"exists": True}]}, "dialect": "eventbridge"}
        changed = await (await session.put("/subscriptions/desk", json=pattern)).json()
        assert changed["filter"] == "exists(n)"


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        ({"filter": "a/b#", "dialect": "mqtt"}, "WrongDialectText"),
        ({"filter": "a", "dialect": "klingon"}, "UnknownDialect"),
        ({"filter": "a", "dialect": 5}, "WrongParameter"),
        ({"dialect": "mqtt"}, "WrongParameter"),
        ({"filter": 5, "dialect": "mqtt"}, "WrongParameter"),
        ({"filter": "a/+?topic = 'b'", "dialect": "mqtt"}, "ContradictoryFilter"),
        ({"filter": "a/+", "dialect": "mqtt", "filters": 5}, "WrongParameter"),
    ],
)
async def test_a_filter_with_its_dialect_may_be_wrong(wish, error):
    async with calling() as (_, session):
        found = await problem(await session.post("/subscriptions", json=wish), 400, error)
        if error == "WrongDialectText":
            assert (found["column"], found["text"], found["dialect"]) == (4, "a/b#", "mqtt")
        if error == "UnknownDialect":
            assert (found["path"], found["known"][0]) == ("$.dialect", "palio")
        if error == "ContradictoryFilter":
            assert found["reason"] == "the conditions on `topic` exclude each other."


@pytest.mark.parametrize("filter", [None, 5, True])
async def test_a_filter_that_is_none_is_refused_although_it_would_be_ignored(filter):
    async with calling() as (_, session):
        await problem(await session.post("/subscriptions", json={"filter": filter}), 400, "WrongParameter")
