"""Requests and replies, interest, traces, and questions about the broker."""

import asyncio
from datetime import timedelta

import pytest

import palio
from palio import testing
from palio.client import replies as replies_module
from palio.client.content import make_body
from palio.client.reading import ReceivedReply
from palio.client.replies import Replies
from palio.protocol.durable.retry import Patience
from palio.routing.durable.desk import DurableSettings

# Seconds in which a broker has said how many will be asked, on a machine that is busy with other things too.
ENOUGH = 1.0


async def answer(subscription, reply):
    async for event in subscription:
        async with event.process():
            content = reply(event)
            if content is not None:
                await event.reply(content)


async def test_a_request_that_reaches_nobody_is_answered_at_once():
    async with testing.broker() as address, palio.connect(address) as client:
        replies = await client.request({"question": 1}, timeout=30)
        assert (list(replies), replies.complete, replies.missing) == ([], True, 0)


async def test_everybody_who_takes_a_request_can_reply():
    async with testing.network([("one", "two"), ("two", "three")]) as network:
        clients = [await palio.connect(network[name].address) for name in ("one", "two", "three")]
        tasks = []
        for number, client in enumerate(clients):
            subscription = await client.subscribe("exists(question)", ready="network")
            reply = (
                (lambda event, n=number: {"answer": event["question"] + n}) if number else (lambda event: None)
            )
            tasks.append(asyncio.create_task(answer(subscription, reply)))
        replies = await clients[0].request({"question": 10}, timeout=30)
        assert sorted(reply["answer"] for reply in replies) == [11, 12]
        assert replies.complete
        streamed = [reply["answer"] async for reply in clients[2].request({"question": 20}, timeout=30)]
        assert sorted(streamed) == [21, 22]
        for client in clients:
            await client.close()
        await asyncio.gather(*tasks)


async def test_who_expects_one_reply_does_not_wait_for_others():
    async with testing.broker() as address, palio.connect(address) as client, palio.connect(address) as other:
        silent = await other.subscribe("exists(question)", ready="network")
        subscription = await client.subscribe("exists(question)", ready="network")
        task = asyncio.create_task(answer(subscription, lambda event: {"answer": 1}))
        replies = await client.request({"question": 1}, expect=1, timeout=30)
        assert [reply["answer"] for reply in replies] == [1]
        assert not replies.complete
        assert (await silent.next(timeout=10)).is_request
        await client.close()
        await task


async def test_who_does_not_reply_is_missed():
    async with testing.broker() as address, palio.connect(address) as client:
        silent = await client.subscribe("exists(question)")
        replies = await client.request({"question": 1}, timeout=ENOUGH)
        assert (len(replies), replies.complete, replies.missing) == (0, False, 1)
        event = await silent.next(timeout=10)
        await event.reply({"answer": 1})  # too late, and nobody is hurt
        with pytest.raises(palio.PalioError, match="answered already"):
            await event.reply({"answer": 2})


async def test_two_subscriptions_of_one_client_reply_once():
    async with testing.broker() as address, palio.connect(address) as client:
        one, other = await client.subscribe("exists(question)"), await client.subscribe("question > 0")
        asking = client.request({"question": 1}, timeout=30)
        first, second = await one.next(timeout=10), await other.next(timeout=10)
        await first.reply(None)
        await second.reply({"answer": 2})
        replies = await asking
        assert [reply["answer"] for reply in replies] == [2]
        assert replies.complete


async def test_a_request_is_lost_with_its_connection():
    broker = testing.broker()
    async with broker as address, palio.connect(address, name="asker") as client:
        await client.subscribe("exists(question)")
        asking = client.request({"question": 1}, timeout=30)
        await client.flush(arrived=True)
        broker.cut_off("asker")
        with pytest.raises(palio.ConnectionLost):
            await asking


async def test_a_request_whose_connection_was_lost_is_tried_again_if_that_is_wanted(monkeypatch):
    monkeypatch.setattr(replies_module, "PAUSE", 0.0)
    broker = testing.broker()
    async with (
        broker as address,
        palio.connect(address, name="asker") as client,
        palio.connect(address) as other,
    ):
        subscription = await other.subscribe("exists(question)")
        asking = client.request({"question": 1}, timeout=30, again=True)
        await client.flush(arrived=True)
        broker.cut_off("asker")
        assert (await subscription.next(timeout=10)).is_request  # the first try, whose reply goes nowhere
        await (await subscription.next(timeout=10)).reply({"answer": 1})
        replies = await asking
        assert [reply["answer"] for reply in replies] == [1]
        assert (replies.complete, replies.missing, replies.tries) == (True, 0, 2)


async def test_a_request_ends_with_its_client_also_between_two_tries(monkeypatch):
    monkeypatch.setattr(replies_module, "PAUSE", 0.0)
    broker = testing.broker()
    async with broker as address, palio.connect(address, name="asker") as client:
        await client.subscribe("exists(question)")
        asking = client.request({"question": 1}, timeout=30, again=True)
        await client.flush(arrived=True)
        broker.cut_off("asker")
        await client.close()
        with pytest.raises((palio.ClientClosed, palio.ConnectionLost)):
            await asking


class Tries:
    """Replies as a broker would send them, and who is asked again."""

    def __init__(self, *, timeout=30.0, expect=None):
        self.asked = []
        loop = asyncio.get_running_loop()
        self.replies = Replies(loop, expect, timeout, self.asked.append)

    def reply(self, *answers, missing=0):
        for answer in answers:
            body = make_body({"answer": answer})
            assert not self.replies.take(ReceivedReply(1, body))
        assert self.replies.take(ReceivedReply(1, last=True, missing=missing))

    async def again(self):
        while not self.asked:
            await asyncio.sleep(0)

    async def all(self):
        streamed = [reply["answer"] async for reply in self.replies]
        assert streamed == [reply["answer"] for reply in self.replies]
        return streamed


@pytest.fixture
def no_pause(monkeypatch):
    monkeypatch.setattr(replies_module, "PAUSE", 0.0)


async def test_who_misses_replies_early_asks_again_and_has_those_of_the_second_try(no_pause):
    tries = Tries()
    tries.reply(1, missing=1)
    await tries.again()
    assert 0 < tries.asked[0] <= 30
    tries.reply(1, 2)
    assert await tries.all() == [1, 2]
    assert (tries.replies.complete, tries.replies.tries) == (True, 2)


async def test_a_second_try_that_reaches_fewer_does_not_count(no_pause):
    tries = Tries()
    tries.reply(1, 2, missing=1)
    await tries.again()
    tries.reply(1)
    assert await tries.all() == [1, 2]
    assert (tries.replies.complete, tries.replies.missing) == (False, 1)


async def test_there_is_no_third_try(no_pause):
    tries = Tries()
    tries.reply(missing=1)
    await tries.again()
    tries.reply(missing=2)
    assert await tries.all() == []
    assert (tries.replies.missing, len(tries.asked)) == (2, 1)


async def test_what_the_first_try_gave_is_kept_if_the_second_one_fails(no_pause):
    tries = Tries()
    tries.reply(1, missing=1)
    await tries.again()
    tries.replies.fail(palio.ConnectionLost("request", "It is gone."))
    assert await tries.all() == [1]
    assert tries.replies.missing == 1


async def test_who_has_everything_or_no_time_left_does_not_ask_again():
    for tries, missing in ((Tries(), 0), (Tries(timeout=0.0), 1)):
        tries.reply(1, missing=missing)
        assert await tries.all() == [1]
        assert tries.replies.tries == 1


async def test_who_has_as_many_as_expected_does_not_ask_again():
    tries = Tries(expect=1)
    assert tries.replies.take(ReceivedReply(1, make_body({"answer": 1})))
    assert await tries.all() == [1]
    assert tries.replies.tries == 1


async def test_what_a_slow_reader_cannot_take_is_answered_with_nothing():
    async with testing.broker() as address, palio.connect(address) as client:
        await client.subscribe("exists(question)", limit=1)
        first = client.request({"question": 1}, timeout=ENOUGH)
        second = await client.request({"question": 2}, timeout=30)
        assert second.complete
        assert (await first).missing == 1


async def test_whoever_watches_is_told_when_interest_comes_and_goes():
    async with (
        testing.network([("one", "two")]) as network,
        palio.connect(network["one"].address) as publisher,
        palio.connect(network["two"].address) as other,
    ):
        watch = await publisher.watch('symbol = "ACME", price > 0')
        assert not watch.wanted
        told = aiter(watch)
        assert await anext(told) is False
        subscription = await other.subscribe("price > 100")
        assert await anext(told) is True
        await subscription.unsubscribe()
        assert await anext(told) is False
        await watch.stop()
        with pytest.raises(StopAsyncIteration):
            await anext(told)


async def test_a_trace_shows_who_would_get_it_and_delivers_nothing():
    async with (
        testing.network([("one", "two")]) as network,
        palio.connect(network["one"].address) as one,
        palio.connect(network["two"].address) as two,
    ):
        subscription = await two.subscribe("price > 100", ready="network")
        route = await one.trace({"price": 101})
        assert route.broker == "one"
        (hop,) = route.onward
        assert (hop.broker, [recipient.name for recipient in hop.recipients]) == ("two", [two.name])
        await one.publish({"price": 102})
        event = await subscription.next(timeout=10)
        assert event["price"] == 102
        assert (await two.trace(event)).broker == "two"


async def test_the_broker_is_asked_about_itself():
    async with testing.broker(name="siena") as address, palio.connect(address, name="me") as client:
        assert (await client.inspect("stats"))[0]["broker"]["name"] == "siena"
        assert [row["name"] for row in await client.inspect("clients")] == ["me"]
        await asyncio.gather(*[client.subscribe(f"n = {n}") for n in range(600)])
        assert len(await client.inspect("subs")) == 600  # which comes in parts
        with pytest.raises(palio.RequestRefused):
            await client.inspect("the weather")


async def test_dead_letters_are_put_back_or_thrown_away():
    once = DurableSettings(tick=0.05, settle_within=0.01, patience=Patience(attempts=1))
    async with testing.broker(journal=True, durable=once) as address, palio.connect(address) as client:
        desk = await client.subscribe("n >= 0", durable="desk")
        await client.publish([{"n": 0}, {"n": 1}])
        for _ in range(2):
            await (await desk.next(timeout=10)).reject()
        await client.flush(arrived=True)
        first, second = [row["delivery"] for row in await client.inspect("dlq")]
        assert await client.discard("desk", [first]) == (first,)
        assert await client.requeue("desk", [first, second]) == (second,)
        event = await desk.next(timeout=10)
        assert event["n"] == 1
        await event.ack(confirmed=True)
        assert await client.inspect("dlq") == []


async def test_an_advertisement_is_held_until_it_is_withdrawn():
    async with testing.broker(advertisements=True) as address, palio.connect(address) as client:
        async with await client.advertise("n >= 0"):
            await client.publish({"n": 1})
        with pytest.raises(palio.RequestRefused):
            await client.publish({"n": 2})


async def test_history_is_counted_and_read_to_its_end():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.publish([{"n": n} for n in range(250)])
        found = await client.survey("n >= 50", buckets=3, samples=2)
        assert (found.count, sum(found.histogram), len(found.histogram)) == (200, 200, 3)
        assert [event["n"] for event in found.samples] == [248, 249]
        assert found.missing == ()
        replayed = client.replay("n >= 50", page=64)
        events = [event async for event in replayed]
        assert [event["n"] for event in events] == list(range(50, 250))
        assert replayed.missing == ()
        await events[0].ack()  # there is nothing to do
        before = events[0].taken - timedelta(microseconds=1)  # it is rounded to microseconds
        assert [event async for event in client.replay("n >= 50", until=before)] == []
        nothing = await client.survey("n >= 50", until=before)
        assert (nothing.count, nothing.first, nothing.samples) == (0, None, ())


async def test_a_replier_that_raises_is_an_error_for_who_asks():
    async with testing.network([("one", "two")]) as network:
        here, there = [await palio.connect(network[name].address) for name in ("one", "two")]

        def fail(event):
            raise LookupError(f"no symbol {event['symbol']}")

        subscription = await there.subscribe("exists(symbol)", ready="network")
        task = asyncio.create_task(answer(subscription, fail))
        with pytest.raises(palio.ReplierFailed, match="LookupError: no symbol ACME") as caught:
            await here.request({"symbol": "ACME"}, timeout=30)
        assert caught.value.problems == ("LookupError: no symbol ACME",)
        with pytest.raises(LookupError):
            await task
        await subscription.unsubscribe()
        subscription = await there.subscribe("exists(symbol)", ready="network")
        task = asyncio.create_task(answer(subscription, fail))
        with pytest.raises(palio.ReplierFailed):
            await anext(aiter(here.request({"symbol": "ACME"}, timeout=30)))
        await asyncio.gather(task, return_exceptions=True)
        await here.close()
        await there.close()


async def test_where_others_reply_a_failure_is_told_beside_the_replies():
    async with testing.broker() as address, palio.connect(address) as client, palio.connect(address) as other:

        def fail(event):
            raise LookupError("x" * 2_000)

        good = asyncio.create_task(
            answer(await client.subscribe("exists(question)"), lambda event: {"answer": 1})
        )
        bad = asyncio.create_task(answer(await other.subscribe("exists(question)"), fail))
        replies = await client.request({"question": 1}, timeout=30)
        assert [reply["answer"] for reply in replies] == [1]
        assert replies.complete
        assert [len(problem) for problem in replies.problems] == [500]
        good.cancel()
        await asyncio.gather(good, bad, return_exceptions=True)


async def test_of_two_subscriptions_of_one_client_a_reply_goes_before_a_failure():
    async with testing.broker() as address, palio.connect(address) as client:
        one, other = await client.subscribe("exists(question)"), await client.subscribe("question > 0")
        asking = client.request({"question": 1}, timeout=30)
        with pytest.raises(LookupError):
            async with (await one.next(timeout=10)).process():
                raise LookupError
        await (await other.next(timeout=10)).reply({"answer": 2})
        replies = await asking
        assert ([reply["answer"] for reply in replies], replies.problems) == ([2], [])
