"""Our parties, with our client: `publish_nowait` and `async for`, or confirmed publishes and `ack`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from time import perf_counter, process_time

import uvloop

import palio
from benchmarks.live.content import WANTED, Background, Content
from benchmarks.live.parties import NOTE, Counters, Line, Plan, Tally, pause, steps
from palio.client.client import Client
from palio.client.subscription import Subscription

# Requests of the background client under way at a time.
_ASKING = 500
_LONG = 600.0


def _connect(plan: Plan, name: str) -> Client:
    return palio.connect(
        f"{plan.scheme}://127.0.0.1:{plan.port}",
        name=f"{name}-{plan.number}",
        token=plan.token,
        tls=plan.authority,
        request_timeout=_LONG,
    )


def publish(plan: Plan, counters: Counters, line: Line) -> None:
    uvloop.run(_confirmed(plan, counters, line) if plan.in_flight else _publish(plan, counters, line))


async def _publish(plan: Plan, counters: Counters, line: Line) -> None:
    contents, size = plan.contents, len(plan.contents)
    async with _connect(plan, "publisher") as client:
        line.ready(wait=True)
        count = 0
        send = client.publish_nowait
        for start, end in steps(plan):
            if plan.timed:
                for number in range(start, end):
                    send(contents[number % size] | {"sent": perf_counter()})
            else:
                for number in range(start, end):
                    send(contents[number % size])
            count = end
            await client.flush()
            await pause(plan, counters, count)
        await client.flush(arrived=True)
        line.report(count)


async def _confirmed(plan: Plan, counters: Counters, line: Line) -> None:
    """So many calls are always under way, each with its group of events, as long as the window allows."""
    async with _connect(plan, "publisher") as client:
        line.ready(wait=True)
        groups = _groups(plan)
        begun = confirmed = 0

        async def work() -> None:
            nonlocal begun, confirmed
            for group in groups:
                begun += len(group)
                await pause(plan, counters, begun)
                answers = await client.publish(group)
                confirmed += len(answers)

        await asyncio.gather(*[work() for _ in range(max(1, plan.in_flight // plan.group))])
        line.report(confirmed)


def _groups(plan: Plan) -> Iterator[list[Content]]:
    contents, size = plan.contents, len(plan.contents)
    for start in range(0, plan.events, plan.group):
        yield [contents[number % size] for number in range(start, min(start + plan.group, plan.events))]


def subscribe(plan: Plan, counters: Counters, line: Line) -> None:
    uvloop.run(_subscribe(plan, counters, line))


# Deliveries that a durable subscriber may have unacknowledged.
UNACKNOWLEDGED = 1_000


async def _subscribe(plan: Plan, counters: Counters, line: Line) -> None:
    async with _connect(plan, "subscriber") as client:
        # A limit that the window never reaches, as for the others.
        subscription = await client.subscribe(
            WANTED,
            durable=f"bench-{os.getpid()}" if plan.durable else None,
            in_flight=UNACKNOWLEDGED if plan.durable else None,
            limit=max(plan.events, 65_536),
            ready="network" if plan.durable else "broker",
        )
        tally = Tally(plan, counters)
        line.ready(wait=False)
        reading = _acknowledging if plan.durable else _timing if plan.timed else _reading
        await line.finished(reading(subscription, tally))
        line.report_received(tally)
        if plan.durable:
            await subscription.unsubscribe()


async def _reading(subscription: Subscription, tally: Tally) -> None:
    count = 0
    events = tally.events
    try:
        async for event in subscription:
            event["key"]
            count += 1
            if (not count % NOTE or count == events) and tally.note(count):
                return
    finally:
        tally.count = count  # of which some may not have been noted


async def _timing(subscription: Subscription, tally: Tally) -> None:
    assert tally.latencies is not None
    async for event in subscription:
        tally.latencies.append(perf_counter() - event["sent"])
        if tally.note(tally.count + 1):
            return


async def _acknowledging(subscription: Subscription, tally: Tally) -> None:
    """All but the last are acknowledged as they come; when that one is on disk, all are."""
    count = 0
    async for event in subscription:
        event["key"]
        count += not event.redelivered
        await event.ack(confirmed=count == tally.events)
        if (not count % NOTE or count == tally.events) and tally.note(count):
            return


class Crowd:
    """The role of the further client: it registers background filters, and counts what they bring.

    Nobody reads a hundred thousand subscriptions at once: each keeps its last event, and counts.
    """

    def __init__(self, background: Background) -> None:
        self._background = background

    def __call__(self, plan: Plan, counters: Counters, line: Line) -> None:
        uvloop.run(self._run(plan, line))

    async def _run(self, plan: Plan, line: Line) -> None:
        async with _connect(plan, "crowd") as client:
            filters = self._background.filters()

            async def work() -> None:
                for filter in filters:
                    await client.subscribe(filter, limit=1, when_full="drop-oldest")

            await asyncio.gather(*[work() for _ in range(_ASKING)])
            line.ready(wait=False)
            while await line.asked():
                before = process_time()
                count = _received(client)
                line.leave_out(process_time() - before)
                line.report(count)


def _received(client: Client) -> int:
    return sum(one.received for one in client.statistics().subscriptions.values())
