"""Knots: steps that are drawn together, because only together and within moments they find what is rare.

Faults that are drawn one by one seldom meet: a client that leaves within the few milliseconds in which its
wish is on its way, a disk that is full when its broker has just learned something, a crash right after an end.
A scenario's `mix` names the knots of its run; each is tied a few times, around the steps that the rest of the
scenario has drawn. Two of its words are no knots but say how everything else is drawn: *close* (around few
moments, at one broker and one link) and *early* (what goes wrong with the network is over after a third of the
time: any later change of the network would mend by accident what an earlier one has broken).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Literal, TypeAlias, get_args

import msgspec

from palio.sim.faults.steps import (
    MANNERS,
    Crash,
    Cut,
    End,
    Full,
    Join,
    Jump,
    Lag,
    Leave,
    Older,
    PauseBroker,
    Refilter,
    Say,
    Shift,
    Slow,
    SlowDisk,
    Step,
    Take,
    Twice,
)
from palio.sim.topologies import Layout

Word: TypeAlias = Literal[
    "close", "early", "hasty", "ending", "stale", "joining", "jolting", "again", "full", "striking", "roaming",
    "homing",
]  # fmt: skip
WORDS: tuple[Word, ...] = get_args(Word)
KNOTS = tuple(word for word in WORDS if word not in ("close", "early"))

_NETWORK = (Crash, Cut, Lag, Join, PauseBroker, Slow)
_FIRST_SAID = 20_000  # the number of the first notification that a knot publishes; others are below
_MOST_TIED = 3  # how often a knot is tied in one run, at the most


class Knots:
    """Ties the knots of one run. What is drawn here does not change what is drawn elsewhere."""

    def __init__(
        self, seed: int, layout: Layout, length: float, drawn: Sequence[Step], filters: Sequence[str]
    ) -> None:
        self._chance = Random(f"knots {seed}")
        self._layout = layout
        self._length = length
        self._filters = filters
        self._brokers = [f"b{number}" for number in range(layout.size)]
        self._takes = [step for step in drawn if isinstance(step, Take)]
        self._arrivals = [(step.name, step.time) for step in self._takes]
        self._arrivals += [(step.name, step.time + step.seconds) for step in drawn if isinstance(step, Leave)]
        self._joins = [step for step in drawn if isinstance(step, Join)]
        self._ends = [step for step in drawn if isinstance(step, End)]
        self._publishers = sorted({step.publisher for step in drawn if isinstance(step, Say)})
        self._said = _FIRST_SAID

    def tied(self, mix: Sequence[Word]) -> Iterator[Step]:
        """All steps of the knots that a mix names."""
        knots = {
            "hasty": self._hasty,
            "ending": self._ending,
            "stale": self._stale,
            "joining": self._joining,
            "jolting": self._jolting,
            "again": self._again,
            "full": self._full,
            "striking": self._striking,
            "roaming": self._roaming,
            "homing": self._homing,
        }
        for word in mix:
            if word in knots:
                for _ in range(self._chance.randint(1, _MOST_TIED)):
                    yield from knots[word]()

    def _time(self) -> float:
        return self._chance.uniform(0.2, 0.8) * self._length

    def _soon(self, most: float = 0.1) -> float:
        return self._chance.uniform(0.0, most)

    def _span(self) -> float:
        return self._chance.choice((self._soon(0.2), self._soon(1.0), self._chance.uniform(1.0, 8.0)))

    def _broker(self) -> str:
        return self._chance.choice(self._brokers)

    def _leave(self, name: str, time: float, seconds: float, broker: str) -> Leave:
        manner = self._chance.choice(MANNERS)
        return Leave(time=time, name=name, manner=manner, seconds=seconds, broker=broker)

    def _crash(self, broker: str, time: float, share: float | None = None) -> Crash:
        chance = self._chance
        return Crash(
            time=time,
            broker=broker,
            effects=chance.choice((0, chance.randint(0, 5), chance.randint(0, 20))),
            share=chance.choice((0.0, 0.5, 1.0)) if share is None else share,
            down=chance.choice((0.0, self._soon(0.5), self._soon(3.0))),
        )

    def _busy_disk(self, broker: str, time: float) -> Step:
        seconds = self._chance.uniform(0.3, 6.0)
        if self._chance.random() < 0.5:
            return Full(time=time, broker=broker, seconds=seconds)
        return SlowDisk(time=time, broker=broker, seconds=seconds, each=self._chance.choice((0.3, 1.0)))

    def _hasty(self) -> Iterator[Step]:
        """A client leaves while its wish to attach is on its way, looked for or written."""
        name, time = self._chance.choice(self._arrivals)
        time += self._soon(self._chance.choice((0.02, 0.1, 0.6)))
        yield self._leave(name, time, self._span(), self._broker())
        if self._layout.links and self._chance.random() < 0.5:
            link = self._chance.randrange(len(self._layout.links))
            yield Lag(time=max(0.0, time - 0.3), link=link, seconds=1.0, more=self._chance.choice((0.1, 0.5)))

    def _ending(self) -> Iterator[Step]:
        """The home crashes, once and again, around an end."""
        if self._ends and self._chance.random() < 0.5:
            name, time = self._ends[0].name, self._ends[0].time
        else:
            name, time = self._chance.choice(self._takes).name, self._time()
            yield End(time=time, name=name)
        home = next(step.broker for step in self._takes if step.name == name)
        if self._chance.random() < 0.6:
            yield self._busy_disk(home, max(0.0, time - self._soon(0.5)))
        for _ in range(self._chance.randint(1, 3)):
            time += self._soon(0.5)
            crash = self._crash(home, time)
            yield crash
            time += crash.down + self._soon(1.0)

    def _stale(self) -> Iterator[Step]:
        """News of a link come on one side while an older answer lags behind on the other."""
        count = len(self._layout.links)
        if count < 2:
            return
        time = self._time() / 2
        cut, *lagging = self._chance.sample(range(count), min(count, 3))
        for link in lagging:
            more = self._chance.choice((0.3, 0.7, 1.5))
            yield Lag(time=max(0.0, time + self._chance.uniform(-0.3, 0.1)), link=link, seconds=3.0, more=more)
        yield Cut(time=time, links=(cut,), seconds=self._span(), noticed=(0.0, self._soon(0.3)))

    def _joining(self) -> Iterator[Step]:
        """A neighbour of who joins has learned of it only in memory when it crashes."""
        if not self._joins:
            return
        join = self._chance.choice(self._joins)
        links = self._links_of(join.broker)
        if not links:
            return
        link = self._chance.choice(links)
        ends = {f"b{self._layout.links[link].one}", f"b{self._layout.links[link].other}"}
        [neighbour] = ends - {join.broker}
        name = self._chance.choice(self._takes).name
        time = join.time + self._soon()
        yield self._busy_disk(neighbour, time)
        yield self._leave(name, time + self._soon(0.5), self._soon(0.5), join.broker)
        time += self._soon(2.0)
        yield self._crash(neighbour, time, 0.0)
        yield Cut(time=time + self._soon(0.5), links=(link,), seconds=self._span(), noticed=(0.0, 0.0))
        yield self._leave(name, time + self._soon(2.0), self._soon(0.5), neighbour)

    def _jolting(self) -> Iterator[Step]:
        """Everything is redelivered at once while the disk has no time for what that changes."""
        broker, time = self._chance.choice(self._takes).broker, self._time()
        yield self._busy_disk(broker, time)
        for _ in range(self._chance.randint(1, 3)):
            time += self._soon(1.0)
            yield Jump(time=time, broker=broker, by=self._chance.uniform(3.0, 20.0))

    def _again(self) -> Iterator[Step]:
        """A second wish to attach while what was handed over for the first one is being written."""
        name, time, broker = self._chance.choice(self._takes).name, self._time(), self._broker()
        yield SlowDisk(time=time, broker=broker, seconds=4.0, each=self._chance.choice((0.1, 0.3, 1.0)))
        yield Leave(time=time + self._soon(), name=name, manner="moves", seconds=0.0, broker=broker)
        time += self._soon(1.0)
        if self._chance.random() < 0.5:
            yield Twice(time=time, name=name, brokers=(broker, self._chance.choice((broker, self._broker()))))
        else:
            yield self._leave(name, time, self._soon(0.5), broker)

    def _full(self) -> Iterator[Step]:
        """A broker forgets what it has just learned: its disk was full when it crashed."""
        broker, time = self._broker(), self._time()
        yield self._busy_disk(broker, time)
        time += self._soon(2.0)
        yield self._crash(broker, time, 0.0)
        if self._chance.random() < 0.4:
            yield self._crash(broker, time + self._soon(2.0))

    def _striking(self) -> Iterator[Step]:
        """A subscription is brought into a state that does not last, is kept there, and then things happen."""
        chance = self._chance
        take, time = chance.choice(self._takes), self._time()
        if chance.random() < 0.3:
            time = take.time
        place = chance.choice([one for one in self._brokers if one != take.broker] or self._brokers)
        ends = (take.broker, place)
        for end in ends:
            if chance.random() < 0.6:
                yield from self._delay(end, max(0.0, time - self._soon(0.2)))
        luck = chance.random()
        if luck < 0.45:
            if chance.random() < 0.5:  # so that it takes long to leave, and to forget
                each = chance.choice((0.3, 0.6))
                yield SlowDisk(time=max(0.0, time - 0.1), broker=take.broker, seconds=4.0, each=each)
            yield Leave(time=time, name=take.name, manner="moves", seconds=0.0, broker=place)
        elif luck < 0.6:
            yield Refilter(time=time, name=take.name, filter=chance.choice(self._filters))
        elif luck < 0.7:
            yield End(time=time, name=take.name)
        elif luck < 0.9 and self._layout.links:
            # What is published meanwhile has to be fetched, slowly.
            link, seconds = self._link(take.broker), chance.uniform(0.2, 1.5)
            yield Cut(time=time, links=(link,), seconds=seconds, noticed=(0.0, 0.0))
            time += seconds
            yield Lag(time=time, link=link, seconds=5.0, more=chance.choice((0.1, 0.3)))
            time += chance.uniform(0.3, 1.0)
        for _ in range(chance.randint(1, 5)):
            strike = time + self._soon(chance.choice((0.05, 0.2, 0.5, 1.5, 3.0)))
            yield self._strike(take.name, chance.choice(ends), strike)

    def _roaming(self) -> Iterator[Step]:
        """A client goes on while its subscription is on its way, to one that its home has just heard of."""
        chance = self._chance
        take = chance.choice(self._takes)
        joins = [join for join in self._joins if join.broker != take.broker]
        if len(self._brokers) < 3 or not joins:
            return
        join = chance.choice(joins)
        place = chance.choice([one for one in self._brokers if one not in (take.broker, join.broker)])
        before, time = max(0.0, join.time - self._soon()), join.time + chance.uniform(0.1, 1.5)
        each = chance.choice((0.05, 0.1, 0.3, 0.6))
        yield SlowDisk(time=before, broker=take.broker, seconds=chance.uniform(2.0, 6.0), each=each)
        if chance.random() < 0.5:
            yield Full(time=before, broker=take.broker, seconds=time - before + self._soon(0.5))
        yield Leave(time=time, name=take.name, manner="moves", seconds=0.0, broker=place)
        time += chance.uniform(0.05, 0.05 + 3.0 * each)
        yield self._leave(take.name, time, 0.0, join.broker)

    def _homing(self) -> Iterator[Step]:
        """A subscription goes on, and the disk of its former home comes back as it was before that.

        What is published then, there most often, has to come to where it is, which may be cut off.
        """
        chance = self._chance
        take, time = chance.choice(self._takes), self._time()
        others = [one for one in self._brokers if one != take.broker]
        if not others or not self._publishers:
            return
        place, publisher = chance.choice(others), chance.choice(self._publishers)
        yield Leave(time=time, name=take.name, manner="moves", seconds=0.0, broker=place)
        if chance.random() < 0.3:
            yield SlowDisk(time=time, broker=place, seconds=4.0, each=chance.choice((0.1, 0.3)))
        if chance.random() < 0.7:
            yield Shift(time=time, publisher=publisher, broker=take.broker)
        back, down = time + chance.uniform(0.2, 2.0), chance.choice((0.0, self._soon(0.5)))
        yield Older(time=back, broker=take.broker, back=back - time + self._soon(1.0), down=down)
        links = self._links_of(chance.choice((place, place, take.broker)))
        if links and chance.random() < 0.8:
            cut, seconds = back + chance.uniform(-0.3, 0.3), chance.uniform(1.0, 6.0)
            yield Cut(time=cut, links=tuple(links), seconds=seconds, noticed=(0.0, self._soon(0.3)))
        for _ in range(chance.randint(2, 8)):
            self._said += 1
            when = back + down + self._soon(chance.choice((0.5, 2.0)))
            contents = ((self._said, chance.randint(1, 3), chance.randint(0, 9)),)
            yield Say(time=when, publisher=publisher, contents=contents)
        if chance.random() < 0.3:
            yield self._leave(take.name, back + down + self._soon(2.0), self._span(), self._broker())

    def _delay(self, broker: str, time: float) -> Iterator[Step]:
        """Something that makes what a broker does take longer."""
        chance = self._chance
        seconds = chance.uniform(0.5, 3.0)
        luck = chance.random()
        if luck < 0.4 and self._layout.links:
            for link in {self._link(broker), self._link(broker)}:
                yield Lag(time=time, link=link, seconds=seconds, more=chance.choice((0.1, 0.3, 0.7)))
        elif luck < 0.8:
            yield SlowDisk(time=time, broker=broker, seconds=seconds, each=chance.choice((0.05, 0.2, 0.6)))
        else:
            yield Slow(time=time, broker=broker, seconds=seconds, each=chance.choice((0.02, 0.08)))

    def _strike(self, name: str, broker: str, time: float) -> Step:
        """Anything that can happen to a subscription or its broker."""
        chance = self._chance
        some: list[Callable[[], Step]] = [
            lambda: self._crash(broker, time),
            lambda: PauseBroker(time=time, broker=broker, seconds=self._span()),
            lambda: Slow(time=time, broker=broker, seconds=self._span(), each=chance.choice((0.005, 0.05))),
            lambda: self._busy_disk(broker, time),
            lambda: Jump(time=time, broker=broker, by=chance.choice((-1.0, 5.0, 20.0))),
            lambda: self._leave(name, time, self._span(), chance.choice((broker, self._broker()))),
            lambda: self._leave(name, time, self._soon(0.5), broker),
            lambda: Twice(time=time, name=name, brokers=(broker, self._broker())),
            lambda: Refilter(time=time, name=name, filter=chance.choice(self._filters)),
            lambda: End(time=time, name=name),
        ]
        if self._layout.links:
            link, noticed = self._link(broker), (0.0, self._soon(1.0))
            some += [
                lambda: Cut(time=time, links=(link,), seconds=self._span(), noticed=noticed),
                lambda: Lag(time=time, link=link, seconds=self._span(), more=chance.choice((0.05, 0.5))),
            ]
        return chance.choice(some)()

    def _link(self, broker: str) -> int:
        """A link, of that broker if it has one."""
        return self._chance.choice(self._links_of(broker) or range(len(self._layout.links)))

    def _links_of(self, broker: str) -> list[int]:
        number = int(broker[1:])
        return [place for place, link in enumerate(self._layout.links) if number in (link.one, link.other)]


def early(step: Step) -> Step:
    """A step that is over early, if it is about the network."""
    return msgspec.structs.replace(step, time=step.time / 3) if isinstance(step, _NETWORK) else step
