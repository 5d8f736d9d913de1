"""Publishers that want everything confirmed, takers of durable subscriptions, and what is promised to both.

A taker looks over the shoulder of the client library: what its broker hands out, and which acknowledgements the
broker has answered. So the promises of the broker are checked as they are, and not only what the library
makes of them.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import palio
from palio import Filter, Notification
from palio.protocol.durable.subscriptions import Done
from tests.live.network import Node, until
from tests.live.talking import inspect

REQUEST_TIMEOUT = 120.0
BACKOFF = palio.Backoff(longest=0.5)  # so that nobody waits for seconds until a broker is asked again
Seen = tuple[str, int]  # publisher and its count
Key = tuple[str, int]  # origin and sequence

WATCHING: dict[str, Taker] = {}  # by the name of the durable subscription; `conftest` sees to it


class Publisher:
    """Publishes numbered events in small groups of different sizes, and keeps what was confirmed, in order."""

    def __init__(
        self,
        name: str,
        seed: int = 0,
        *,
        heartbeat: float = 1.0,
        sizes: tuple[int, ...] = (1, 1, 2, 5, 20),
    ) -> None:
        self.name = name
        self._sizes = sizes
        self.confirmed: dict[int, Key] = {}
        self.events: dict[int, Notification] = {}
        self._random = random.Random(f"{seed} {name}")
        self._heartbeat = heartbeat
        self.client: palio.Client

    async def open(self, address: str) -> None:
        self.client = await palio.connect(
            address,
            name=self.name,
            request_timeout=REQUEST_TIMEOUT,
            heartbeat=self._heartbeat,
            backoff=BACKOFF,
            other_brokers=False,
        )

    def draw(self, **more: Any) -> Notification:
        """The next event."""
        count = len(self.events)
        attributes = {"publisher": self.name, "count": count, "value": self._random.randrange(100)}
        self.events[count] = Notification(attributes | more)
        return self.events[count]

    async def publish(self, events: int, *, pause: float = 0.0, **more: Any) -> None:
        """Publish so many more, each confirmed."""
        end = len(self.events) + events
        while len(self.events) < end:
            first = len(self.events)
            size = min(self._random.choice(self._sizes), end - first)
            confirmations = await self.client.publish([self.draw(**more) for _ in range(size)])
            for number, one in enumerate(confirmations):
                self.confirmed[first + number] = one.origin, one.sequence
            await asyncio.sleep(pause)

    async def close(self) -> None:
        await self.client.close()


class Taker:
    """The taker of one durable subscription. All that breaks a promise is put into `problems`."""

    def __init__(self, name: str, filter: str, *, heartbeat: float = 1.0) -> None:
        self.name = name
        self.filter = Filter.parse(filter)
        self.problems: list[str] = []
        self.first: list[Seen] = []  # in the order of first deliveries
        self.again = 0  # deliveries of what had come before
        self.acknowledging = True
        self.go_on = asyncio.Event()  # while it is cleared nothing is read
        self.go_on.set()
        self._port = 0
        self._heartbeat = heartbeat
        self._judged: Counter[str] = Counter()
        self._missing: set[Seen] = set()
        self._keys: dict[Seen, Key] = {}
        self._numbers: dict[int, Key] = {}
        self._seen: set[Key] = set()
        self._answered: set[Key] = set()
        self._shown: set[Key] = set()  # to the user, and acknowledged
        self._reading: asyncio.Task[None] | None = None
        self.client: palio.Client
        self.subscription: Any

    async def open(self, address: str, *, patience: float = 0.0, **options: Any) -> None:
        """Attach; from now on everything is taken. With patience, that is tried again if it is refused."""
        self._port = int(address.rpartition(":")[2])
        self._shown.clear()  # another client does not know what the one before has acknowledged
        WATCHING[self.name] = self
        self.client = await palio.connect(
            address,
            request_timeout=REQUEST_TIMEOUT,
            heartbeat=self._heartbeat,
            backoff=BACKOFF,
            other_brokers=False,
            connect_within=patience,
        )

        async def subscribed() -> bool:
            try:
                self.subscription = await self.client.subscribe(self.filter, durable=self.name, **options)
            except palio.PalioError as problem:
                if not patience or "cannot be reached now" not in str(problem):
                    raise
                return False
            return True

        await until("the subscription is attached", subscribed)
        self._reading = asyncio.create_task(self._read())

    def at(self, node: Node) -> None:
        """The home is this broker now."""
        self._port = node.port

    def handed(self, deliveries: list[tuple[int, int, Any]]) -> None:
        """The broker has handed something out."""
        for number, attempt, event in deliveries:
            self._handed(number, attempt, event)

    def answered(self, answer: Done) -> None:
        """The broker has answered acknowledgements."""
        self._answered |= {self._numbers[number] for number in answer.deliveries}

    def _handed(self, number: int, attempt: int, event: Any) -> None:
        key: Key = event.origin, event.sequence
        seen: Seen = event["publisher"], event["count"]
        if key in self._answered:
            self.problems.append(f"{seen} came again after its acknowledgement was answered")
        if self._numbers.setdefault(number, key) != key:
            self.problems.append(f"the delivery {number} was {self._numbers[number]} and now is {key}")
        if self._keys.setdefault(seen, key) != key:
            self.problems.append(f"{seen} is there twice: as {self._keys[seen]} and as {key}")
        if not self.filter.matches(event.notification):
            self.problems.append(f"{seen} is not selected")
        if key in self._seen:
            self.again += 1
            if attempt < 2:
                self.problems.append(f"{seen} comes again and is not marked")
        else:
            self._seen.add(key)
            self.first.append(seen)

    async def _read(self) -> None:
        async for event in self.subscription:
            await self.go_on.wait()
            key: Key = event.origin, event.sequence
            if key in self._shown:
                self.problems.append(f"{key} was shown again to who had acknowledged it")
            if self.acknowledging:
                self._shown.add(key)
                await event.ack()

    async def close(self) -> None:
        await self.client.close()
        if self._reading is not None:
            await self._reading

    # What is promised

    def missing(self, publishers: Iterable[Publisher]) -> set[Seen]:
        """What was confirmed and is selected, and has not come."""
        for one in publishers:
            for count in range(self._judged[one.name], len(one.confirmed)):
                if self.filter.matches(one.events[count]):
                    self._missing.add((one.name, count))
            self._judged[one.name] = len(one.confirmed)
        self._missing = {seen for seen in self._missing if seen not in self._keys}
        return self._missing

    async def complete(self, publishers: list[Publisher], patience: float = 90.0) -> None:
        """Wait until everything has come."""
        try:
            await until("everything has come", lambda: not self.missing(publishers), patience)
        except AssertionError:
            missing = sorted(self.missing(publishers))
            raise AssertionError(f"{self.name} misses {len(missing)}: {missing[:10]}") from None

    async def acknowledged(self) -> None:
        """Wait until nothing is left at the broker for this taker."""

        async def nothing_left() -> bool:
            rows = await inspect(self._port, "subs")
            return any(row.get("durable") == self.name and row["pending"] == 0 for row in rows)

        await until("all is acknowledged", nothing_left)

    def check(self, publishers: Iterable[Publisher]) -> None:
        assert not self.problems, f"{self.name}: {self.problems[:10]}"
        for one in publishers:
            for count, key in one.confirmed.items():
                assert self._keys.get((one.name, count), key) == key, "it was confirmed under another number"
        for publisher in {name for name, _ in self.first}:
            counts = [count for name, count in self.first if name == publisher]
            assert counts == sorted(counts), f"{self.name}: {publisher} out of order"


async def finished(publishers: list[Publisher], takers: list[Taker]) -> None:
    """Everything has come, was acknowledged, and no promise was broken."""
    for taker in takers:
        await taker.complete(publishers)
        await taker.acknowledged()
    for taker in takers:
        taker.check(publishers)
    for one in [*publishers, *takers]:
        await one.close()
