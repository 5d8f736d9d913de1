"""Patterns found live: told once they are certain, also when the end of a window is all that happens."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import palio
from palio import testing

RISE = "A[price > 0] then B[price > A.price * 1.1] within 1 min by symbol consume none"


async def first(detection, count):
    return [await anext(detection) for _ in range(count)]


async def test_a_match_names_the_events_that_were_published():
    async with testing.broker() as address, palio.connect(address) as client:
        detection = await client.detect({"rise": RISE}, delay=0)
        for number, price in enumerate([100, 105, 111, 90]):
            await client.publish({"symbol": "ACME", "price": price}, id=f"q-{number}")
        await client.publish({"symbol": "PALI", "price": 200})
        [match] = await first(detection, 1)
        assert [one.id for one in match.constituents] == ["q-0", "q-2"]
        assert match.key == {"symbol": "ACME"}
        await client.publish({"symbol": "PALI", "price": 240}, id="last")
        [other] = await first(detection, 1)
        assert other.constituents[-1].id == "last"
        assert detection.statistics().counts.events == 6


async def test_what_is_published_about_a_match_is_an_event_like_others():
    async with testing.broker() as address, palio.connect(address) as client:
        told = await client.subscribe('`pattern.name` = "rise" and `pattern.key.symbol` = "ACME"')
        async with await client.detect({"rise": RISE}, delay=0) as detection:
            for price in (10, 20):
                await client.publish({"symbol": "ACME", "price": price})
            [match] = await first(detection, 1)
            await client.publish(match.notification())
        event = await told.next(timeout=10)
        assert event.id == match.id
        assert event["pattern.events"] == tuple(one.id for one in match.constituents)


async def test_an_absence_is_found_though_nothing_comes():
    async with testing.broker() as address, palio.connect(address) as client:
        pattern = 'order[what = "order"] then not paid[what = "paid"] within 300 ms by customer'
        detection = await client.detect({"unpaid": pattern}, delay=0.1)
        await client.publish([{"what": "order", "customer": number} for number in (1, 2)])
        await client.publish({"what": "paid", "customer": 1})
        [match] = await first(detection, 1)
        assert match.key == {"customer": 2}


async def test_what_is_published_together_is_told_apart_by_times_of_its_own():
    async with testing.broker() as address, palio.connect(address) as client:
        detection = await client.detect({"rise": RISE}, time="at", delay=0)
        noon = datetime(2026, 7, 2, 12, tzinfo=UTC)
        content = [{"symbol": "ACME", "price": 10 * n, "at": noon + timedelta(seconds=n)} for n in (1, 2)]
        await client.publish([*content, {"symbol": "ACME", "price": 50}])
        [match] = await first(detection, 1)
        assert [one.moment - noon for one in match.constituents] == [timedelta(seconds=n) for n in (1, 2)]
        assert detection.untimed == 1


async def test_what_was_long_on_its_way_is_not_late_while_time_passes():
    async with testing.broker() as address, palio.connect(address) as client:
        detection = await client.detect({"rise": RISE}, time="at", delay=0)
        found = asyncio.create_task(first(detection, 1))
        noon = datetime(2026, 7, 2, 12, tzinfo=UTC)
        await client.publish({"symbol": "ACME", "price": 10, "at": noon})
        await asyncio.sleep(0.5)
        await client.publish({"symbol": "ACME", "price": 20, "at": noon + timedelta(milliseconds=1)})
        [match] = await found
        assert [one.moment - noon for one in match.constituents] == [timedelta(0), timedelta(milliseconds=1)]
        assert detection.statistics().counts.late == 0


async def test_only_what_some_step_selects_comes_here():
    async with testing.broker() as address, palio.connect(address) as client:
        detection = await client.detect({"rise": RISE, "alarm": "A[x = 1] then B[y = 1] within 1 s"})
        assert detection.subscription.filter == palio.Filter.parse("exists(price) or x = 1 or y = 1")
        many = {f"p{n}": f"A[x = {n} and y < {n}] then B[z = {n}] within 1 s" for n in range(100)}
        everything = await client.detect(many)
        assert everything.subscription.filter == palio.Filter.parse("true")


async def test_it_ends_with_its_subscription():
    async with testing.broker() as address, palio.connect(address) as client:
        detection = await client.detect({"rise": RISE})
        reading = asyncio.create_task(anext(detection, None))
        await asyncio.sleep(0)
        await detection.stop()
        assert await reading is None


async def test_what_is_no_pattern_is_refused():
    async with testing.broker() as address, palio.connect(address) as client:
        with pytest.raises(palio.PalioError, match="within"):
            await client.detect({"endless": "A[x = 1] then B[x = 2]"})
        with pytest.raises(ValueError, match="no pattern"):
            await client.detect({})
