"""What becomes of an event that could not be dealt with, and what can be wished for that."""

import pytest

import palio
import palio.sync
from palio import testing
from palio.protocol.durable.retry import Patience
from palio.routing.durable.desk import DurableSettings
from tests.client.test_decoding import Quote

EAGER = DurableSettings(tick=0.05, settle_within=0.01, patience=Patience(first_pause=0.0, attempts=3))
HOUR = 3_600.0


async def letters(client, name="desk"):
    return await client.inspect("dlq", name=name)


async def test_a_delay_is_kept_to():
    clock = testing.Clock()
    broker = testing.broker(journal=True, clock=clock, durable=EAGER)
    async with broker as address, palio.connect(address) as client:
        desk = await client.subscribe("n > 0", durable="desk", ready="network")
        await client.publish({"n": 1})
        event = await desk.next(timeout=10)
        with pytest.raises(palio.WrongAttachment):
            await event.reject(delay=-1)
        await event.reject(delay=HOUR)
        await client.flush(arrived=True)
        await clock.advance(HOUR - 1)
        await client.flush(arrived=True)
        assert desk.statistics().waiting == 0
        await clock.advance(2)
        assert (await desk.next(timeout=10)).attempt == 2


async def test_what_is_given_up_at_once_is_a_dead_letter_that_says_why():
    broker = testing.broker(journal=True, durable=EAGER)
    async with broker as address, palio.connect(address, name="pat") as client:
        desk = await client.subscribe("n > 0", durable="desk")
        await client.publish([{"n": 1}, {"n": 2}])
        await (await desk.next(timeout=10)).reject(reason="\udc00 " + "long " * 200, dead_letter=True)
        with pytest.raises(ValueError, match="two"):
            async with (await desk.next(timeout=10)).process():
                raise ValueError("two")
        again = await desk.next(timeout=10)
        assert (again["n"], again.attempt) == (2, 2)
        (letter,) = await letters(client)
        assert (letter["delivery"], letter["attempts"]) == (1, 1)
        (failure,) = letter["failures"]
        assert failure["taker"] == "pat"
        assert failure["why"].startswith("rejected: ? long long")
        assert abs(failure["time"] - letter["time"]) < 60
        await again.reject(dead_letter=True)
        await client.flush(arrived=True)
        whys = [[one["why"] for one in letter["failures"]] for letter in await letters(client)]
        assert whys[1] == ["rejected: ValueError: two", "rejected"]
        assert await client.requeue("desk", [2]) == (2,)
        assert (await desk.next(timeout=10))["n"] == 2
        assert await client.discard("desk", [1, 2]) == (1,)


async def test_what_cannot_be_decoded_is_a_dead_letter_with_its_path():
    async with testing.broker(journal=True, durable=EAGER) as address, palio.connect(address) as client:
        desk = await client.subscribe("price > 0", durable="desk", into=Quote)
        await client.publish([{"symbol": symbol, "price": 1} for symbol in ("A", 7, "B")])
        for symbol in ("A", "B"):
            event = await desk.next(timeout=10)
            assert event.value.symbol == symbol
            await event.ack()
        await client.flush(arrived=True)
        (letter,) = await letters(client)
        assert [one["why"] for one in letter["failures"]] == ["rejected: $.symbol: Expected `str`, got `int`"]
        assert desk.statistics().dropped == {"undecodable": 1}


async def test_attempts_and_pauses_are_those_of_the_subscription():
    clock = testing.Clock()
    broker = testing.broker(journal=True, clock=clock, durable=EAGER)
    async with broker as address, palio.connect(address) as client:
        desk = await client.subscribe("n > 0", durable="desk", attempts=2, backoff=HOUR, ready="network")
        await client.publish({"n": 1})
        await (await desk.next(timeout=10)).reject(reason="first")
        await desk.detach()
        desk = await client.subscribe("n > 0", durable="desk")  # a taker without a wish
        await client.flush(arrived=True)
        await clock.advance(HOUR - 1)
        await client.flush(arrived=True)
        assert desk.statistics().waiting == 0
        await clock.advance(2)
        await (await desk.next(timeout=10)).reject(reason="second")
        await client.flush(arrived=True)
        (letter,) = await letters(client)
        assert [one["why"] for one in letter["failures"]] == ["rejected: first", "rejected: second"]


async def test_pauses_double_from_the_first_to_the_longest():
    clock = testing.Clock()
    broker = testing.broker(journal=True, clock=clock, durable=EAGER)
    async with broker as address, palio.connect(address) as client:
        backoff = palio.Backoff(first=100, longest=300)
        desk = await client.subscribe("n > 0", durable="desk", attempts=9, backoff=backoff, ready="network")
        await client.publish({"n": 1})
        for pause in (100, 200, 300, 300):
            await (await desk.next(timeout=10)).reject()
            await client.flush(arrived=True)
            await clock.advance(pause - 1)
            await client.flush(arrived=True)
            assert desk.statistics().waiting == 0
            await clock.advance(2)


async def test_a_subscription_outlives_its_taker_for_as_long_as_it_lingers():
    clock = testing.Clock()
    broker = testing.broker(journal=True, clock=clock, durable=EAGER)
    async with broker as address, palio.connect(address) as client:
        desk = await client.subscribe("n > 0", durable="desk", linger=60)
        await desk.detach()
        await client.flush(arrived=True)
        names = broker.running.router.durable.homes.subscriptions
        await clock.advance(59)
        assert "desk" in names
        await clock.advance(2)
        assert "desk" not in names


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"durable": "desk", "attempts": 0}, "attempts"),
        ({"durable": "desk", "backoff": -1}, "backoff"),
        ({"durable": "desk", "backoff": float("nan")}, "backoff"),
        ({"durable": "desk", "linger": -1}, "linger"),
        ({"durable": "desk", "in_flight": -1}, "in_flight"),
        ({"attempts": 3}, "attempts"),
        ({"backoff": 3}, "backoff"),
        ({"linger": 3, "since": "all"}, "linger"),
    ],
    ids=str,
)
async def test_what_cannot_be_granted_is_refused_before_anything_is_sent(options, setting):
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        with pytest.raises(palio.WrongAttachment) as caught:
            await client.subscribe("true", **options)
        assert caught.value.setting == setting
        assert client.state.value == "live"


def test_without_an_event_loop():
    with testing.broker(journal=True, durable=EAGER) as address, palio.sync.connect(address) as client:
        desk = client.subscribe("n > 0", durable="desk", attempts=2)
        client.publish([{"n": 1}, {"n": 2}])
        desk.next(timeout=10).reject(reason="no", dead_letter=True)
        with pytest.raises(ValueError, match="two"), desk.next(timeout=10).process():
            raise ValueError("two")
        with desk.next(timeout=10).process() as event:
            assert (event["n"], event.attempt) == (2, 2)
        client.flush(arrived=True)
        (letter,) = client.inspect("dlq", name="desk")
        assert [one["why"] for one in letter["failures"]] == ["rejected: no"]
