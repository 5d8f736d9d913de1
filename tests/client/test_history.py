"""Counting and reading what the journals hold."""

import pytest

import palio
import palio.sync
from palio import testing


async def test_what_is_in_all_journals_is_counted_and_read():
    async with (
        testing.network([("one", "two")], journal=True) as network,
        palio.connect(network["one"].address) as one,
        palio.connect(network["two"].address) as two,
    ):
        await one.publish([{"n": n} for n in range(250)])
        await two.publish([{"n": n} for n in range(250, 400)])
        survey = await two.survey("n >= 100", buckets=4, samples=3)
        assert (survey.count, sum(survey.histogram), len(survey.histogram)) == (300, 300, 4)
        assert (len(survey.samples), survey.missing) == (3, ())
        assert survey.first is not None
        assert survey.begin <= survey.first <= survey.last <= survey.end
        replay = two.replay("n >= 100", page=50)
        events = [event async for event in replay]
        assert sorted(event["n"] for event in events) == list(range(100, 400))
        assert replay.missing == ()
        for origin in ("one", "two"):
            ordered = [event["n"] for event in events if event.origin == origin]
            assert ordered == sorted(ordered)


async def test_whoever_stops_reading_can_begin_again():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.publish([{"n": n} for n in range(30)])
        for _ in range(3):
            async for event in client.replay("n >= 0", page=10):
                assert event["n"] == 0
                break
        assert [event["n"] async for event in client.replay("n >= 25", page=10)] == [25, 26, 27, 28, 29]


async def test_a_replay_is_lost_with_its_connection():
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address, name="me") as client:
        await client.publish([{"n": n} for n in range(30)])
        replay = aiter(client.replay("n >= 0", page=10))
        assert (await anext(replay))["n"] == 0
        broker.cut_off("me")
        with pytest.raises(palio.ConnectionLost):
            [event async for event in replay]


async def test_a_broker_without_a_journal_has_no_history():
    async with testing.broker() as address, palio.connect(address) as client:
        with pytest.raises(palio.RequestRefused):
            await client.survey("n >= 0")
        with pytest.raises(palio.RequestRefused):
            await anext(aiter(client.replay("n >= 0")))


def test_without_an_event_loop():
    with testing.broker(journal=True) as address, palio.sync.connect(address) as client:
        client.publish([{"n": n} for n in range(30)])
        assert client.survey("n >= 10").count == 20
        assert [event["n"] for event in client.replay("n >= 10", page=7)] == list(range(10, 30))
