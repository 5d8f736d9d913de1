"""Delivery while brokers come and go: how many events reach their takers, in trees, in meshes, by fixed links.

Brokers die and come back all the time, each away for some seconds; publishers publish, and every broker wants
some topics. An event counts for whoever wants its topic and was there from a moment before it was published
until long after; what the publisher's own broker took along when it died does not count. Fixed links are what
an operator would have written: each broker connects to the nearest one that is older and has room.
"""

from __future__ import annotations

import time
from random import Random
from typing import Literal, TypeAlias

import msgspec

from palio.routing.router import Router
from palio.sim.overlay.oracle import parts
from palio.sim.overlay.script import OverlayScenario
from palio.sim.overlay.world import OverlayBroker, OverlayWorld, RouterMaker
from palio.sim.scenario import AnyScenario, WrongScenario

ChurnOverlay: TypeAlias = Literal["tree", "mesh", "fixed"]

# Seconds: in which brokers begin, and come together; in which what was published last can come.
_BEGINS, _TOGETHER, _COMES = 10.0, 40.0, 10.0
# Whoever has begun so many seconds ago counts as a taker. A broker that lives so long has sent on what its
# publishers have published.
_JOINED, _SENT = 5.0, 1.0
# Seconds until who dials a fixed link tries again, as brokers do with growing pauses of up to five.
_AGAIN = 1.0
# Brokers with so many neighbours have no room for more, if an operator arranges them.
_FIXED_DEGREE = 4


class ChurnScenario(AnyScenario, frozen=True, kw_only=True, tag="churn"):
    """So many brokers, of which so many die in a minute, all together; each is away for some seconds.

    With `silent` deaths, neighbours notice them by heartbeats, and otherwise at once.
    """

    seed: int = 1
    overlay: ChurnOverlay = "tree"
    brokers: int = 30
    degree: int = 8
    links: int = 3
    deaths: float = 10.0  # in a minute
    away: float = 10.0
    silent: bool = False
    seconds: float = 60.0
    rate: float = 20.0  # events a second, of all publishers together
    topics: int = 10
    wanted: int = 2  # topics that each broker wants

    def __post_init__(self) -> None:
        self._demand_some("brokers", "degree", "links", "topics", "wanted")
        self._demand_more_than_nothing("rate", "seconds")
        self._demand(lambda value: value >= 0, "It cannot be less than nothing.", "deaths", "away")
        if self.wanted > self.topics:
            raise WrongScenario("wanted", f"There are {self.topics} topics.")


class ChurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the events. Shares are those of all deliveries that were due, and of the brokers there."""

    violations: int = 0  # events that were delivered twice
    died: int = 0  # brokers
    published: int = 0
    due: int = 0
    missed: int = 0
    redundant: int = 0  # copies that a broker got beyond the first
    messages: int = 0
    overlay_messages: int = 0  # of these, about links: hellos, names, who is near, states of links
    forwards: int = 0
    dialled: int = 0
    together: float = 0.0  # share of the brokers there that the largest part has, on average
    wall_seconds: float = 0.0


class _Published(msgspec.Struct, frozen=True):
    """An event, the broker of its publisher, and who is due to get it: in which of their lives."""

    number: int
    publisher: tuple[OverlayBroker, int]
    takers: tuple[tuple[OverlayBroker, int], ...]


ABOUT_LINKS = ("Hello", "Goodbye", "Joined", "Nearby", "Suggest", "LinkState")


class Churn:
    """One run."""

    def __init__(self, scenario: ChurnScenario, make_router: RouterMaker = Router) -> None:
        self._scenario = scenario
        kind: Literal["tree", "mesh"] = "mesh" if scenario.overlay == "mesh" else "tree"
        world = OverlayScenario(
            seed=scenario.seed,
            brokers=scenario.brokers,
            joins=tuple(range(min(3, scenario.brokers))),
            kind=kind,
            degree=scenario.degree,
            links=scenario.links,
        )
        self._world = OverlayWorld(world, make_router, subscribing=False)
        self._world.most_said = float("inf")
        # Each by itself, so that the same happens whatever the overlay is.
        self._publishing, self._dying = Random(f"churn p {scenario.seed}"), Random(f"churn d {scenario.seed}")
        self._dialling = Random(f"churn l {scenario.seed}")
        topics = range(scenario.topics)
        self._wants = {
            broker.name: frozenset(self._publishing.sample(topics, scenario.wanted))
            for broker in self._world.brokers
        }
        self._since: dict[str, float] = {}
        self._lasted: set[int] = set()  # events that a broker has sent on in any case
        self._published = self._due = self._missed = 0
        self._shares: list[float] = []
        self._died = 0

    def outcome(self) -> ChurnOutcome:
        """Lets it happen, and counts."""
        began = time.perf_counter()
        world, scenario = self._world, self._scenario
        if scenario.overlay == "fixed":
            self._fix_links()
        for broker in world.brokers:
            world.after(_BEGINS * broker.number / scenario.brokers, self._begin, broker)
        world.run(_TOGETHER)
        sent, dialled = world.sent.copy(), world.dialled
        end = _TOGETHER + scenario.seconds
        rates = scenario.rate, scenario.deaths / 60.0
        chances = self._publishing, self._dying
        for happens, rate, chance in zip((self._publish, self._die), rates, chances, strict=True):
            moment = _TOGETHER + (chance.expovariate(rate) if rate else scenario.seconds)
            while moment < end:
                world.after(moment - world.now, happens)
                moment += chance.expovariate(rate)
        for second in range(int(scenario.seconds)):
            world.after(second, self._look)
        world.run(end)
        messages, dialled = world.sent - sent, world.dialled - dialled
        world.run(end + 2 * _COMES)
        copies = [count - (name != origin) for (name, (origin, _)), count in world.copies.items() if count > 0]
        return ChurnOutcome(
            violations=sum([count > 1 for count in world.delivered.values()]),
            died=self._died,
            published=self._published,
            due=self._due,
            missed=self._missed,
            redundant=sum([max(0, count) for count in copies]),
            messages=messages.total(),
            overlay_messages=sum([messages[kind] for kind in ABOUT_LINKS]),
            forwards=messages["Forward"],
            dialled=dialled,
            together=sum(self._shares) / max(1, len(self._shares)),
            wall_seconds=time.perf_counter() - began,
        )

    # What happens

    def _begin(self, broker: OverlayBroker) -> None:
        self._world.begin(broker)
        topics = ", ".join(map(str, sorted(self._wants[broker.name])))
        self._world.subscribe(broker, f"topic in ({topics})", "topics")
        self._since[broker.name] = self._world.now

    def _publish(self) -> None:
        publisher = self._world.brokers[self._publishing.randrange(self._scenario.brokers)]
        topic = self._publishing.randrange(self._scenario.topics)
        if publisher.router is None:
            return
        takers = [
            (broker, broker.life)
            for broker in self._world.there()
            if topic in self._wants[broker.name] and self._world.now - self._since[broker.name] >= _JOINED
        ]
        self._published += 1
        event = _Published(
            self._world.publish(publisher, topic=topic), (publisher, publisher.life), tuple(takers)
        )
        self._world.after(_SENT, self._sent, event)
        self._world.after(_COMES, self._judge, event)

    def _sent(self, event: _Published) -> None:
        publisher, life = event.publisher
        if publisher.life == life:
            self._lasted.add(event.number)

    def _judge(self, event: _Published) -> None:
        for taker, life in event.takers if event.number in self._lasted else ():
            if taker.life == life:
                self._due += 1
                self._missed += not self._world.delivered[taker.name, event.number]

    def _die(self) -> None:
        broker = self._world.brokers[self._dying.randrange(self._scenario.brokers)]
        if broker.router is not None and len(self._world.there()) > 1:
            self._died += 1
            self._world.crash(broker, silent=self._scenario.silent)
            self._world.after(self._scenario.away, self._begin, broker)

    def _look(self) -> None:
        there = self._world.there()
        if there:
            self._shares.append(len(parts(self._world)[0]) / len(there))

    # Fixed links

    def _fix_links(self) -> None:
        neighbours = dict.fromkeys([broker.name for broker in self._world.brokers], 0)
        for broker in self._world.brokers:
            self._world.settings[broker.name] = {"kind": "fixed", "join": ()}
            older = [
                one for one in self._world.brokers[: broker.number] if neighbours[one.name] < _FIXED_DEGREE
            ]
            if older:
                other = min(older, key=lambda one: self._world.latency(broker.name, one.name))
                neighbours[broker.name] += 1
                neighbours[other.name] += 1
                self._keep(broker, other)

    def _keep(self, broker: OverlayBroker, other: OverlayBroker) -> None:
        """Dial a fixed link whenever it is not there."""
        self._world.connect(broker, other)
        self._world.after(_AGAIN * self._dialling.uniform(0.5, 1.0), self._keep, broker, other)


def run_churn(scenario: ChurnScenario) -> ChurnOutcome:
    """The outcome of a scenario."""
    return Churn(scenario).outcome()
