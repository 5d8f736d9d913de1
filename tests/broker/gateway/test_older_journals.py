"""Streams of journals that came back older: who comes back gets what is new, and hears what may be missing."""

import json

import pytest

import palio.testing
from palio.broker.gateway.stream_request import (
    read_lineages,
    read_position,
    read_time,
    write_event,
    write_position,
)
from palio.protocol.durable.lineage import Incarnation
from tests.broker.gateway.calling import calling, streaming
from tests.client.older import come_back, disk_of


async def publish(session, *numbers):
    async with session.post("/events", json=[{"n": n} for n in numbers]) as answer:
        assert answer.status == 200


async def read(stream, count):
    """So many events, and the gaps that are told among them."""
    events, gaps, last = [], [], ""
    while len(events) < count:
        fields = await stream.next()
        if fields.get("event") == "gap":
            gaps.append(json.loads(fields["data"]))
        else:
            events.append(json.loads(fields["data"])["n"])
            last = fields["id"]
    return events, gaps, last


@pytest.mark.parametrize("lives", [1, 3])
async def test_a_stream_goes_on_where_the_journal_was_the_same(lives):
    async with calling() as (broker, session):
        await publish(session, 1, 2, 3)
        copy = disk_of(broker)
        async with streaming(session, since="all") as stream:
            await publish(session, 4, 5)
            events, _, last = await read(stream, 5)
        assert events == [1, 2, 3, 4, 5]
        await come_back(broker, copy)
        await publish(session, 101, 102, 103)  # 4, 5 and 6
        for life in range(1, lives):
            await broker.crash()
            await broker.start()
            await publish(session, 103 + life)
        async with streaming(session, last, filter="n > 0") as stream:
            events, gaps, last = await read(stream, 2 + lives)
            assert events == list(range(101, 103 + lives))
            if not gaps:
                gaps = [json.loads((await stream.next())["data"])]
        ((gap),) = gaps
        assert (gap["origin"], gap["after"], gap["upto"]) == ("broker", 5, None)
        async with streaming(session, last, filter="n > 0") as stream:
            await publish(session, 200)
            assert (await read(stream, 1))[:2] == ([200], [])


async def test_whoever_was_in_a_life_that_nobody_knows_any_more_goes_on_where_it_began():
    async with calling() as (broker, session):
        await publish(session, 1, 2, 3)
        copy = disk_of(broker)
        await broker.crash()
        await broker.start()  # of which the copy knows nothing
        async with streaming(session) as stream:
            await publish(session, 4, 5)
            _, _, last = await read(stream, 2)
        await come_back(broker, copy)
        await publish(session, 101, 102, 103)
        async with streaming(session, last, filter="n > 0") as stream:
            assert (await read(stream, 3))[0] == [101, 102, 103]


async def test_a_position_beyond_the_head_is_one_of_a_journal_that_is_gone():
    async with calling() as (broker, session):
        await publish(session, 1, 2, 3)
        await broker.crash()
        await broker.start()
        await publish(session, 101, 102)
        async with streaming(session, "broker/9", filter="n > 0") as stream:
            events, gaps, _ = await read(stream, 2)
            assert events == [101, 102]
            if not gaps:
                gaps = [json.loads((await stream.next())["data"])]
        assert [(gap["origin"], gap["after"], gap["upto"]) for gap in gaps] == [("broker", 9, None)]


async def test_a_durable_stream_does_not_take_new_events_for_those_that_were_received():
    async with calling() as (broker, session):
        await publish(session, 1)
        copy = disk_of(broker)
        async with streaming(session, durable="desk", filter="n > 0", since="all") as stream:
            await publish(session, 2, 3)
            _, _, last = await read(stream, 3)
        await come_back(broker, copy)  # also the subscription is gone
        await publish(session, 101, 102)
        async with streaming(session, last, durable="desk", filter="n > 0", since="all") as stream:
            assert (await read(stream, 3))[0] == [1, 101, 102]


async def test_the_id_of_a_neighbours_event_says_in_which_life_it_was():
    async with palio.testing.network([("a", "b")], journal=True, http=True) as network:
        one, two = network.brokers.values()
        async with palio.connect(two.address) as client, calling_at(one) as session:
            await client.subscribe("n > 0", ready="network")
            async with streaming(session) as stream:
                await two.until(lambda: two.running.router.interest() or True)
                subscriber = await palio.connect(one.address)
                await subscriber.subscribe("n > 0", ready="network")
                await client.publish({"n": 1})
                _, _, last = await read(stream, 1)
                await subscriber.close()
            (lineage,) = read_lineages(last).values()
            listed = await client.journals()
            (there,) = [item.lineage for item in listed.journals if item.origin == two.running.settings.name]
            assert lineage == there[-1:]


def calling_at(broker):
    import aiohttp

    return aiohttp.ClientSession(broker.url)


def test_ids_say_who_numbered_and_ids_of_before_are_read():
    lineage = (Incarnation(17, "x", 0), Incarnation(255, "ab12", 10), Incarnation(256, "y", 20))
    text = write_position({"a@b,c": 12, "d": 3}, {"a@b,c": lineage})
    assert text == "a%40b%2Cc/12@ff.ab12.10,d/3"
    assert read_position(text) == {"a@b,c": 12, "d": 3}
    assert read_lineages(text) == {"a@b,c": (Incarnation(255, "ab12", 10),)}
    assert read_lineages("a/12@,b/3@x,c/4@t12.5") == {}
    for time in (0.0, 12.5, 1.7e9 + 1 / 3, 1e16, 1.5e-5):
        text = write_event("a", 17, time)
        assert (read_position(text), read_time(text)) == ({"a": 17}, time)
    assert read_time("a/17") is None
