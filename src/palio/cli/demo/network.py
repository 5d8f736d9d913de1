"""The second part of `palio demo`: five brokers as real processes, trades that find their way through them, and
one broker that is killed and comes back. Everything that is delivered is compared with what the filters say.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import socket
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.tree import Tree

import palio
from palio.broker.settings import Settings
from palio.cli.demo.notes import NotesDiffer, show_notes
from palio.cli.demo.patterns import PATTERN, PLACE, TIME, Lookout, expected_matches
from palio.cli.demo.pipeline import Delivered, Story, look_back, missing_for_spark
from palio.cli.demo.stocks import Market, filter_texts
from palio.cli.events.trace import walk
from palio.cli.network.file import FileLink, NetworkPlan, with_addresses
from palio.cli.network.members import Member
from palio.cli.program.terminal import plural
from palio.client import Client, Subscription
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.inquiries import Hop

# Five wards of Siena, and to whom each connects: oca is in the middle.
#   torre - oca - lupa - drago
#            |
#           onda
WARDS = {"oca": (), "torre": ("oca",), "lupa": ("oca",), "drago": ("lupa",), "onda": ("oca",)}
KILLED = "lupa"
HOME = "drago"
_ARRIVE_WITHIN = 60.0
_BATCH = 50


class CheckFailed(Exception):
    """The demonstration has shown something that must not be."""


class Watcher:
    """A subscription, and what it has got."""

    def __init__(self, place: str, text: str, subscription: Subscription, kind: str) -> None:
        self.place = place
        self.filter = Filter.parse(text)
        self.kind = kind
        self.got: Counter[str] = Counter()
        self._subscription = subscription
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        async for event in self._subscription:
            self.got[str(event["trade"])] += 1
            if self.kind == "durable":
                await event.ack()

    def stop(self) -> None:
        self._task.cancel()


class NetworkDemo:
    """The story, step by step."""

    def __init__(
        self, console: Console, seed: int, subscribers: int, trades: int, *, report: Path | None = None
    ) -> None:
        """With the place of a report, what was published becomes data in the end."""
        self._console = console
        self._report = report
        self._market = Market(seed)
        self._events = self._market.events()
        self._texts = filter_texts(10_000, self._market, seed)
        self._subscribers = subscribers
        self._trades = trades
        self._number = itertools.count(1)
        self._published: list[Notification] = []
        self._lookout: Lookout | None = None
        self._quiet: list[str] = []  # the trades of the time before the trouble
        self._watchers: list[Watcher] = []
        self._clients: dict[str, Client] = {}
        self._wards: dict[str, Member] = {}
        self._reserved: list[socket.socket] = []

    async def run(self) -> bool:
        """Tell the story. Returns whether every check held."""
        with tempfile.TemporaryDirectory(prefix="palio-demo-") as folder:
            try:
                await self._story(Path(folder))
            except (CheckFailed, NotesDiffer, palio.PalioError, TimeoutError) as problem:
                self._say(f"✗ {problem}", "bold red")
                return False
            finally:
                await self._clean_up()
        self._say("✓ Every delivery was as the filters say: nothing lost, nothing too much.", "bold green")
        return True

    async def _story(self, folder: Path) -> None:
        await self._start(folder)
        await self._subscribe()
        await self._look_out()
        await self._publish_quietly()
        await self._trace()
        await self._kill_and_return()
        await self._reach_back()
        await self._found()
        if self._report is not None:
            await self._look_back(folder, self._report)
        for watcher in self._watchers:
            watcher.stop()  # they count trades
        await show_notes(self._clients["onda"], self._clients[HOME], self._clients["torre"], self._say)

    async def _look_out(self) -> None:
        self._lookout = await Lookout.at(self._clients[PLACE], self._clients["oca"], self._clients["onda"])
        self._say(f"A lookout at {PLACE} waits for one thing that follows another:")
        self._say(f"  {PATTERN}", "cyan")

    async def _found(self) -> None:
        assert self._lookout is not None
        expected = expected_matches(self._published)
        if not await self._lookout.complete(expected, _ARRIVE_WITHIN):
            raise CheckFailed(
                f"{plural(len(expected), 'match')} of the pattern are in the trades, the lookout found "
                f"{len(self._lookout.found):,} and told of {len(self._lookout.heard):,}."
            )
        self._say(
            f"The lookout found {plural(len(expected), 'rise')} while they happened, and published each as an "
            "event, of which somebody at onda heard."
        )

    async def _look_back(self, folder: Path, report: Path) -> None:
        """What Spark finds in the journals is what was delivered."""
        self._say("\nThe pipeline", "bold")
        if (missing := missing_for_spark()) is not None:
            self._say(f"It is left out here. {missing}")
            return
        quiet = frozenset(self._quiet)
        everything = frozenset(str(one["trade"]) for one in self._published)
        delivered = [
            # Who is not durable misses what is published while its broker is cut off.
            Delivered(str(one.filter), frozenset(one.got), quiet if one.kind == "transient" else everything)
            for one in self._watchers
        ]
        url = f"palio://{self._wards['oca'].server}"
        assert self._lookout is not None
        story = Story(delivered, frozenset(self._lookout.found), report)
        difference = await asyncio.to_thread(look_back, self._console, url, folder, story)
        if difference is not None:
            raise CheckFailed(difference)
        self._say("What Spark finds is exactly what the network delivered, and what the lookout saw.")

    async def _start(self, folder: Path) -> None:
        self._say("\nA network", "bold")
        started = time.perf_counter()
        settings = {
            name: Settings(
                name=name, listen="127.0.0.1:0", http="off", data=str(folder / name), log_level="warning"
            )
            for name in WARDS
        }
        links = tuple([FileLink(name, other) for name, others in WARDS.items() for other in others])
        linked, self._reserved = with_addresses(NetworkPlan(settings, links, str(folder)))
        self._wards = {name: Member(one) for name, one in linked.items()}
        await asyncio.gather(*map(self._start_ward, WARDS))
        self._say(f"Five brokers are up, each a process of its own, in {time.perf_counter() - started:.1f} s:")
        self._say("  torre - oca - lupa - drago\n           |\n          onda", "cyan")

    async def _start_ward(self, name: str) -> None:
        ward = self._wards[name]
        await ward.start()
        self._clients[name] = await palio.connect(
            f"palio://{ward.server}", name=f"demo-{name}", request_timeout=20.0
        )

    async def _subscribe(self) -> None:
        places = itertools.cycle(WARDS)
        for _ in range(self._subscribers):
            await self._watch(next(places), next(self._texts), "transient")
        self._desk = f'exchange = "{next(self._events)["exchange"]}" and volume > 150'
        await self._watch(HOME, self._desk, "durable")
        self._say(
            f"{plural(self._subscribers, 'subscriber')} spread over all brokers say what they want; one more, "
            f"desk-7 at {HOME}, is durable:"
        )
        self._say(f"  {self._desk}", "cyan")
        await self._clients["torre"].advertise(
            'symbol starts with "", exchange in ("NYSE", "LSE", "XETRA", "TSE"), price > 0'
        )

    async def _watch(self, place: str, text: str, kind: str, since: str | None = None) -> Watcher:
        client = self._clients[place]
        name = "desk-7" if kind == "durable" else None
        subscription = await client.subscribe(text, durable=name, since=since, ready="network", timeout=30.0)
        watcher = Watcher(place, text, subscription, kind)
        self._watchers.append(watcher)
        return watcher

    async def _publish(self, place: str, count: int) -> list[Notification]:
        """Publish trades at a broker, confirmed."""
        made: list[Notification] = []
        for _ in range(count):
            name = f"t{next(self._number)}"
            trade = {**next(self._events).attributes, "trade": name, "ward": place, TIME: datetime.now(UTC)}
            made.append(Notification(trade, id=name))
        for start in range(0, count, _BATCH):
            await self._clients[place].publish(made[start : start + _BATCH])
        self._published += made
        return made

    async def _publish_quietly(self) -> None:
        started = time.perf_counter()
        share = self._trades // len(WARDS)
        made = [one for place in WARDS for one in await self._publish(place, share)]
        await self._arrived(self._watchers, made)
        self._quiet = [str(one["trade"]) for one in made]
        seconds = time.perf_counter() - started
        deliveries = sum(watcher.got.total() for watcher in self._watchers)
        self._say(
            f"{plural(len(made), 'trade')}, published at all five and confirmed on disk, made "
            f"{deliveries:,} deliveries in {seconds:.1f} s: each where somebody wants it, and nowhere else."
        )

    async def _trace(self) -> None:
        # One that goes far: many brokers have somebody who wants it. The lookout is not one of the watchers.
        event = max((one for one in self._published if one["ward"] != PLACE), key=self._places_of)
        route = await self._clients["torre"].trace(event)
        self._say("\nWho would get this trade, and by which way? (palio trace)", "bold")
        self._say(f"  {event.to_json()}", "dim")
        self._console.print(_tree(route))
        named = {f"demo-{watcher.place}" for watcher in self._watchers if watcher.filter.matches(event)}
        told = {recipient.name for hop in walk(route) for recipient in hop.recipients}
        expected = {"desk-7" if self._is_desk(name, event) else name for name in named}
        if expected - {"desk-7"} != told - {"desk-7"} or not expected <= told:
            raise CheckFailed(f"The trace named {sorted(told)}, but {sorted(expected)} want it.")

    def _places_of(self, event: Notification) -> int:
        return len({watcher.place for watcher in self._watchers if watcher.filter.matches(event)})

    def _is_desk(self, session: str, event: Notification) -> bool:
        """Whether a session wants an event only by its durable subscription."""
        return session == f"demo-{HOME}" and not any(
            watcher.filter.matches(event)
            for watcher in self._watchers
            if watcher.place == HOME and watcher.kind == "transient"
        )

    async def _kill_and_return(self) -> None:
        desk = next(watcher for watcher in self._watchers if watcher.kind == "durable")
        self._say("\nTrouble", "bold")
        before = desk.got.total()
        await self._wards[KILLED].end(signal.SIGKILL)
        self._say(f"{KILLED} is killed (kill -9): {HOME} is cut off, and with it desk-7. The others go on.")
        made = await self._publish("torre", self._trades // 4)
        owed = sum(desk.filter.matches(one) for one in made)
        self._say(f"{plural(len(made), 'trade')} more are confirmed at torre; {owed} of them are for desk-7.")
        if desk.got.total() != before:
            raise CheckFailed("Something came through a broker that is not there.")
        started = time.perf_counter()
        await self._wards[KILLED].start()
        await self._arrived([desk], self._published)
        self._say(
            f"{KILLED} is back, and {time.perf_counter() - started:.1f} s later desk-7 has all {owed} of them. "
            "What was confirmed is not lost."
        )

    async def _reach_back(self) -> None:
        history = await self._watch("onda", f"{self._desk} and price > 20", "history", since="all")
        await self._arrived([history], self._published)
        self._say(
            f"\nA newcomer at onda asks for everything since the beginning, and gets "
            f"{plural(history.got.total(), 'trade')} from the journals of five brokers."
        )

    async def _arrived(self, watchers: list[Watcher], trades: list[Notification]) -> None:
        """Wait until all have what the filters say, then see that nobody has more."""
        owed = {one: {str(trade["trade"]) for trade in trades if one.filter.matches(trade)} for one in watchers}
        until = time.monotonic() + _ARRIVE_WITHIN
        while any(not wanted <= watcher.got.keys() for watcher, wanted in owed.items()):
            if time.monotonic() > until:
                late = next(watcher for watcher, wanted in owed.items() if not wanted <= watcher.got.keys())
                missing = sorted(owed[late] - late.got.keys())
                raise CheckFailed(
                    f"{plural(len(missing), 'trade')} did not come to {late.place} "
                    f"({late.kind}, {late.filter}), the first is {missing[0]}."
                )
            await asyncio.sleep(0.02)
        everything = {str(one["trade"]): one for one in self._published}
        for watcher in watchers:
            wrong = [name for name in watcher.got if not watcher.filter.matches(everything[name])]
            twice = [name for name, count in watcher.got.items() if count > 1]
            if wrong or twice:
                what = f"got {wrong[0]}, which its filter does not select" if wrong else f"got {twice[0]} twice"
                raise CheckFailed(f"{watcher.place} ({watcher.kind}, {watcher.filter}) {what}.")

    async def _clean_up(self) -> None:
        for watcher in self._watchers:
            watcher.stop()
        if self._lookout is not None:
            self._lookout.stop()
        for client in self._clients.values():
            with contextlib.suppress(palio.PalioError, TimeoutError):
                await client.close()
        await asyncio.gather(*[ward.end(signal.SIGTERM) for ward in self._wards.values()])
        for held in self._reserved:
            held.close()

    def _say(self, sentence: str, style: str = "") -> None:
        self._console.print(sentence, style=style, soft_wrap=not self._console.is_terminal)


def _tree(route: Hop, into: Tree | None = None) -> Tree:
    names: Counter[Any] = Counter(recipient.name for recipient in route.recipients)
    takers = ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in sorted(names.items()))
    label = f"{route.broker}: {takers}" if takers else route.broker
    branch = Tree(label, guide_style="cyan") if into is None else into.add(label)
    for onward in route.onward:
        _tree(onward, branch)
    return branch
