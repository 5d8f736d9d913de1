"""Journals that came back older, as clients see them: positions that they kept, gaps that they are told of."""

import asyncio

import palio
import palio.testing
from palio.protocol.durable.subscriptions import GapNoticed
from palio.protocol.greeting import Greet
from palio.protocol.vocabulary import KNOWN
from tests.client.older import come_back, disk_of


async def publish(client, *numbers):
    await client.publish([{"n": n} for n in numbers])


async def taken(subscription, count):
    return [(await subscription.next(10.0))["n"] for _ in range(count)]


async def named(subscription):
    while not subscription.gaps:
        await asyncio.sleep(0.01)
    return [(gap.origin, gap.after, gap.upto) for gap in subscription.gaps]


async def test_a_position_with_its_lineage_goes_on_where_the_journal_was_the_same():
    broker = palio.testing.broker(journal=True)
    async with broker as address:
        async with palio.connect(address) as client:
            await publish(client, 1, 2, 3)
            copy = disk_of(broker)
            await publish(client, 4, 5)
            lineages = {one.origin: one.lineage for one in (await client.journals()).journals}
        await come_back(broker, copy)
        async with palio.connect(address) as client:
            await publish(client, 101, 102, 103)
            name = client.broker
            known = await client.subscribe("n > 0", since={name: 5}, lineages=lineages)
            assert await taken(known, 3) == [101, 102, 103]
            assert await named(known) == [(name, 5, None)]
            believed = await client.subscribe("n > 0", since={name: 5})
            assert await taken(believed, 1) == [103], "nobody can tell that it is of another journal"
            beyond = await client.subscribe("n > 0", since={name: 99})
            assert await taken(beyond, 3) == [101, 102, 103]
            assert await named(beyond) == [(name, 99, None)]


async def test_a_gap_is_published_once_by_each_broker_that_notices():
    async with palio.testing.network([("a", "b")], journal=True) as network:
        origin, home = network.brokers.values()
        async with palio.connect(home.address, name="operator") as operator:
            notices = await operator.subscribe('palio.notice = "gap"', ready="network")
            desks = [await operator.subscribe("n > 0", durable=f"desk-{n}", ready="network") for n in range(3)]
            async with palio.connect(origin.address) as client:
                await publish(client, 1, 2, 3)
                copy = disk_of(origin)
                await publish(client, 4, 5)
            for desk in desks:
                assert await taken(desk, 5) == [1, 2, 3, 4, 5]
            await come_back(origin, copy)
            async with palio.connect(origin.address) as client:
                await publish(client, 101)
            for desk in desks:
                assert await taken(desk, 1) == [101]
                assert await named(desk) == [(origin.running.settings.name, 5, None)]
            found = {}
            for _ in range(2):
                event = await notices.next(10.0)
                found[event["palio.broker"]] = event
            here, there = home.running.settings.name, origin.running.settings.name
            assert set(found) == {here, there}
            assert {event["palio.origin"] for event in found.values()} == {there}
            assert {event["palio.why"] for event in found.values()} == {"came back older"}
            assert (found[here]["palio.after"], "palio.upto" in found[here].notification) == (5, False)
            assert (found[there]["palio.after"], found[there]["palio.upto"]) == (3, 5)
            # Who looks back finds them, too; there are no others, however many subscriptions are concerned.
            past = await operator.survey("exists(palio.notice)")
            assert past.count == 2


async def test_who_does_not_know_of_gaps_is_not_told_and_stays_connected():
    broker = palio.testing.broker(journal=True)
    async with broker as address:
        async with palio.connect(address) as client:
            await publish(client, 1, 2, 3)
            name = client.broker
        for knows, told in ((KNOWN, True), ((), False)):
            heard = await _attached(address, knows, name)
            assert heard.count("attached") == 1
            assert ("gapnoticed" in heard) is told
            assert heard[-1] == "pong", "it is still there"


async def _attached(address, knows, origin):
    """What a client hears that speaks the protocol itself, and attaches beyond the head of a journal."""
    from urllib.parse import urlsplit

    from palio.model.filter import Filter
    from palio.protocol.durable.subscriptions import Attach
    from palio.protocol.encoding import decode, encode
    from palio.protocol.frames import Frames, frame
    from palio.protocol.greeting import PROTOCOL, Role
    from palio.protocol.heartbeat import Ping

    heard, frames = [], Frames()
    place = urlsplit(address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)

    async def until(kind):
        while kind not in heard:
            for payload in frames.feed(await asyncio.wait_for(reader.read(65_536), 10.0)):
                heard.append(type(decode(payload)).__name__.lower())

    greet = Greet(PROTOCOL, Role.CLIENT, f"old {len(knows)}", knows=knows)
    writer.write(frame(encode(greet)))
    await until("welcome")
    attach = Attach(f"desk {len(knows)}", Filter.parse("true"), since="all", after={origin: 9}, number=1)
    writer.write(frame(encode(attach)))
    await until("handed")  # which comes behind what is said of gaps
    await asyncio.sleep(0.05)
    writer.write(frame(encode(Ping(number=7))))
    await until("pong")
    writer.close()
    return heard


def test_a_greeting_of_before_is_read_and_knows_nothing_more():
    import msgspec

    from palio.protocol.encoding import decode, encode
    from palio.protocol.greeting import PROTOCOL, Role

    document = msgspec.msgpack.decode(encode(Greet(PROTOCOL, Role.CLIENT, "desk", knows=KNOWN)))
    assert document.pop("knows") == sorted(KNOWN)
    assert GapNoticed.__name__.lower() in KNOWN
    assert decode(msgspec.msgpack.encode(document)).knows == ()
