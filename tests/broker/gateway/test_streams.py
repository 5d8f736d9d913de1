"""Event streams: what comes, how one goes on after a break, and what becomes of slow readers."""

import asyncio
import json

import aiohttp
import pytest

import palio
from palio.broker.gateway import streams
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.settings import Limits
from palio.protocol.durable.lineage import JournalGap
from tests.broker.gateway.calling import calling, problem, streaming

EVENT = {"specversion": "1.0", "id": "17", "source": "/shop", "type": "order", "time": "2026-01-31T12:00:00Z"}


async def test_events_come_as_they_were_published():
    plain = {"symbol": "ACME", "order": {"id": 7, "lines": [{"sku": "a"}]}, "tags": ["a", "b"]}
    async with calling() as (broker, session):
        async with streaming(session, filter="exists(symbol) or exists(type)") as stream:
            await session.post("/events", json=plain)
            assert await stream.data() == plain
            event = EVENT | {"data": {"a": {"b": 1}}}
            await session.post("/events", json=event, headers={"Content-Type": "application/cloudevents+json"})
            assert await stream.data() == event
            assert broker.running.gateway_statistics().streams == 1
        await broker.until(lambda: not [name for name in broker.running.sessions if name.startswith("stream")])


async def test_everything_can_come_as_cloudevents():
    async with calling() as (_, session), streaming(session, format="cloudevents") as stream:
        await session.post("/events", json={"symbol": "ACME"}, params={"id": "x-1"})
        event = await stream.data()
        assert (event["id"], event["source"], event["type"]) == ("x-1", "/palio/broker", "palio.event")
        assert event["data"] == {"symbol": "ACME"}
        assert palio.Notification.from_cloudevent(event)["data.symbol"] == "ACME"


async def test_a_reader_of_a_durable_stream_is_told_what_may_be_missing():
    async with calling() as (broker, session):
        async with streaming(session, filter="n >= 0", durable="desk"):
            await broker.until(lambda: broker.running.router.durable.homes.subscriptions)
        (kept,) = broker.running.router.durable.homes.subscriptions.values()
        kept.gaps = (JournalGap("siena", 17, None, 12.5),)
        async with streaming(session, durable="desk") as stream:
            fields = await stream.next()
            assert fields["event"] == "gap"
            gap = {"origin": "siena", "after": 17, "upto": None, "noticed": 12.5, "what": "older"}
            assert json.loads(fields["data"]) == gap


async def test_the_filter_is_the_only_thing_that_selects():
    async with calling() as (_, session), streaming(session, filter="price > 100") as stream:
        await session.post("/events", json=[{"price": price} for price in (99, 101, 100, 102)])
        assert [(await stream.data())["price"] for _ in range(2)] == [101, 102]


async def test_a_filter_may_be_in_another_language():
    async with calling() as (_, session), streaming(session, filter="a/+?n>5", dialect="mqtt") as stream:
        await session.post("/events", json=[{"topic": "a/b", "n": n} for n in (5, 6)])
        assert (await stream.data())["n"] == 6


async def test_whoever_comes_back_goes_on_where_it_was():
    async with calling() as (_, session):
        async with streaming(session, filter="n >= 0") as stream:
            await session.post("/events", json=[{"n": 0}, {"n": 1}])
            assert json.loads((await stream.next())["data"]) == {"n": 0}
            last = (await stream.next())["id"]
            assert last.startswith("broker/2@")
        await session.post("/events", json=[{"n": 2}, {"m": 3}, {"n": 4}])
        async with streaming(session, last, filter="n >= 0") as stream:
            assert [await stream.data() for _ in range(2)] == [{"n": 2}, {"n": 4}]
            await session.post("/events", json={"n": 5})
            fields = await stream.next()
            assert json.loads(fields["data"]) == {"n": 5}
            assert fields["id"].startswith("broker/6@")
        async with streaming(session, filter="n >= 0", last="broker:5") as stream:
            assert await stream.data() == {"n": 5}


async def test_a_stream_can_begin_in_the_past():
    async with calling() as (broker, session):
        await session.post("/events", json=[{"n": n} for n in range(1_000)])
        async with streaming(session, since="all") as stream:
            assert [(await stream.data())["n"] for _ in range(1_000)] == list(range(1_000))
            await session.post("/events", json={"n": 1_000})
            assert await stream.data() == {"n": 1_000}
        await broker.until(lambda: not broker.running.router.durable.homes.subscriptions)
        async with streaming(session, since="2020-01-01T00:00:00Z", filter="n = 3") as stream:
            assert await stream.data() == {"n": 3}


async def test_a_durable_stream_is_acknowledged_by_coming_back():
    async with calling() as (broker, session):
        async with streaming(session, durable="desk", filter="n >= 0") as stream:
            await session.post("/events", json=[{"n": n} for n in range(5)])
            received = [await stream.next() for _ in range(5)]
        durable = broker.running.router.durable.homes.subscriptions["desk"]
        await broker.until(lambda: durable.taker is None)
        await session.post("/events", json={"n": 5})
        async with streaming(session, received[2]["id"], durable="desk") as stream:
            assert [(await stream.data())["n"] for _ in range(3)] == [3, 4, 5]
            await broker.until(lambda: len(durable.outbox) == 3)
        await broker.until(lambda: durable.taker is None)
        async with streaming(session, durable="desk") as stream:  # nothing was said: all of it comes again
            assert [(await stream.data())["n"] for _ in range(3)] == [3, 4, 5]
        await broker.crash()
        await broker.start()
        async with streaming(
            session, "broker:4", durable="desk"
        ) as stream:  # of a stream that nobody remembers
            assert [(await stream.data())["n"] for _ in range(2)] == [4, 5]


async def test_a_durable_stream_with_another_filter_is_refused_or_changes_it():
    async with calling() as (_, session):
        async with streaming(session, durable="desk", filter="n > 1"):
            pass
        other = {"durable": "desk", "filter": "n < 1"}
        found = await problem(await session.get("/events", params=other), 409, "FilterDiffers")
        assert (found["name"], found["present"], found["asked"]) == ("desk", "n > 1", "n < 1")
        async with streaming(session, durable="desk", filter="n > 1 or n > 2"):
            pass  # which means the same
        async with streaming(session, change="true", **other) as stream:
            await session.post("/events", json=[{"n": 2}, {"n": 0}])
            assert await stream.data() == {"n": 0}
        async with streaming(session, change="true", **other), streaming(session, durable="desk"):
            pass
        for wrong in ({"change": "true"}, {"change": "true", "durable": "desk"}, {"change": "yes"}):
            await problem(await session.get("/events", params=wrong), 400, "WrongParameter")


async def test_a_durable_stream_ends_for_its_reader_to_come_back(monkeypatch):
    monkeypatch.setattr(streams, "WINDOW", 10)
    async with calling() as (_, session):
        seen, last = [], None
        async with streaming(session, durable="desk"):
            await session.post("/events", json=[{"n": n} for n in range(35)])
        while len(seen) < 35:
            async with streaming(session, last, durable="desk") as stream:
                try:
                    for _ in range(10):
                        fields = await stream.next()
                        seen.append(json.loads(fields["data"])["n"])
                        last = fields["id"]
                        if len(seen) == 35:
                            break
                    else:
                        assert await stream.response.content.read() == b""  # it has ended
                except asyncio.IncompleteReadError:
                    pass
        assert seen == list(range(35))


async def test_the_latest_reader_takes_over():
    async with (
        calling() as (_, session),
        streaming(session, durable="desk") as first,
        streaming(session, durable="desk"),
    ):
        fields = await first.next()
        assert (fields["event"], json.loads(fields["data"])["error"]) == ("end", "TakenOver")


async def test_signs_of_life():
    often = GatewaySettings(keep_alive=0.05)
    async with calling(gateway=often) as (_, session), streaming(session) as stream:
        for _ in range(3):
            assert await stream.response.content.readuntil(b"\n\n") == b": still here\n\n"


async def test_a_stream_can_end_when_nothing_comes_any_more():
    async with calling(gateway=GatewaySettings(keep_alive=0.1)) as (_, session):
        await session.post("/events", json=[{"n": 1}, {"n": 2}])
        async with session.get("/events", params={"since": "all", "wait": "0.25"}) as answer:
            text = await answer.text()
        assert text.count("data: ") == 2
        assert text.count(": still here") == 2


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"filter": "price >"}, "FilterSyntaxError"),
        ({"filter": "x > 1 and x < 0"}, "ContradictoryFilter"),
        ({"filter": "or".join(["x"] * 3)}, None),
        ({"since": "yesterday"}, "WrongParameter"),
        ({"since": "2026-01-01T00:00:00"}, "WrongParameter"),
        ({"format": "xml"}, "WrongParameter"),
        ({"dialect": "klingon", "filter": "a"}, "UnknownDialect"),
        ({"dialect": "mqtt", "filter": "a/b#"}, "WrongDialectText"),
        ({"durable": ""}, "WrongParameter"),
        ({"durable": "x" * 256}, "WrongParameter"),
        ({"last": "17"}, "WrongParameter"),
        ({"wait": "-1"}, "WrongParameter"),
        ({"wait": "nan"}, "WrongParameter"),
        ({"last": "a:-1"}, "WrongParameter"),
        ({"filters": "x"}, "WrongParameter"),
    ],
)
async def test_what_is_wrong_is_told(parameters, error):
    async with calling() as (_, session), session.get("/events", params=parameters) as answer:
        if error is None:
            assert answer.status == 200
            return
        found = await problem(answer, 400, error)
        if error == "FilterSyntaxError":
            assert (found["column"], found["text"]) == (8, "price >")


async def test_without_a_journal_there_is_no_past():
    async with calling(journal=False) as (_, session):
        await problem(await session.get("/events", params={"since": "all"}), 501, "NoJournal")
        await problem(await session.get("/events", params={"durable": "desk"}), 501, "NoJournal")
        async with streaming(session) as stream:
            await session.post("/events", json={"n": 1})
            assert "id" not in await stream.next()


async def test_a_reader_that_is_slow_loses_events_and_is_told_how_many():
    limits = Limits(outgoing=200_000)
    async with (
        calling(limits=limits) as (broker, _),
        palio.connect(broker.address) as client,
        aiohttp.ClientSession(broker.url, read_bufsize=1_024) as slow,
        streaming(slow) as stream,
    ):
        for n in range(4_000):
            client.publish_nowait({"n": n, "text": "x" * 4_000})
            if n % 50 == 0:
                await client.flush(arrived=True)
        await client.flush(arrived=True)
        [taken] = [one for name, one in broker.running.sessions.items() if name.startswith("stream")]
        waiting = taken.outgoing.statistics()
        assert waiting.waiting_bytes <= 250_000
        assert sum(waiting.dropped.values()) > 1_000
        got, lost = 0, 0
        while got + lost < 4_000:
            fields = await stream.next()
            if fields.get("event") == "lost":
                lost += json.loads(fields["data"])["count"]
            else:
                got += 1
        assert got + lost == 4_000


async def test_a_reader_that_never_reads_is_cut_off():
    async with calling(gateway=GatewaySettings(stalled=0.3)) as (broker, session):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(broker.url.rpartition(":")[2]), limit=1_024
        )
        writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b": subscribed")
        for _ in range(40):
            await session.post("/events", json=[{"text": "x" * 50_000}] * 5)
        while not broker.running.gateway_statistics().streams_cut_off:
            await asyncio.sleep(0.05)
        await broker.until(lambda: not [name for name in broker.running.sessions if name.startswith("stream")])
        writer.close()
