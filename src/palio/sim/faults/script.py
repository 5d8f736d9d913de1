"""Scripts: the steps of a run with faults, drawn from its scenario's seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

import msgspec

from palio.model.filter import Filter
from palio.sim.faults import steps
from palio.sim.faults.knots import Knots, early
from palio.sim.faults.scenario import FaultScenario
from palio.sim.topologies import Layout

_Place = TypeVar("_Place")

FILTERS = (
    "n > 0", "kind = 1", "kind = 2", "kind > 1", "kind = 1 and v > 3", "v < 5", "v > 2 and v < 8",
    "kind = 3 or v = 7", "kind = 2 and v >= 5",
)  # fmt: skip


KEPT = ("true", "true", "true", "v < 5", "kind = 1", 'xml.key = "c1" or v > 6')
_DOCUMENTS = 3  # so few that versions meet


def drawn_steps(scenario: FaultScenario, layout: Layout) -> tuple[steps.Step, ...]:
    """All steps of a scenario, as they are drawn."""
    drawn = tuple(_Drawing(scenario, layout).all())
    mix = scenario.mix
    if not mix:
        return drawn
    if "early" in mix:
        drawn = tuple(map(early, drawn))
    return (*drawn, *Knots(scenario.seed, layout, scenario.length, drawn, FILTERS).tied(mix))


def are_one_network(brokers: set[str], links: list[set[str]]) -> bool:
    """Whether brokers have met without any others; parts that never met cannot know of each other."""
    reached = {min(brokers)}
    while more := [link for link in links if link <= brokers and len(link & reached) == 1]:
        reached.update(*more)
    return reached == brokers


def kept(scenario: FaultScenario, script: tuple[steps.Step, ...]) -> list[steps.Step]:
    """The steps that the scenario keeps, numbered in the order of their times."""
    found = sorted(script, key=lambda step: step.time)
    numbered = [msgspec.structs.replace(step, number=number) for number, step in enumerate(found)]
    keep = scenario.keep
    return numbered if keep is None else [step for step in numbered if step.number in set(keep)]


def publishers_places(seed: int, publishers: int, brokers: Sequence[_Place]) -> list[_Place]:
    """Where each publisher is."""
    chance = Random(f"publishers {seed}")
    return [chance.choice(brokers) for _ in range(publishers)]


def keepers_places(
    scenario: FaultScenario, brokers: Iterable[str], absent: Collection[str]
) -> dict[str, Filter]:
    """Which brokers keep current documents of others, and which ones. Those that join later do not."""
    chance = Random(f"keepers {scenario.seed}")
    there = [broker for broker in brokers if broker not in absent]
    places = sorted(chance.sample(there, min(scenario.keepers, len(there))))
    usual = chance.choice(KEPT)
    return {broker: Filter.parse(usual if chance.random() < 0.8 else chance.choice(KEPT)) for broker in places}


class _Drawing:
    def __init__(self, scenario: FaultScenario, layout: Layout) -> None:
        self._scenario = scenario
        self._layout = layout
        self._chance = Random(f"faults {scenario.seed}")
        self._brokers = [f"b{number}" for number in range(layout.size)]
        self._takers = [f"s{number}" for number in range(scenario.takers)]
        # Clients and faults like some places more than others, so that they meet.
        self._popular = self._chance.choices(self._brokers, k=2)
        # So do moments: much of what goes wrong needs several things that happen at almost the same time.
        moments = self._chance.choice((0, 1, 2, 3))
        self._moments = [self._chance.uniform(0.1, 0.8) * scenario.length for _ in range(moments)]
        self._close = "close" in scenario.mix
        if self._close:
            self._popular = self._popular[:1]
            self._moments = [self._chance.uniform(0.1, 0.6) * scenario.length]

    def _broker(self) -> str:
        popular = self._chance.random() < (0.8 if self._close else 0.4)
        return self._chance.choice(self._popular if popular else self._brokers)

    def _time(self, share: float = 0.95) -> float:
        chance = self._chance
        if self._close and chance.random() < 0.8:
            return self._moments[0] + chance.uniform(0.0, 0.5)
        if self._moments and chance.random() < 0.6:
            return max(0.0, chance.choice(self._moments) + chance.uniform(-0.1, 0.4))
        return chance.uniform(0.0, share * self._scenario.length)

    def _span(self) -> float:
        """How long something lasts: often a moment, sometimes long."""
        chance = self._chance
        return chance.choice((chance.uniform(0.0, 0.5), chance.uniform(0.2, 3.0), chance.uniform(2.0, 10.0)))

    def all(self) -> Iterator[steps.Step]:
        scenario = self._scenario
        yield from self._takes()
        yield from self._says()
        for _ in range(scenario.crashes):
            yield from self._crash()
        for _ in range(scenario.pauses):
            yield self._pause()
        if self._layout.links:
            for _ in range(scenario.cuts):
                yield self._cut()
            for _ in range(scenario.partitions):
                yield from self._partition()
            for _ in range(scenario.lags):
                yield self._lag()
            if scenario.flapping:
                yield from self._flap()
        for _ in range(scenario.full_disks):
            yield steps.Full(time=self._time(), broker=self._broker(), seconds=self._span())
        for _ in range(scenario.slow_disks):
            each = self._chance.choice((0.05, 0.3, 1.0))
            yield steps.SlowDisk(time=self._time(), broker=self._broker(), seconds=self._span(), each=each)
        for _ in range(scenario.jumps):
            by = self._chance.choice((self._chance.uniform(0.5, 60.0), self._chance.uniform(-2.0, 0.0)))
            yield steps.Jump(time=self._time(), broker=self._broker(), by=by)
        for _ in range(scenario.leaves):
            yield self._leave()
        for _ in range(scenario.refilters):
            yield steps.Refilter(
                time=self._time(), name=self._chance.choice(self._takers), filter=self._chance.choice(FILTERS)
            )
        for name in self._chance.sample(self._takers, min(scenario.ends, len(self._takers))):
            yield steps.End(time=self._time(), name=name)
        for broker in self._joining():
            yield steps.Join(time=self._time(), broker=broker)
        for broker in self._departing():
            yield steps.Depart(time=self._time(), broker=broker)
        for _ in range(scenario.shifts):
            publisher = f"p{self._chance.randrange(scenario.publishers)}"
            yield steps.Shift(time=self._time(), publisher=publisher, broker=self._broker())
        for _ in range(scenario.halts):
            yield steps.Halt(time=self._time(), name=self._chance.choice(self._takers), seconds=self._span())
        for _ in range(scenario.rewinds):
            yield steps.Rewind(time=self._time(), name=self._chance.choice(self._takers))
        for number in range(scenario.older):
            yield from self._older(1_000 * (number + 1))
        for number in range(scenario.flips):
            yield from self._flip(10_000 + 1_000 * number)
        if scenario.documents:
            # Drawn apart, so that all else is what it would be without them.
            self._chance = Random(f"documents {scenario.seed}")
            yield from self._documents(30_000)

    def _takes(self) -> Iterator[steps.Step]:
        chance = self._chance
        for position, name in enumerate(self._takers):
            # Most are there when it begins, the others find a history.
            late = position > 0 and chance.random() < 0.35
            time = self._time(0.8) if late else chance.uniform(0.0, 0.5)
            since: str | float = "now"
            if chance.random() < (0.7 if late else 0.2):
                since = chance.choice(("all", round(chance.uniform(0.0, time), 3)))
            yield steps.Take(
                time=time, name=name, broker=self._broker(), filter=chance.choice(FILTERS), since=since
            )

    def _says(self) -> Iterator[steps.Step]:
        chance, scenario = self._chance, self._scenario
        number = 0
        priorities = chance.choice(((4,), (4,), (2, 4, 7)))
        lifetimes = chance.choice(((None,), (None,), (None, None, 2.0, 10_000.0)))
        while number < scenario.notifications:
            time = self._time(1.0)
            # Notifications come in bursts, so that several are under way when something happens.
            for _ in range(chance.choice((1, 1, 2, 5))):
                size = chance.choice((1, 1, 1, 3))
                contents = tuple(
                    (number + offset, chance.randint(1, 3), chance.randint(0, 9))
                    for offset in range(1, size + 1)
                )
                number += size
                time += chance.uniform(0.0, 0.05)
                yield steps.Say(
                    time=time,
                    publisher=f"p{chance.randrange(scenario.publishers)}",
                    contents=contents,
                    identified=chance.random() < 0.85,
                    priority=chance.choice(priorities),
                    lifetime=chance.choice(lifetimes),
                )

    def _departing(self) -> list[str]:
        """Brokers that leave; drawn apart, so that all else is what it was without them."""
        chance = Random(f"faults departing {self._scenario.seed}")
        return self._dispensable(chance, self._scenario.departs, in_any_order=True)

    def _joining(self) -> list[str]:
        return self._dispensable(self._chance, self._scenario.joins)

    def _dispensable(self, chance: Random, most: int, *, in_any_order: bool = False) -> list[str]:
        """Brokers without which the others are one network."""
        found: list[str] = []
        links = [{f"b{link.one}", f"b{link.other}"} for link in self._layout.links]
        for broker in chance.sample(self._brokers, len(self._brokers)):
            rest = set(self._brokers) - {broker, *found}
            alone = set(self._brokers) - {broker} if in_any_order else rest
            enough = len(found) >= most or not rest
            if not enough and are_one_network(rest, links) and are_one_network(alone, links):
                found.append(broker)
        return found

    def _crash(self) -> Iterator[steps.Step]:
        chance = self._chance
        broker, time = self._broker(), self._time()
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            down = chance.choice((0.0, chance.uniform(0.0, 1.0), self._span()))
            yield steps.Crash(
                time=time,
                broker=broker,
                effects=chance.choice((0, chance.randint(0, 10), chance.randint(0, 60))),
                share=chance.choice((0.0, 1.0, chance.random())),
                down=down,
            )
            time += down + chance.uniform(0.0, 2.0)  # some crash again while they begin

    def _older(self, first: int) -> Iterator[steps.Step]:
        """A disk that comes back older, often where something is published: just before that, and soon after.

        Most often it is as it was a moment ago: some writes are lost, and the network knows of them. What is
        published has the numbers from the first on.
        """
        chance, publishers = self._chance, self._scenario.publishers
        broker, time = self._broker(), self._time()
        if chance.random() < 0.6:
            broker = chance.choice(publishers_places(self._scenario.seed, publishers, self._brokers))
        back = chance.choice(
            (None, chance.uniform(0.0, 1.0), chance.uniform(0.0, 3.0), chance.uniform(0.0, time))
        )
        down = chance.choice((0.0, chance.uniform(0.0, 1.0), self._span()))
        yield steps.Older(time=time, broker=broker, back=back, down=down)
        for _ in range(chance.choice((0, 2, 4, 8))):
            when = chance.choice((time - chance.uniform(0.0, 1.0), time + down + chance.uniform(0.0, 2.0)))
            size = chance.choice((1, 1, 3))
            contents = [(first + n, chance.randint(1, 3), chance.randint(0, 9)) for n in range(size)]
            publisher = f"p{chance.randrange(publishers)}"
            yield steps.Say(time=max(0.0, when), publisher=publisher, contents=tuple(contents))
            first += size

    def _flip(self, first: int) -> Iterator[steps.Step]:
        """Bits flip on a disk, and what is there has to be read: somebody has missed it, or begins anew.

        Often there is something to read of which others know already: what is published has the numbers from
        the first on.
        """
        chance, publishers = self._chance, self._scenario.publishers
        broker, time = self._broker(), self._time(0.8)
        if chance.random() < 0.5:
            broker = chance.choice(publishers_places(self._scenario.seed, publishers, self._brokers))
        before = time - chance.uniform(0.1, 1.5)
        links = range(len(self._layout.links))
        if links and chance.random() < 0.6:  # somebody misses what is published, and fetches it
            link, seconds = chance.choice(links), time - before + self._span()
            yield steps.Cut(time=max(0.0, before), links=(link,), seconds=seconds, noticed=(0.0, 0.0))
        if chance.random() < 0.6:
            name = chance.choice(self._takers)
            yield steps.Leave(
                time=max(0.0, before), name=name, manner="closes", seconds=self._span(), broker=self._broker()
            )
        for _ in range(chance.choice((1, 2, 4))):
            size = chance.choice((1, 1, 3))
            contents = [(first + n, chance.randint(1, 3), chance.randint(0, 9)) for n in range(size)]
            when, publisher = chance.uniform(before, time), f"p{chance.randrange(publishers)}"
            yield steps.Say(time=max(0.0, when), publisher=publisher, contents=tuple(contents))
            first += size
        yield steps.Flip(time=time, broker=broker, share=chance.choice((0.1, 0.5, 1.0)))
        if chance.random() < 0.6:
            down = chance.choice((0.0, self._span()))
            yield steps.Crash(
                time=time + chance.uniform(0.0, 1.0), broker=broker, effects=0, share=1.0, down=down
            )

    def _documents(self, number: int) -> Iterator[steps.Step]:
        """Versions of a few documents, in bursts; who wants the current ones comes within one, mostly."""
        chance, scenario = self._chance, self._scenario
        keepers = [] if scenario.joins else list(keepers_places(scenario, self._brokers, ()))

        def place() -> str:
            return chance.choice(keepers) if keepers and chance.random() < 0.7 else self._broker()

        many = chance.random() < 0.4  # documents of one version each: what is missed is never made good
        bursts = [self._time(1.0) for _ in range(1 + scenario.documents // 8)]
        for _ in range(scenario.documents):
            size = chance.choice((1, 1, 1, 3))
            withdraws = size == 1 and not many and chance.random() < 0.2
            yield steps.Say(
                time=chance.choice(bursts)
                + chance.choice((chance.uniform(0.0, 0.1), chance.uniform(0.0, 1.5))),
                publisher=f"p{chance.randrange(scenario.publishers)}",
                contents=tuple([(number + n, chance.randint(1, 3), chance.randint(0, 9)) for n in range(size)]),
                identified=chance.random() < 0.85,
                priority=chance.choice((4, 4, 2, 7)),
                key=f"c{number if many else chance.randrange(_DOCUMENTS)}",
                withdraws=withdraws,
            )
            number += size
        for count in range(scenario.beginners):
            name, filter = f"r{count}", chance.choice(("n > 0", "n > 0", *FILTERS))
            time = max(0.0, chance.choice(bursts) + chance.uniform(-0.3, 0.5))
            yield steps.Take(time=time, name=name, broker=place(), filter=filter, retroactive=True)
            if chance.random() < 0.3:
                yield msgspec.structs.replace(self._leave(), name=name)
        for time in bursts:  # a crash while it is written by those that keep it
            broker, share = place(), chance.choice((0.0, 0.5, 1.0))
            if chance.random() < 0.5:
                each = chance.choice((0.02, 0.1, 0.3))
                yield steps.SlowDisk(time=time, broker=broker, seconds=4.0, each=each)
            if chance.random() < 0.4:
                when, effects = time + chance.uniform(0.0, 1.5), chance.randint(0, 5)
                yield steps.Crash(time=when, broker=broker, effects=effects, share=share, down=chance.random())

    def _pause(self) -> steps.Step:
        chance = self._chance
        broker, time, seconds = self._broker(), self._time(), self._span()
        if chance.random() < 0.5:
            return steps.PauseBroker(time=time, broker=broker, seconds=seconds)
        return steps.Slow(time=time, broker=broker, seconds=seconds, each=chance.choice((0.005, 0.03, 0.1)))

    def _cut(self) -> steps.Step:
        links = (self._chance.randrange(len(self._layout.links)),)
        return steps.Cut(time=self._time(), links=links, seconds=self._span(), noticed=self._noticed())

    def _flap(self) -> Iterator[steps.Step]:
        """One link after the other is cut, and connected again: each is a change of the network."""
        scenario, links = self._scenario, range(len(self._layout.links))
        chance, time = Random(f"faults flapping {scenario.seed}"), 0.0
        while time < scenario.length:
            noticed = chance.uniform(0.0, 0.05), chance.uniform(0.0, 0.05)
            yield steps.Cut(
                time=time, links=(chance.choice(links),), seconds=scenario.flapping, noticed=noticed
            )
            time += 2 * scenario.flapping

    def _noticed(self) -> tuple[float, float]:
        chance = self._chance
        return chance.choice(((0.0, 0.0), (0.0, chance.uniform(0.0, 2.0)), (chance.uniform(0.0, 2.0), 0.0)))

    def _partition(self) -> Iterator[steps.Step]:
        """Some brokers on one side, the others on the other: all links between them are cut."""
        chance = self._chance
        side = set(chance.sample(range(len(self._brokers)), chance.randint(1, max(1, len(self._brokers) // 2))))
        links = enumerate(self._layout.links)
        between = tuple(number for number, link in links if (link.one in side) != (link.other in side))
        if between:
            yield steps.Cut(time=self._time(), links=between, seconds=self._span(), noticed=self._noticed())

    def _lag(self) -> steps.Step:
        chance = self._chance
        link = chance.randrange(len(self._layout.links))
        return steps.Lag(
            time=self._time(), link=link, seconds=self._span(), more=chance.choice((0.05, 0.3, 1.5))
        )

    def _leave(self) -> steps.Step:
        chance = self._chance
        time, name = self._time(), chance.choice(self._takers)
        if chance.random() < 0.2:
            return steps.Twice(time=time, name=name, brokers=(self._broker(), self._broker()))
        manner = chance.choice(steps.MANNERS)
        return steps.Leave(time=time, name=name, manner=manner, seconds=self._span(), broker=self._broker())
