"""The parties of NATS, with nats-py: `publish`, and a subscription with a callback.

Its `async for` makes a task for each message and takes nearly three times the CPU; so the callback is measured.
What may wait for a subscriber is raised to what the others have.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

import msgspec
import nats
import uvloop

from benchmarks.live.content import FIXED, SUBJECT, as_json, fixed
from benchmarks.live.parties import NOTE, Counters, Line, Plan, Tally, pause, steps
from benchmarks.live.servers import PENDING_BYTES


def publish(plan: Plan, counters: Counters, line: Line) -> None:
    uvloop.run(_publish(plan, counters, line))


async def _publish(plan: Plan, counters: Counters, line: Line) -> None:
    client = await nats.connect(f"nats://127.0.0.1:{plan.port}")
    contents, size = plan.contents, len(plan.contents)
    payloads = [fixed(content) for content in contents]
    send = client.publish
    line.ready(wait=True)
    count = 0
    for start, end in steps(plan):
        if plan.timed:
            for number in range(start, end):
                content = contents[number % size] | {"sent": perf_counter()}
                await send(SUBJECT, as_json(content) if plan.json else fixed(content))
        elif plan.json:
            for number in range(start, end):
                await send(SUBJECT, as_json(contents[number % size]))
        else:
            for number in range(start, end):
                await send(SUBJECT, payloads[number % size])
        count = end
        await pause(plan, counters, count)
    await client.flush()
    line.report(count)
    await client.close()


def subscribe(plan: Plan, counters: Counters, line: Line) -> None:
    uvloop.run(_subscribe(plan, counters, line))


async def _subscribe(plan: Plan, counters: Counters, line: Line) -> None:
    client = await nats.connect(f"nats://127.0.0.1:{plan.port}")
    tally = Tally(plan, counters)
    all_came = asyncio.Event()
    count = 0
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    read = FIXED.unpack_from
    events = plan.events

    async def take(message: Any) -> None:
        nonlocal count
        decode(message.data)["key"] if plan.json else read(message.data)
        count += 1
        if (not count % NOTE or count == events) and tally.note(count):
            all_came.set()

    async def take_timed(message: Any) -> None:
        nonlocal count
        assert tally.latencies is not None
        sent = decode(message.data)["sent"] if plan.json else read(message.data)[1]
        tally.latencies.append(perf_counter() - sent)
        count += 1
        if tally.note(count):
            all_came.set()

    await client.subscribe(
        SUBJECT,
        cb=take_timed if plan.timed else take,
        pending_msgs_limit=PENDING_BYTES,
        pending_bytes_limit=PENDING_BYTES,
    )
    await client.flush()
    line.ready(wait=False)
    await line.finished(all_came.wait())
    tally.count = count
    line.report_received(tally)
    await client.close()
