"""Workloads: what clients want and what publishers say. Drawn from the scenario's seed and nothing else.

There are `interests` things to be interested in, each with a topic; how many clients care about each follows
Zipf's law. Within a topic notifications have a price, a volume, a region and an urgency, and subscriptions
select by these.

How much covering there is, is made, not left to luck. A *root* subscription selects a band of prices of one
fixed width, at a place of its own, whatever else it says; as no band of that width lies within another one,
no root covers another. A *covered* subscription is a root with more conditions, or the same once more. The
share of these is the scenario's `covered`. Where everything is to be covered, the root of a topic is all of
the topic.

A publisher has topics of its own, and a range of prices. Its advertisements say just that, so everything
that it publishes is advertised.
"""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from random import Random

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.model.values import Value
from palio.sim.scenario import Scenario
from palio.sim.shapes import UndirectedGraph

REGIONS = ("north", "south", "east", "west")
HIGHEST_PRICE = 1_000.0
HIGHEST_VOLUME = 1_000
BAND = 400.0  # the width of a root's band of prices: two fifths of what is published on the topic

_GROUPS = 4  # topics are named after groups, so that a prefix selects several
_EQUAL = 0.25  # of the covered subscriptions, those that equal their root
_ABSENT = 0.05  # how often an attribute is missing from a notification
_WHOLE = 0.2  # how often a price is written without a point
_NEARBY = 10  # a tenth of the network, but at least three brokers, is nearby


class PublisherProfile(msgspec.Struct, frozen=True):
    """Where it is and what it speaks of."""

    broker: int
    interests: tuple[int, ...]
    lowest: float
    highest: float


class Root(msgspec.Struct, frozen=True):
    """A subscription that no other one covers, from which covered ones are made."""

    text: str
    lowest: float
    highest: float


class Workload:
    """All that a scenario's clients want and say, in the order in which it is drawn."""

    def __init__(self, scenario: Scenario, graph: UndirectedGraph) -> None:
        self._scenario = scenario
        self._graph = graph
        self.chance = Random(f"workload {scenario.seed}")
        self._popularity = list(accumulate((rank + 1) ** -scenario.skew for rank in range(scenario.interests)))
        self.publishers = [self._publisher(number) for number in range(scenario.publishers)]
        self.subscribers = [self.chance.randrange(graph.size) for _ in range(scenario.subscribers)]
        self._roots: dict[int, list[Root]] = {}
        self._all_roots: list[Root] = []
        self._nearby: dict[int, list[int]] = {}
        self._advertisements: dict[tuple[PublisherProfile, tuple[int, ...]], Advertisement] = {}

    # Publishers

    def _publisher(self, number: int) -> PublisherProfile:
        chance, interests = self.chance, self._scenario.interests
        own = {number % interests, *range(number, interests, self._scenario.publishers)}
        if chance.random() < 0.5:
            own.add(self._interest())
        lowest, highest = chance.choice(((0.0, 1.0), (0.0, 1.0), (0.0, 0.5), (0.3, 1.0)))
        broker = chance.randrange(self._graph.size)
        return PublisherProfile(broker, tuple(sorted(own)), lowest * HIGHEST_PRICE, highest * HIGHEST_PRICE)

    def advertised(self, publisher: PublisherProfile) -> list[tuple[int, ...]]:
        """What the publisher advertises: all of its interests, at once or one by one, perhaps one twice."""
        groups = [publisher.interests]
        if self.chance.random() < 0.5:
            groups = [(interest,) for interest in publisher.interests]
        if self.chance.random() < 0.25:
            groups.append(publisher.interests[:1])
        return groups

    def advertisement(self, publisher: PublisherProfile, interests: tuple[int, ...]) -> Advertisement:
        """One that says that the publisher may speak of these interests."""
        key = (publisher, interests)
        if key not in self._advertisements:
            self._advertisements[key] = _advertisement(publisher, interests)
        return self._advertisements[key]

    def notification(self, publisher: PublisherProfile) -> Notification:
        """Something that the publisher may say."""
        chance = self.chance
        drawn = round(chance.uniform(publisher.lowest, publisher.highest), 2)
        price: Value = round(drawn) if chance.random() < _WHOLE else drawn
        values: dict[str, Value] = {
            "price": price,
            "volume": chance.randint(0, HIGHEST_VOLUME),
            "region": chance.choice(REGIONS),
            "urgent": chance.random() < 0.2,
        }
        kept = {name: value for name, value in values.items() if chance.random() >= _ABSENT}
        return Notification.of_values({"topic": topic(chance.choice(publisher.interests)), **kept})

    # Subscribers

    def subscription(self, broker: int) -> Filter:
        """Something that a client of this broker wants."""
        scenario, chance = self._scenario, self.chance
        interest = self._interest()
        if scenario.locality and chance.random() < scenario.locality:
            interest = chance.choice(self._interests_near(broker))
        if scenario.covered >= 1.0:
            if interest in self._roots:
                return self._covered(self._roots[interest][0])
        elif self._all_roots and chance.random() < scenario.covered:
            return self._covered(chance.choice(self._roots.get(interest, self._all_roots)))
        root = self._root(interest)
        self._roots.setdefault(interest, []).append(root)
        self._all_roots.append(root)
        return Filter.parse(root.text)

    def _interest(self) -> int:
        return bisect(self._popularity, self.chance.random() * self._popularity[-1])

    def _interests_near(self, broker: int) -> list[int]:
        """What is published in the neighbourhood; if nothing is, what the nearest publisher says."""
        if broker not in self._nearby:
            said: dict[int, set[int]] = {}
            for publisher in self.publishers:
                said.setdefault(publisher.broker, set()).update(publisher.interests)
            near = self._graph.near(broker, self._graph.size)
            reach = max(3, self._graph.size // _NEARBY)
            found = set().union(*(said.get(one, ()) for one in near[:reach]))
            found = found or next((said[one] for one in near if one in said), {0})
            self._nearby[broker] = sorted(found)
        return self._nearby[broker]

    def _root(self, interest: int) -> Root:
        chance = self.chance
        if self._scenario.covered >= 1.0:
            return Root(f'topic = "{topic(interest)}"', 0.0, HIGHEST_PRICE)
        lowest = round(chance.uniform(0.0, HIGHEST_PRICE - BAND), 2)
        band = f"price between {lowest} and {round(lowest + BAND, 2)}"
        about = f'topic = "{topic(interest)}"'
        match chance.choices(range(5), weights=(50, 15, 15, 10, 10))[0]:
            case 1:
                band += f' and region != "{chance.choice(REGIONS)}"'
            case 2:
                volume = chance.randint(0, HIGHEST_VOLUME)
                band = f"({band} or volume between {volume} and {volume + 50})"
            case 3:
                about = f'topic starts with "{topic(interest).split("/")[0]}/"'
            case 4:
                other = topic(chance.randrange(self._scenario.interests))
                about = f'topic in ("{topic(interest)}", "{other}")'
        return Root(f"{about} and {band}", lowest, round(lowest + BAND, 2))

    def _covered(self, root: Root) -> Filter:
        chance = self.chance
        if chance.random() < _EQUAL:
            return Filter.parse(root.text)
        width = root.highest - root.lowest
        lowest = round(root.lowest + chance.uniform(0.0, 0.4) * width, 2)
        highest = round(root.highest - chance.uniform(0.0, 0.4) * width, 2)
        text = f"({root.text}) and price between {lowest} and {highest}"
        found = Filter.parse(f"{text} and {self._condition()}" if chance.random() < 0.5 else text)
        return found if found.contradiction is None else Filter.parse(text)

    def _condition(self) -> str:
        chance = self.chance
        volume = chance.randint(0, HIGHEST_VOLUME)
        region, other = chance.sample(REGIONS, 2)
        return chance.choice(
            (
                f"volume >= {volume // 2}",
                f'region in ("{region}", "{other}")',
                f'region != "{region}"',
                "not urgent",
                f'(region = "{region}" or volume < {volume})',
                f'region starts with "{region[0]}"',
                "exists(volume)",
            )
        )

    def wider(self, filter: Filter) -> Filter:
        """A filter that covers all that `subscription` gives for one group of topics, this filter included."""
        for group in range(_GROUPS):
            found = Filter.parse(f'topic starts with "{_group(group)}/"')
            if found.covers(filter):
                return found
        return Filter.parse("exists(topic)")


def topic(interest: int) -> str:
    """The name of a thing to be interested in."""
    return f"{_group(interest)}/{interest}"


def _group(interest: int) -> str:
    return f"g{interest % _GROUPS}"


def _advertisement(publisher: PublisherProfile, interests: tuple[int, ...]) -> Advertisement:
    topics = ", ".join(f'topic = "{topic(interest)}"' for interest in interests)
    regions = ", ".join(f'"{region}"' for region in REGIONS)
    return Advertisement.parse(
        f"{topics}, (price >= {publisher.lowest} and price <= {publisher.highest}), "
        f"(volume >= 0 and volume <= {HIGHEST_VOLUME}), region in ({regions}), exists(urgent)"
    )
