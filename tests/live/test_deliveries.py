"""Hundreds of subscriptions, slowly a thousand, in networks of processes: `Filter.matches` says what comes.

Half of the sessions speak the protocol by hand, so that it is seen what a session gets: one copy of each
notification, with all its subscriptions that select it. The other half are clients as users have them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import palio
from palio import Filter, Notification
from palio.model.errors import PalioError
from palio.protocol.deliveries import Events
from palio.protocol.requests import Ready, Subscribe
from tests.generators import Maker
from tests.live.network import Network, play, until
from tests.live.talking import Talker

TREE = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "b")]
CYCLES = [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("e", "a"), ("d", "b")]
NAMES = tuple("abcdef")
SESSIONS, SUBSCRIPTIONS = 20, 50  # of a thousand
FEW_SESSIONS = 10  # of those that are run each time: two at each broker
PUBLISHERS, EVENTS = 4, 100  # each
LAST = "last"  # the attribute of what a publisher publishes last: everyone gets that

Seen = tuple[int, int]  # publisher and its count


def filters(maker: Maker, count: int) -> dict[str, Filter]:
    """Filters that can be subscribed, by handle; one of them selects what is published last."""
    found = {"last": Filter.parse(f"exists({LAST})")}
    while len(found) < count:
        try:
            wanted = Filter.from_expression(
                maker.conjunction() if maker.random.random() < 0.7 else maker.expression()
            )
            wanted.require_satisfiable()
        except PalioError:
            continue
        found[f"s{len(found)}"] = wanted
    return found


def events(maker: Maker, publisher: int) -> list[Notification]:
    """What one publisher publishes, in order."""
    count = [{"publisher": publisher, "count": number} for number in range(EVENTS + 1)]
    drawn = [dict(maker.notification().attributes) | count[number] for number in range(EVENTS)]
    return [Notification(one) for one in [*drawn, count[EVENTS] | {LAST: True}]]


class Session:
    """A session that speaks by hand."""

    def __init__(self, subscriptions: dict[str, Filter]) -> None:
        self.subscriptions = subscriptions
        self.got: list[tuple[Seen, frozenset[str]]] = []
        self._reading: asyncio.Task[None]

    async def open(self, address: str, name: str) -> None:
        port = int(address.rpartition(":")[2])
        talker = await Talker.open(port, name)
        for handle, wanted in self.subscriptions.items():
            talker.say(Subscribe(handle, wanted, ready=True))
        for _ in self.subscriptions:
            await talker.hear_a(Ready)
        self._reading = asyncio.create_task(self._read(talker))

    async def _read(self, talker: Talker) -> None:
        while True:
            message = await talker.hear_a(Events)
            for envelope in message.envelopes:
                self.got.append((seen(envelope.notification.attributes), frozenset(message.handles)))

    def count(self) -> int:
        return len(self.got)

    def finished(self) -> bool:
        return sum("last" in handles for _, handles in self.got) == PUBLISHERS

    def check(self, published: list[list[Notification]]) -> None:
        for publisher, notifications in enumerate(published):
            wanted = []
            for number, notification in enumerate(notifications):
                handles = {h for h, wanted in self.subscriptions.items() if wanted.matches(notification)}
                if handles:
                    wanted.append(((publisher, number), frozenset(handles)))
            assert [one for one in self.got if one[0][0] == publisher] == wanted

    async def close(self) -> None:
        self._reading.cancel()


class Library:
    """A client as users have it."""

    def __init__(self, subscriptions: dict[str, Filter]) -> None:
        self.subscriptions = subscriptions
        self.got: dict[str, list[Seen]] = {handle: [] for handle in subscriptions}
        self._client: Any
        self._reading: list[asyncio.Task[None]] = []

    async def open(self, address: str, name: str) -> None:
        self._client = await palio.connect(address, name=name, connect_timeout=60, request_timeout=60)
        held = await asyncio.gather(
            *[self._client.subscribe(wanted, ready="network") for wanted in self.subscriptions.values()]
        )
        for handle, subscription in zip(self.subscriptions, held, strict=True):
            self._reading.append(asyncio.create_task(self._read(handle, subscription)))

    async def _read(self, handle: str, subscription: palio.Subscription) -> None:
        async for event in subscription:
            self.got[handle].append(seen(event.attributes))

    def count(self) -> int:
        return sum(map(len, self.got.values()))

    def finished(self) -> bool:
        return len(self.got["last"]) == PUBLISHERS

    def check(self, published: list[list[Notification]]) -> None:
        for handle, wanted in self.subscriptions.items():
            for publisher, notifications in enumerate(published):
                expected = [(publisher, n) for n, one in enumerate(notifications) if wanted.matches(one)]
                assert [one for one in self.got[handle] if one[0] == publisher] == expected, str(wanted)

    async def close(self) -> None:
        await self._client.close()
        await asyncio.gather(*self._reading)


def seen(attributes: Any) -> Seen:
    return attributes["publisher"], attributes["count"]


async def publish(address: str, notifications: list[Notification], confirmed: bool) -> None:
    async with palio.connect(address, request_timeout=60) as client:
        for notification in notifications[:-1]:
            if confirmed:
                await client.publish(notification)
            else:
                client.publish_nowait(notification)
        await client.publish(notifications[-1])


def cases() -> Iterator[Any]:
    """Each time a tree that merges and cycles that cover; the simulator has every strategy each time."""
    quick = [(TREE, "peer", "merging"), (CYCLES, "graph", "covering")]
    for network in [*quick, (TREE, "peer", "covering"), (CYCLES, "graph", "identity")]:
        for count in (FEW_SESSIONS, SESSIONS):
            each_time = network in quick and count == FEW_SESSIONS
            yield pytest.param(
                *network, count, id=f"{network[1]}-{network[2]}-{count} sessions",
                marks=() if each_time else pytest.mark.slow,
            )  # fmt: skip


@pytest.mark.parametrize(("links", "kind", "strategy", "count"), list(cases()))
def test_deliveries_are_those_of_the_oracle(
    tmp_path: Path, links: list[tuple[str, str]], kind: str, strategy: str, count: int
) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    maker = Maker(random.Random(seed), NAMES)

    async def scene() -> None:
        # Drawn while nobody is connected: who draws for long does not answer, and is given up as silent.
        published = [events(maker, publisher) for publisher in range(PUBLISHERS)]
        async with Network(tmp_path, strategy=strategy, heartbeat=30.0) as network:
            await network.build(links, kind=kind)
            brokers = sorted(network.nodes)
            addresses = [network[name].address for name in brokers]
            sessions: list[Session | Library] = []
            for number in range(count):
                made = filters(maker, SUBSCRIPTIONS)
                sessions.append(Session(made) if number < count // 2 else Library(made))
            await asyncio.gather(
                *[one.open(addresses[n % len(addresses)], f"session {n}") for n, one in enumerate(sessions)]
            )
            await asyncio.gather(
                *[publish(addresses[n % len(addresses)], one, n % 2 == 0) for n, one in enumerate(published)]
            )
            await until(
                "everyone got the last ones",
                lambda: all(one.finished() for one in sessions),
                progress=lambda: [one.count() for one in sessions],
            )
            for one in sessions:
                await one.close()
            for one in sessions:
                one.check(published)

    play(scene)
