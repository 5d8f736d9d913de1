"""The largest event through every way; and one that is larger, as an older broker could have kept it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

import palio
from palio import Notification, testing
from palio.broker.broker import BrokerServer
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.settings import Limits, Settings
from palio.model.body import Body
from palio.protocol.durable.retry import Patience
from palio.protocol.encoding import encode
from palio.protocol.envelope import Envelope
from palio.protocol.frames import MAX_EVENT, MAX_FRAME, frame
from palio.protocol.inquiries import Request, Respond
from palio.protocol.requests import Publish, Published, Refused
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import Append
from palio.store import SqlStore
from tests.broker.gateway.calling import Webhook
from tests.broker.largest import event_of, largest
from tests.live.talking import Talker

NAME_A, NAME_B = "𝔞" * 255, "b" * 255
DURABLE = "𝔡" * 255
WEBHOOKS = GatewaySettings(sinks=("127.0.0.0/8",), push_within=20.0)


@asynccontextmanager
async def two_brokers() -> AsyncIterator[tuple[testing.Broker, testing.Broker]]:
    patient = DurableSettings()  # such an event takes its time: not that of tests, in which nobody is patient
    a = testing.broker(name=NAME_A, journal=True, durable=patient)
    b = testing.broker(
        name=NAME_B, journal=True, durable=patient, http=True, gateway=WEBHOOKS, limits=Limits(frame=1 << 20)
    )
    await a.start()
    b.link_to(a)
    await b.start()
    await b.until(lambda: bool(b.running.links))
    try:
        yield a, b
    finally:
        await b.stop()
        await a.stop()


async def test_the_largest_event_comes_by_every_way() -> None:
    """With names as long as they may be, and at a broker whose own clients may publish far less."""
    event = largest(kind="large")
    async with two_brokers() as (a, b), Webhook() as hook, aiohttp.ClientSession(b.url) as http:
        hook._runner.app._client_max_size = 1 << 30
        wish = {"id": "hook", "filters": [{"exact": {"kind": "large"}}], "sink": hook.url}
        await http.post("/subscriptions", json=wish)
        stream = await http.get("/events", params={"filter": 'kind = "large"'})
        assert (await stream.content.readuntil(b"\n\n")).startswith(b": subscribed")
        async with (
            palio.connect(a.address, name="𝔭" * 255) as publisher,
            palio.connect(b.address, name="𝔱" * 255) as taker,
        ):
            transient = await taker.subscribe('kind = "large"', ready="network")
            durable = await taker.subscribe('kind = "large"', durable=DURABLE, ready="network")
            await publisher.publish(event)

            def is_it(one: palio.Event) -> bool:
                return one.notification.body.attributes == event.body.attributes

            assert is_it(await transient.next(timeout=20))
            delivered = await durable.next(timeout=20)
            assert is_it(delivered)
            text = await stream.content.readuntil(b"\n\n", max_size=1 << 26)
            assert json.loads(text.partition(b"data: ")[2])["last"] == event["last"]
            stream.close()
            _, body = await asyncio.wait_for(hook.requests.get(), 20)
            assert json.loads(body)["last"] == event["last"]
            # History: counted with a sample, read page by page, and reached back for.
            survey = await taker.survey('kind = "large"', timeout=20)
            assert (survey.count, [is_it(one) for one in survey.samples]) == (1, [True])
            assert [is_it(one) async for one in taker.replay('kind = "large"')] == [True]
            past = await taker.subscribe('kind = "large"', since="all")
            assert is_it(await past.next(timeout=20))
            await past.unsubscribe()
            await transient.unsubscribe()
            # It moves to where its taker goes, unacknowledged.
            async with palio.connect(a.address) as elsewhere:
                moved = await elsewhere.subscribe('kind = "large"', durable=DURABLE, timeout=20)
                again = await moved.next(timeout=20)
                assert is_it(again)
                await again.ack(confirmed=True)
            # A request and its reply.
            asked = await publisher.subscribe('kind = "large"', ready="network")

            async def reply() -> None:
                question = await asked.next(timeout=20)
                await question.reply(event)

            replying = asyncio.ensure_future(reply())
            async with palio.connect(a.address) as asker:
                (answer,) = await asker.request(event, timeout=20)
            assert answer.body.attributes == event.body.attributes
            await replying


async def test_what_could_not_be_delivered_is_refused_at_the_door() -> None:
    """A frame that is full to its last byte with one event: nothing goes on from there, and nobody is cut."""
    async with testing.broker(journal=True) as address:
        talker = await Talker.open(int(address.rpartition(":")[2]), "by hand")
        event = event_of(MAX_FRAME - 1_000)
        while len(encode(Publish((event,), 1))) < MAX_FRAME:
            event = event_of(event.body.size + MAX_FRAME - len(encode(Publish((event,), 1))))
        for message, subject in (
            (Publish((event,), 1), "publish 1"),
            (Request(2, event_of(event.body.size - 40)), "request 2"),
            (Respond("3", event_of(event.body.size - 40)), "respond 3"),
        ):
            assert len(encode(message)) <= MAX_FRAME
            talker.writer.write(frame(encode(message)))
            refused = await talker.hear_a(Refused)
            assert (refused.subject, refused.error) == (subject, "EventTooLarge")
            assert refused.fields["limit"] == MAX_EVENT
        talker.say(Publish((Notification({"x": 1}),), 4))
        assert (await talker.hear_a(Published)).sequence == 1
        talker.close()


async def test_a_client_hears_it_before_anything_is_sent() -> None:
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        event = event_of(MAX_EVENT + 1)
        with pytest.raises(palio.EventTooLarge, match="Publish it in parts") as told:
            await client.publish(event)
        assert (told.value.limit, told.value.got) == (MAX_EVENT, MAX_EVENT + 1)
        with pytest.raises(palio.EventTooLarge):
            client.publish_nowait(event)
        with pytest.raises(palio.EventTooLarge):
            client.request(event)
        assert (await client.publish({"small": True})).sequence == 1


async def test_what_is_content_and_cannot_be_filtered_counts_as_well() -> None:
    """A body may have long names beside its attributes: they are part of what must fit, and of what is kept."""
    body = Body(Notification({}).body.attributes, unindexed=tuple(["n" * 20_000] * 1_000))
    assert body.size > MAX_EVENT


async def _filled_store(folder: Path, notifications: list[Notification]) -> None:
    """A store as a broker of a former version could have left it: with events that nobody refused."""
    store = SqlStore.open(f"sqlite:///{folder}/palio.db", broker="old", completed=lambda messages: None)
    try:
        envelopes = tuple([Envelope("old", n, 1.0, 0, "old", one) for n, one in enumerate(notifications, 1)])
        store.submit((Append(1, envelopes, "somebody"),))
    finally:
        store.close()


async def test_an_undeliverable_event_of_the_past_becomes_a_dead_letter_and_nothing_waits_behind_it(
    tmp_path: Path,
) -> None:
    patience = Patience(first_pause=0.01, longest_pause=0.02, attempts=3)
    settings = Settings(
        name="old",
        listen="127.0.0.1:0",
        http="127.0.0.1:0",
        data=str(tmp_path),
        sync="off",
        durable=DurableSettings(patience=patience),
    )
    events = [Notification({"n": 0}), event_of(MAX_FRAME + 1_000, n=1), Notification({"n": 2})]
    await _filled_store(tmp_path, events)
    broker = BrokerServer(settings)
    await broker.start()
    try:
        async with palio.connect(f"palio://127.0.0.1:{broker.port}") as client:
            durable = await client.subscribe("n >= 0", durable="orders", since="all", timeout=20)
            for expected in (0, 2):
                event = await durable.next(timeout=20)
                assert event["n"] == expected
                await event.ack()

            async def dead() -> list[dict[str, object]]:
                return await client.inspect("dlq")

            async with asyncio.timeout(20):
                while not (letters := await dead()):
                    await asyncio.sleep(0.01)
            assert [(one["sequence"], one["attempts"]) for one in letters] == [(2, 3)]
            assert "too many to be shown" in letters[0]["event"]
            assert all("bytes that a frame may have" in one["why"] for one in letters[0]["failures"])
            assert len(letters[0]["failures"]) == 3
            # Who looks back hears of what follows, and that it is not all.
            replay = client.replay("n >= 0")
            assert [one["n"] async for one in replay] == [0, 2]
            assert replay.missing == ("old",)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{broker.http_port}") as http:
            stream = await http.get("/events", params={"since": "all", "filter": "n >= 0"})
            numbers = []
            while len(numbers) < 2:
                block = await stream.content.readuntil(b"\n\n")
                if b"data: " in block:
                    numbers.append(json.loads(block.partition(b"data: ")[2])["n"])
            assert numbers == [0, 2]
            stream.close()
    finally:
        await broker.stop()


async def test_a_neighbour_that_lets_in_more_costs_an_event_and_no_connection() -> None:
    """A transient subscriber is told that something was lost, and what follows comes."""
    broker = testing.broker(name="b")
    async with broker as address, palio.connect(address) as client:
        subscription = await client.subscribe("n >= 0")
        events = [event_of(MAX_FRAME + 1_000, n=1), Notification({"n": 2})]
        envelopes = [Envelope("a", n, 1.0, 1, "a", one) for n, one in enumerate(events, 1)]
        running = broker.running
        running.carry_out(running.router._core.forwarding.take(tuple(envelopes), None))
        assert (await subscription.next(timeout=20))["n"] == 2
        assert subscription.statistics().lost_by_broker == 1
        assert running.statistics().dropped["too large"] == 1
