"""Who publishes documents, and who takes them: each party is a process of its own, with our client.

Publishers are so many connections of one process; each publishes, waits until that is confirmed, and publishes
the next. At a fixed rate none waits, and what is too much under way for the client is refused and counted.
Subscribers are durable, each a connection of its own in one further process, and acknowledge what they get.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec
import uvloop

import palio
from benchmarks.live.parties import Counters, Line, Party, Plan
from benchmarks.live.servers import Server
from palio.client.client import Client
from palio.client.errors import TooMuchUnsent

UNACKNOWLEDGED = 1_000  # deliveries, of a subscription
SILENCE = 10.0  # seconds without any delivery, after which nothing more is waited for
READY = 600.0
_LONG = 600.0
_TICK = 0.002


class DocumentPlan(msgspec.Struct, frozen=True):
    """What the parties of one run shall do."""

    documents: Sequence[bytes]
    publishers: int
    subscribers: Sequence[str]  # their filters
    seconds: float
    warm: float = 1.0  # seconds before, that are not counted
    each: int = 1  # publishes that each publisher has under way at a time
    rate: float = 0.0  # publishes a second of all publishers; 0: as fast as they are confirmed


class DocumentRun(msgspec.Struct, frozen=True):
    """What came of a run: confirmed publishes and deliveries, and how long confirmations took."""

    published: int
    seconds: float
    delivered: int
    lost: int
    refused: int  # by the client, with too much under way
    tenths: tuple[float, ...]  # publishes a second that were confirmed in each tenth of the time
    memory: int  # bytes that the broker had at the most
    latencies: tuple[float, float]  # the median and the 99th percentile, in seconds
    publisher_cpu: float  # seconds an event
    server_cpu: float
    subscriber_cpu: float

    @property
    def rate(self) -> float:
        """Publishes a second that were confirmed and delivered."""
        return self.published / self.seconds


def run_documents(server: Server, plan: DocumentPlan) -> DocumentRun:
    """Raises `PartyFailed`."""
    counters = Counters(1, max(1, len(plan.subscribers)), 0)

    def publish(_: Plan, shared: Counters, line: Line) -> None:
        uvloop.run(_publish(server.port, plan, shared, line))

    def subscribe(_: Plan, shared: Counters, line: Line) -> None:
        uvloop.run(_subscribe(server.port, plan, shared, line))

    nothing = Plan(server.port, 0, 0)
    subscriber = Party("subscriber", subscribe, nothing, counters)
    publisher = Party("publisher", publish, nothing, counters)
    try:
        subscriber.hear(READY)
        publisher.hear(READY)
        before = server.cpu()
        publisher.say("go")
        most, sent = 0, None
        while sent is None:
            sent = publisher.hear(0.25)
            most = max(most, server.resident())
        wanted = sent["total"]
        progress, since = -1, time.perf_counter()
        while min(counters.received) < wanted and time.perf_counter() - since < SILENCE:
            now = sum(counters.received)
            if now != progress:
                progress, since = now, time.perf_counter()
            time.sleep(0.005)
        ended = time.perf_counter()
        used = server.cpu() - before
        subscriber.say("end")
        got = subscriber.hear(READY)
    finally:
        publisher.end()
        subscriber.end()
    caught_up = max(0.0, min(ended - sent["ended"], ended - sent["began"]))
    counted = sent["counted"]
    delivered = sum(counters.received)
    latencies = sorted(sent["latencies"])
    return DocumentRun(
        counted,
        sent["seconds"] + (caught_up if plan.subscribers else 0.0),
        delivered,
        wanted * len(plan.subscribers) - delivered,
        sent["refused"],
        tuple(sent["tenths"]),
        most,
        (latencies[len(latencies) // 2], latencies[len(latencies) * 99 // 100]),
        sent["cpu"] / wanted,
        used / wanted,
        got / wanted,
    )


async def _publish(port: int, plan: DocumentPlan, counters: Counters, line: Line) -> None:
    clients = [await _connect(port, f"publisher-{number}") for number in range(plan.publishers)]
    documents, size = plan.documents, len(plan.documents)
    line.ready(wait=True)
    began = time.perf_counter()
    cpu = time.process_time()
    counted_from = began + plan.warm
    until = counted_from + plan.seconds
    latencies: list[float] = []
    total = counted = refused = 0
    last = counted_from
    tenths = [0] * 10

    async def one(client: Client, number: int) -> None:
        nonlocal total, counted, last, refused
        before = time.perf_counter()
        try:
            await client.publish_document(documents[number % size])
        except TooMuchUnsent:
            refused += 1
            return
        after = time.perf_counter()
        total += 1
        if counted_from <= before:
            counted += 1
            last = max(last, after)
            latencies.append(after - before)
        if counted_from <= after < until:
            tenths[int((after - counted_from) / plan.seconds * 10)] += 1

    async def work(client: Client, number: int) -> None:
        while time.perf_counter() < until:
            await one(client, number)
            number += plan.publishers * plan.each

    async def at_rate() -> None:
        """What is due is published, whether or not what came before is confirmed."""
        under_way: set[asyncio.Task[None]] = set()
        number = 0
        while (now := time.perf_counter()) < until:
            due = int((now - began) * plan.rate)
            while number < due:
                task = asyncio.ensure_future(one(clients[number % len(clients)], number))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
                number += 1
            await asyncio.sleep(_TICK)
        await asyncio.gather(*under_way)

    if plan.rate:
        await at_rate()

    working = [] if plan.rate else clients
    await asyncio.gather(
        *[
            work(client, number + place * plan.publishers)
            for number, client in enumerate(working)
            for place in range(plan.each)
        ]
    )
    said = {
        "total": total,
        "counted": counted,
        "began": began,
        "ended": time.perf_counter(),
        "seconds": last - counted_from,
        "latencies": latencies or [0.0],
        "refused": refused,
        "tenths": [count / plan.seconds * 10 for count in tenths],
        "cpu": time.process_time() - cpu,
    }
    line.tell(said)
    for client in clients:
        await client.close()


async def _subscribe(port: int, plan: DocumentPlan, counters: Counters, line: Line) -> None:
    clients = [await _connect(port, f"subscriber-{number}") for number in range(len(plan.subscribers))]
    subscriptions = [
        await client.subscribe(
            filter, durable=f"durable-{number}", in_flight=UNACKNOWLEDGED, limit=65_536, ready="network"
        )
        for number, (client, filter) in enumerate(zip(clients, plan.subscribers, strict=True))
    ]
    line.ready(wait=False)
    cpu = time.process_time()

    async def take(number: int) -> None:
        async for event in subscriptions[number]:
            len(event.payload)
            await event.ack(confirmed=False)
            if not event.redelivered:
                counters.received[number] += 1

    async def take_all() -> None:
        await asyncio.gather(*[take(number) for number in range(len(subscriptions))])

    await line.finished(take_all())
    line.tell(time.process_time() - cpu)
    for subscription in subscriptions:
        await subscription.unsubscribe()


def _connect(port: int, name: str) -> Client:
    return palio.connect(f"palio://127.0.0.1:{port}", name=name, request_timeout=_LONG)
