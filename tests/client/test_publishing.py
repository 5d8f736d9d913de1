"""What is published: confirmed once, in its order, and never more than may wait."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

import palio
from palio import testing
from palio.broker.settings import Limits
from palio.client.content import make_body
from palio.client.publishing import PublishQueue
from palio.protocol.requests import Refused
from palio.routing.sessions import NotAdvertised


async def numbers(subscription, count):
    return [(await subscription.next(timeout=10))["n"] for _ in range(count)]


async def test_a_confirmation_names_what_the_subscriber_gets():
    async with testing.broker(name="siena") as address, palio.connect(address) as client:
        subscription = await client.subscribe("n >= 0", ready="network")
        confirmation = await client.publish({"n": 1})
        event = await subscription.next(timeout=10)
        assert (confirmation.origin, confirmation.sequence) == (event.origin, event.sequence) == ("siena", 1)


async def test_a_list_has_a_list_of_confirmations():
    async with testing.broker() as address, palio.connect(address) as client:
        subscription = await client.subscribe("n >= 0")
        confirmations = await client.publish([{"n": n} for n in range(100)])
        assert [one.sequence for one in confirmations] == list(range(1, 101))
        assert await numbers(subscription, 100) == list(range(100))
        assert await client.publish([]) == []


async def test_order_is_kept_between_those_that_are_confirmed_and_those_that_are_not():
    async with testing.broker() as address, palio.connect(address) as client:
        subscription = await client.subscribe("n >= 0")
        pending = []
        for n in range(300):
            if n % 3 == 1:
                pending.append(asyncio.create_task(client.publish({"n": n})))
                await asyncio.sleep(0)
            else:
                client.publish_nowait({"n": n})
        await asyncio.gather(*pending)
        assert await numbers(subscription, 300) == list(range(300))


async def test_confirmations_can_be_waited_for_later():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        futures = [client.publish_nowait({"n": n}, confirm=True) for n in range(10)]
        assert [one.sequence for one in await asyncio.gather(*futures)] == list(range(1, 11))
        assert client.statistics().publishing.confirmed == 10


async def test_a_list_that_is_too_long_for_a_batch_is_confirmed_as_a_whole():
    async with testing.broker() as address, palio.connect(address) as client:
        subscription = await client.subscribe("n >= 0")
        confirmations = await client.publish([{"n": n, "text": "x" * 1_000} for n in range(500)])
        assert [one.sequence for one in confirmations] == list(range(1, 501))
        assert await numbers(subscription, 500) == list(range(500))


async def test_properties_travel():
    moment = datetime(2026, 7, 2, 10, 45, tzinfo=UTC)
    async with testing.broker() as address, palio.connect(address) as client:
        subscription = await client.subscribe("true")
        await client.publish(
            {"at": moment, "tags": ["a", "b"], "nested": {"deep": 1}},
            id="seven",
            lifetime=60,
            priority=9,
            payload=b"more",
        )
        event = await subscription.next(timeout=10)
        assert (event.id, event.priority, event.payload) == ("seven", 9, b"more")
        assert event.notification.lifetime == timedelta(seconds=60)
        assert (event["at"], event["tags"], event["nested.deep"]) == (moment, ("a", "b"), 1)
        assert (event.get("none"), event.get("none", 3), "at" in event) == (None, 3, True)
        assert dict(event.attributes) == {name: event[name] for name in event}


async def test_a_notification_can_be_published_as_it_is_or_with_other_properties():
    notification = palio.Notification({"n": 1, "odd": [1, "a"]}, id="one", priority=2)
    assert make_body(notification) is notification.body
    changed = palio.Notification.of_body(make_body(notification, priority=7))
    assert (changed.id, changed.priority, changed.unindexed) == ("one", 7, ("odd",))
    assert changed.to_json() == notification.to_json()
    async with testing.broker() as address, palio.connect(address) as client:
        subscription = await client.subscribe("n = 1")
        await client.publish(notification)
        assert (await subscription.next(timeout=10)).notification == notification


async def test_what_is_wrong_is_said_before_anything_is_sent():
    async with testing.broker() as address, palio.connect(address) as client:
        with pytest.raises(palio.InvalidNotification) as caught:
            client.publish_nowait({"price": float("nan")})
        assert caught.value.path == "$.price"
        with pytest.raises(palio.InvalidNotification):
            await client.publish([{"price": 1.0}, {"price": float("nan")}])
        assert client.statistics().publishing.published == 0


class OneBatch:
    """A connection that is full after the first batch."""

    paused = False

    def put(self, payload: bytes) -> None:
        self.paused = True

    def write(self) -> None:
        pass


async def test_what_is_to_be_tried_one_by_one_counts_as_unsent():
    queue = PublishQueue(1_000, "", count(1).__next__)
    queue.connected(OneBatch(), 0)
    futures = [queue.confirmed([make_body({"n": n, "text": "x" * 900})], single=True) for n in range(2)]
    queue.flush()
    assert queue.statistics().unsent_bytes == 0
    assert queue.refused(Refused("publish 1", "NotAllowed", "One of them may not.", number=1))
    assert queue.statistics().unsent_bytes > 1_800
    with pytest.raises(palio.TooMuchUnsent):
        queue.nowait(make_body({"n": 2}))
    assert not any(future.done() for future in futures)


async def test_one_that_is_refused_does_not_take_others_with_it():
    async with testing.broker(advertisements=True) as address, palio.connect(address) as client:
        await client.advertise("n >= 0", ready="network")
        subscription = await client.subscribe("true", ready="network")
        results = await asyncio.gather(
            client.publish({"n": 1}),
            client.publish({"other": 2}),
            client.publish({"n": 3}),
            return_exceptions=True,
        )
        refusal = results[1]
        assert isinstance(refusal, palio.RequestRefused)
        assert refusal.error == NotAdvertised.__name__
        assert str(refusal).endswith(".")
        assert [one.sequence for one in (results[0], results[2])] == [1, 2]
        assert await numbers(subscription, 2) == [1, 3]


async def test_what_waits_to_be_sent_is_bounded():
    broker = testing.broker()
    address = await broker.__aenter__()
    async with palio.connect(address, unsent_limit=50_000) as client:
        await broker.stop()

        async def publish_for_ever():
            while True:
                client.publish_nowait({"text": "x" * 1_000})
                await asyncio.sleep(0)

        with pytest.raises(palio.TooMuchUnsent) as caught:
            await publish_for_ever()
        assert caught.value.limit == 50_000
        assert client.statistics().publishing.unsent_bytes < 150_000


async def test_what_was_published_while_there_is_no_connection_goes_out_on_the_next_one():
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address) as client:
        await client.publish({"n": 0})
        await broker.stop()
        client.publish_nowait({"n": 1})
        confirming = asyncio.create_task(client.publish({"n": 2}))
        await asyncio.sleep(0)
        await broker.start()
        assert (await confirming).sequence == 3
        history = await client.subscribe("n >= 0", durable="history", since="all")
        assert await numbers(history, 3) == [0, 1, 2]


async def test_a_publish_that_is_not_confirmed_is_published_again_and_is_there_once():
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address, name="publisher") as client:
        await client.publish({"n": 0})
        store = broker.running.store
        store.complete, complete = (lambda: None), store.complete  # the disk is slow
        confirming = asyncio.create_task(client.publish([{"n": 1}, {"n": 2}]))
        await broker.until(lambda: store.queued_bytes > 0)
        complete()  # it is on disk, but who published it does not hear of that:
        broker.cut_off("publisher")
        store.complete = complete
        confirmations = await confirming
        assert [one.sequence for one in confirmations] == [2, 3]
        history = await client.subscribe("n >= 0", durable="history", since="all")
        assert await numbers(history, 3) == [0, 1, 2]
        assert (await client.publish({"n": 3})).sequence == 4


async def test_flush_waits_until_the_broker_has_taken_it():
    broker = testing.broker()
    async with broker as address, palio.connect(address) as client:
        for n in range(10):
            client.publish_nowait({"n": n})
        await client.flush(arrived=True)
        assert broker.running.router.statistics().forwarding.taken == 10


async def test_who_gives_up_waiting_is_told():
    broker = testing.broker()
    async with broker as address, palio.connect(address) as client:
        await broker.stop()
        with pytest.raises(palio.RequestTimeout) as caught:
            await client.publish({"n": 1}, timeout=0.01)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.seconds == 0.01


async def test_a_closed_client_publishes_nothing():
    async with testing.broker() as address:
        client = await palio.connect(address)
        waiting = asyncio.create_task(client.publish({"n": 1}))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(palio.ClientClosed):
            await waiting
        with pytest.raises(palio.ClientClosed):
            client.publish_nowait({"n": 1})
        with pytest.raises(palio.ClientClosed):
            await palio.connect(address).publish({"n": 1})


async def test_large_notifications_go_by_themselves_and_too_large_ones_not_at_all():
    limits = Limits(frame=1_000_000)
    async with testing.broker(limits=limits) as address, palio.connect(address) as client:
        subscription = await client.subscribe("n >= 0")
        for n in range(3):
            client.publish_nowait({"n": 3 * n})
            client.publish_nowait({"n": 3 * n + 1}, payload=b"x" * 999_000)
            await client.publish([{"n": 3 * n + 2} | {f"text{i}": "x" * 16_000 for i in range(60)}])
        assert await numbers(subscription, 9) == list(range(9))
        with pytest.raises(palio.PalioError, match="the limit is 1,000,000"):
            client.publish_nowait({"n": 0}, payload=b"x" * 1_000_000)
        with pytest.raises(palio.PalioError, match="the limit is 1,000,000"):
            client.publish_nowait({f"text{i}": "x" * 16_000 for i in range(63)})
        assert client.statistics().connections == 1


async def test_what_was_known_is_confirmed_under_its_own_number():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        first = await client.publish({"n": 0}, id="x")
        await client.publish([{"n": n} for n in range(1, 5)])
        known = palio.Notification({"n": 0}, id="x")
        new = palio.Notification({"n": 5}, id="y")
        assert await client.publish([known, new]) == [first, palio.client.Confirmation(first.origin, 6)]


@pytest.mark.parametrize("content", ["hello", b"hello", 5, None, ["hello"], [{"a": 1}, 5], object()])
async def test_what_is_no_mapping_is_told_so_before_anything_is_sent(content):
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        with pytest.raises(palio.InvalidNotification, match="is made of names and their values") as told:
            await client.publish(content)
        assert str(told.value).endswith(".")
        if not isinstance(content, list):
            with pytest.raises(palio.InvalidNotification):
                client.publish_nowait(content)
            with pytest.raises(palio.InvalidNotification):
                client.request(content)
            with pytest.raises(palio.InvalidNotification, match=type(content).__name__):
                palio.Notification(content)
        assert (await client.publish({"a": 1})).sequence == 1
