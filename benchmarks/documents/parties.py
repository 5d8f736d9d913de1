"""Who publishes documents, and who takes them: each party is a process of its own, with our client.

Publishers are so many connections of one process; each publishes, waits until that is confirmed, and publishes
the next. At a fixed rate none waits, and what would be too much under way is refused and counted.
Subscribers are durable, each a connection of its own in one further process, and acknowledge what they get.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

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
PENDING = 4_096  # publishes under way at a fixed rate, as many as waited at the source; what is more is refused
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


class DocumentPublisher(Protocol):
    """Who publishes, by whatever way in."""

    async def publish_document(self, content: bytes, /) -> object: ...

    async def close(self) -> None: ...


# Makes a publisher of that name, at a broker with that port.
Connect: TypeAlias = Callable[[int, str], Awaitable[DocumentPublisher]]


def run_documents(server: Server, plan: DocumentPlan, connect: Connect | None = None) -> DocumentRun:
    """By the native client, unless publishers are to `connect` by another way. Raises `PartyFailed`."""
    counters = Counters(1, max(1, len(plan.subscribers)), 0)

    def publish(_: Plan, __: Counters, line: Line) -> None:
        uvloop.run(_publish(server.port, plan, line, connect or connect_client))

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


async def _publish(port: int, plan: DocumentPlan, line: Line, connect: Connect) -> None:
    clients = [await connect(port, f"publisher-{number}") for number in range(plan.publishers)]
    line.ready(wait=True)
    publishing = _Publishing(plan, clients)
    await (publishing.at_rate() if plan.rate else publishing.one_by_one())
    line.tell(publishing.told())
    for client in clients:
        await client.close()


class _Publishing:
    """All publishers of a run, from when it begins."""

    def __init__(self, plan: DocumentPlan, clients: list[DocumentPublisher]) -> None:
        self._plan = plan
        self._clients = clients
        self._cpu = time.process_time()
        self._began = time.perf_counter()
        self._from = self._last = self._began + plan.warm
        self._until = self._from + plan.seconds
        self._latencies: list[float] = []
        self._tenths = [0] * 10
        self._total = self._refused = 0

    async def one_by_one(self) -> None:
        plan = self._plan

        async def work(client: DocumentPublisher, number: int) -> None:
            while time.perf_counter() < self._until:
                await self._one(client, number)
                number += plan.publishers * plan.each

        several = [
            work(client, number + place * plan.publishers)
            for number, client in enumerate(self._clients)
            for place in range(plan.each)
        ]
        await asyncio.gather(*several)

    async def at_rate(self) -> None:
        """What is due is published, whether or not what came before is confirmed."""
        under_way: set[asyncio.Task[None]] = set()
        number = 0
        while (now := time.perf_counter()) < self._until:
            due = int((now - self._began) * self._plan.rate)
            while number < due:
                if len(under_way) >= PENDING:
                    self._refused += 1
                else:
                    client = self._clients[number % len(self._clients)]
                    task = asyncio.ensure_future(self._one(client, number))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                number += 1
            await asyncio.sleep(_TICK)
        await asyncio.gather(*under_way)

    async def _one(self, client: DocumentPublisher, number: int) -> None:
        documents = self._plan.documents
        before = time.perf_counter()
        try:
            await client.publish_document(documents[number % len(documents)])
        except TooMuchUnsent:
            self._refused += 1
            return
        after = time.perf_counter()
        self._total += 1
        if self._from <= before:
            self._last = max(self._last, after)
            self._latencies.append(after - before)
        if self._from <= after < self._until:
            self._tenths[int((after - self._from) / self._plan.seconds * 10)] += 1

    def told(self) -> dict[str, Any]:
        return {
            "total": self._total,
            "counted": len(self._latencies),
            "began": self._began,
            "ended": time.perf_counter(),
            "seconds": self._last - self._from,
            "latencies": self._latencies or [0.0],
            "refused": self._refused,
            "tenths": [count / self._plan.seconds * 10 for count in self._tenths],
            "cpu": time.process_time() - self._cpu,
        }


async def _subscribe(port: int, plan: DocumentPlan, counters: Counters, line: Line) -> None:
    clients = [await connect_client(port, f"subscriber-{number}") for number in range(len(plan.subscribers))]
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


async def connect_client(port: int, name: str) -> Client:
    return await palio.connect(f"palio://127.0.0.1:{port}", name=name, request_timeout=_LONG)
