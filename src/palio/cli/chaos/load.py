"""What goes on in the network meanwhile: clients that publish, take and ask, and tell the oracle what they see.

Each broker has a *station*: a client that publishes numbered events, each confirmed, takes what everybody
publishes with a transient subscription, and answers requests. Durable subscriptions have clients of their own.
A client stays with its broker: when that one dies, it waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import palio
from palio.cli.chaos.oracle import VALUES, ChaosOracle, WantedValues
from palio.client import Backoff, Client, Confirmation
from palio.client.event import Event
from palio.client.states import State

# So that clients are back soon after their broker.
_BACKOFF = Backoff(longest=0.5)
# Nobody waits so long for an answer while brokers come back; whoever does, waits for a network that is broken.
_REQUEST_TIMEOUT = 120.0
# Events of a station that may be out and not confirmed: while there are more, it publishes none.
_MOST_UNCONFIRMED = 100
_ASK_EVERY, _REPLY_WITHIN = 1.0, 3.0
_READY_WITHIN = 60.0
_CLOSE_WITHIN = 2.0


class Load:
    """All clients. `addresses` are those of the brokers, by their names."""

    def __init__(
        self, oracle: ChaosOracle, addresses: Mapping[str, str], *, rate: float, heartbeat: float, seed: int
    ) -> None:
        self.oracle = oracle
        self.began = time.monotonic()
        self.stations: dict[str, Client] = {}
        self.requests: Counter[str] = Counter()
        self._addresses = addresses
        self._rate = rate
        self._heartbeat = heartbeat
        self._seed = seed
        self._clients: list[Client] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._publishing: list[asyncio.Task[Any]] = []
        self._unconfirmed: Counter[str] = Counter()
        self._drawing = Random(f"chaos wishes {seed}")

    def now(self) -> float:
        """Seconds since the load began."""
        return time.monotonic() - self.began

    async def open(self, durable: int) -> None:
        """Connect all clients, and wait until the whole network knows what they want."""
        names = list(self._addresses)
        await asyncio.gather(*[self._open_station(name) for name in names])
        takers = [(f"d{number + 1:02}", names[number % len(names)]) for number in range(durable)]
        await asyncio.gather(*[self._open_durable(name, broker, self._draw_wish()) for name, broker in takers])

    def _draw_wish(self) -> WantedValues:
        low = self._drawing.randrange(VALUES - 10)
        return WantedValues(low, self._drawing.randint(low + 10, VALUES))

    async def _connect(
        self, name: str, broker: str, on_state: Callable[[State, str], None] | None = None
    ) -> Client:
        client = await palio.connect(
            self._addresses[broker],
            name=name,
            request_timeout=_REQUEST_TIMEOUT,
            connect_within=_READY_WITHIN,
            heartbeat=self._heartbeat,
            backoff=_BACKOFF,
            other_brokers=False,  # each of them belongs to its broker
            on_state=on_state,
        )
        self._clients.append(client)
        return client

    async def _open_station(self, name: str) -> None:
        taker = self.oracle.add_transient(name, WantedValues())

        def on_state(state: State, reason: str) -> None:
            change = taker.back if state is State.LIVE else taker.away
            change("connection", self.now())

        client = self.stations[name] = await self._connect(f"station-{name}", name, on_state)
        events = await client.subscribe(taker.wish.text, ready="network", timeout=_READY_WITHIN)
        questions = await client.subscribe("exists(ask)", ready="network", timeout=_READY_WITHIN)
        self._run(self._take(name, events))
        self._run(self._answer(name, questions))

    async def _open_durable(self, name: str, broker: str, wish: WantedValues) -> None:
        self.oracle.add_durable(name, broker, wish)
        client = await self._connect(f"taker-{name}", broker)
        subscription = await client.subscribe(wish.text, durable=name, ready="network", timeout=_READY_WITHIN)
        self._run(self._take(name, subscription))

    def _run(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Taking

    async def _take(self, name: str, events: palio.Subscription[Any]) -> None:
        event: Event[Any]
        async for event in events:
            key = event.origin, event.sequence
            publisher, count = str(event["chaos"]), event.integer("count")
            self.oracle.came(name, publisher, count, key, self.now(), again=event.redelivered)
            await event.ack()

    async def _answer(self, name: str, questions: palio.Subscription[Any]) -> None:
        async for question in questions:
            if question.is_request:
                await question.reply({"from": name})

    # Publishing

    def begin(self) -> None:
        """Begin to publish and to ask; time is counted from here."""
        self.began = time.monotonic()
        for taker in self.oracle.transient.values():
            taker.back("new", 0.0)
        self._publishing = [self._run(self._publish(name)) for name in self.stations]
        self._publishing.append(self._run(self._ask()))

    async def stop(self) -> None:
        """Publish and ask no more."""
        for task in self._publishing:
            task.cancel()
        await asyncio.gather(*self._publishing, return_exceptions=True)

    async def _publish(self, name: str) -> None:
        chance, client, loop = (
            Random(f"chaos {self._seed} {name}"),
            self.stations[name],
            asyncio.get_running_loop(),
        )
        pause = len(self.stations) / self._rate
        at = loop.time() + chance.uniform(0.0, pause)
        while True:
            await asyncio.sleep(at - loop.time())
            at = max(at + pause, loop.time())
            if client.state is State.LIVE and self._unconfirmed[name] < _MOST_UNCONFIRMED:
                value = chance.randrange(VALUES)
                count = self.oracle.published(name, value, self.now())
                content = {"chaos": name, "count": count, "value": value}
                future = client.publish_nowait(content, confirm=True)
                self._unconfirmed[name] += 1
                future.add_done_callback(self._confirmed(name, count))

    def _confirmed(self, name: str, count: int) -> Callable[[asyncio.Future[Confirmation]], None]:
        def done(future: asyncio.Future[Confirmation]) -> None:
            self._unconfirmed[name] -= 1
            if not future.cancelled() and future.exception() is None:
                answer = future.result()
                self.oracle.confirmed(name, count, (answer.origin, answer.sequence), self.now())

        return done

    # Asking

    async def _ask(self) -> None:
        chance = Random(f"chaos asks {self._seed}")
        number = 0
        while True:
            await asyncio.sleep(_ASK_EVERY)
            client = self.stations[chance.choice(list(self.stations))]
            if client.state is State.LIVE:
                number += 1
                self._run(self._ask_once(client, number))

    async def _ask_once(self, client: Client, number: int) -> None:
        self.requests["asked"] += 1
        try:
            replies = await client.request({"ask": number}, timeout=_REPLY_WITHIN, again=True)
        except palio.PalioError as problem:
            self.requests[type(problem).__name__] += 1
        else:
            self.requests["replies"] += len(replies)
            how = "complete" if replies.complete else "told what is missing"
            self.requests[how if replies.tries == 1 else f"{how}, at the second try"] += 1

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*map(_close, self._clients))


async def _close(client: Client) -> None:
    with contextlib.suppress(palio.PalioError, TimeoutError):
        async with asyncio.timeout(_CLOSE_WITHIN):
            await client.close()
