"""`run`: one tree that is rebuilt, from its beginning to what that cost.

What happens is drawn from independent pieces of the seed, and never depends on what the brokers say: so it is
the same for all protocols.
"""

from __future__ import annotations

from collections import Counter
from math import dist
from random import Random
from time import perf_counter

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.peers import Update
from palio.protocol.requests import Publish, Subscribe
from palio.routing.configuration import Configuration
from palio.routing.reconfiguration.settings import ReconfigurationSettings
from palio.sim.reconfiguration.scenario import TreeOutcome, TreeScenario
from palio.sim.reconfiguration.tables import Pair, TreeRow, ideal_rows, part_of, path_between
from palio.sim.reconfiguration.world import RouterMaker, TreeWorld
from palio.sim.run import without_collections
from palio.sim.shapes import draw

# Seconds: between two brokers side by side, and between opposite corners of the map on top of that.
_NEAR, _FAR = 0.0005, 0.08
# After the last change everything is quiet in this time, whatever is still parked or held back.
_TAIL = 15.0
# A link that was refused, as names had not spread yet, is tried again after so long.
_AGAIN = 0.3
# Messages that only some of the protocols have.
_OF_PROTOCOLS = ("Flush", "Prepare", "Activate")


def run_reconfiguration(scenario: TreeScenario) -> TreeOutcome:
    """Simulate a scenario. The same scenario gives the same outcome, but for `wall_seconds`."""
    with without_collections():
        return RebuiltTree(scenario).outcome()


class RebuiltTree:
    """A run that is made, and then asked for what it cost. `links` is the tree as it is to be."""

    def __init__(self, scenario: TreeScenario, make_router: RouterMaker | None = None) -> None:
        begin = perf_counter()
        self.scenario = scenario
        self.names = [f"b{number:04}" for number in range(scenario.brokers)]
        self.world = world = self._make_world(make_router)
        graph = draw(scenario.shape, scenario.brokers, Random(f"tree {scenario.seed}"))
        self.links: list[Pair] = [(self.names[one], self.names[other]) for one, other, _ in graph.edges]
        self._filters = {Filter.parse(f"topic = {topic}"): topic for topic in range(scenario.topics)}
        self.wanted: dict[str, frozenset[int]] = {}
        self.counts: Counter[str] = Counter()
        self.repairs: list[float] = []
        self._missing: set[TreeRow] = set()
        self._broken_since: float | None = None
        self._path: set[str] = set()
        self._unrepaired: set[Pair] = set()
        self._takers: dict[int, list[str]] = {}  # who wanted an event when it was published
        self._set_up()
        world.said.clear()
        self._forwarded_in_vain = self._in_vain()
        world.heard = self._heard
        self._began = world.now
        self._plan()
        world.run(self._began + scenario.changes * scenario.pause + scenario.repair + _TAIL)
        world.run()
        self.wall_seconds = perf_counter() - begin

    def _make_world(self, make_router: RouterMaker | None) -> TreeWorld:
        scenario, chance = self.scenario, Random(f"map {self.scenario.seed}")
        places = {name: (chance.random(), chance.random()) for name in self.names}
        settings = ReconfigurationSettings(protocol=scenario.protocol, defer=scenario.defer)
        more = {} if make_router is None else {"make_router": make_router}
        return TreeWorld(
            self.names,
            Configuration(broker="-", reconfiguration=settings),
            latency=lambda one, other: _NEAR + _FAR * dist(places[one], places[other]),
            **more,
        )

    def _set_up(self) -> None:
        world, chance = self.world, Random(f"wishes {self.scenario.seed}")
        for link in self.links:
            world.link(*link)
            world.run()
        wanted: dict[str, set[int]] = {name: set() for name in self.names}
        filters = list(self._filters)
        for _ in range(round(self.scenario.density * self.scenario.brokers)):
            broker, topic = chance.choice(self.names), chance.randrange(self.scenario.topics)
            wanted[broker].add(topic)
            world.ask(broker, f"client {broker}", Subscribe(str(topic), filters[topic]))
            world.run()
        self.wanted = {name: frozenset(topics) for name, topics in wanted.items()}

    def _plan(self) -> None:
        scenario, world = self.scenario, self.world
        events, changes = Random(f"events {scenario.seed}"), Random(f"changes {scenario.seed}")
        for number in range(round(scenario.rate * scenario.changes * scenario.pause)):
            broker, topic = events.choice(self.names), events.randrange(scenario.topics)
            world.after((number + events.random()) / scenario.rate, self._publish, number, broker, topic)
        change = self._death if scenario.change == "death" else self._lose_a_link
        for number in range(scenario.changes):
            world.after(number * scenario.pause, change, Random(changes.random()))

    def _publish(self, number: int, broker: str, topic: int) -> None:
        if broker not in self.world.routers:
            return
        there = [name for name in self.names if name in self.world.routers and topic in self.wanted[name]]
        self._takers[number] = [f"client {name}" for name in there]
        event = Notification({"topic": topic, "number": number})
        self.world.ask(broker, f"client {broker}", Publish((event,)))

    # Changes

    def _lose_a_link(self, chance: Random) -> None:
        whole = [link for link in self.links if link not in self._unrepaired]
        near = self.scenario.change == "near"
        if near:  # there have to be neighbours of the parent
            ends = Counter([name for link in self.links for name in link])
            whole = [link for link in whole if max(ends[link[0]], ends[link[1]]) > 1]
        if not whole:
            return
        old = chance.choice(whole)
        left = [link for link in self.links if link != old]
        parent, child = old if min(part_of(left, old[0])) < min(part_of(left, old[1])) else old[::-1]
        above, below = part_of(left, parent), part_of(left, child)
        if near:
            beside = [name for link in left if parent in link for name in link if name != parent]
            new = (chance.choice(sorted(beside) or [parent]), child)
        else:
            new = (chance.choice(sorted(above)), chance.choice(sorted(below)))
        self._rebuild([old], [new], chance)
        self.world.cut(*old)

    def _death(self, chance: Random) -> None:
        ends = Counter([name for link in self.links for name in link])
        busy = {name for link in self._unrepaired for name in link}
        inner = sorted([name for name, count in ends.items() if count > 1 and name not in busy])
        if not inner:
            return
        dead = chance.choice(inner)
        left = [link for link in self.links if dead not in link]
        beside = sorted([name for link in self.links if dead in link for name in link if name != dead])
        home = min(beside, key=lambda name: min(part_of(left, name)))
        lost = [link for link in self.links if dead in link]
        new: list[Pair] = []
        for child in [name for name in beside if name != home]:
            # The parent, or a child that has found its place.
            new.append((chance.choice([home, *[one for _, one in new]]), child))
        self._rebuild(lost, new, chance)
        del self.wanted[dead]
        self.wanted[dead] = frozenset()
        self.world.crash(dead)

    def _rebuild(self, lost: list[Pair], new: list[Pair], chance: Random) -> None:
        """Some links go, and others come in a while."""
        self.counts["changed"] += 1
        ends = {name for link in lost for name in link}
        before = ideal_rows(self.links, self.wanted)
        self.links = [link for link in self.links if link not in lost] + new
        dead = ends - {name for link in self.links for name in link}
        wanted = {name: topics for name, topics in self.wanted.items() if name not in dead}
        after = ideal_rows(self.links, wanted)
        gone = {row for row in before if (row[0], row[1]) in lost or (row[1], row[0]) in lost}
        needed = (after - before) | (before - after - gone)
        there = sorted(ends - dead)
        self._path = {name for one in there for name in path_between(self.links, there[0], one)}
        self.counts["rows_lost"] += len(gone)
        self.counts["rows_needed"] += len(needed)
        self.counts["needed_off_path"] += len([row for row in needed if not {row[0], row[1]} <= self._path])
        self._missing = after - (self._rows() - gone)
        if self._broken_since is None:
            self._broken_since = self.world.now
        for link in new:
            self._unrepaired.add(link)
            seconds = self.scenario.repair * chance.uniform(0.5, 1.5)
            self.world.after(seconds, self._connect, link)

    def _connect(self, link: Pair) -> None:
        """Link two brokers; once more, if they have refused it as they took themselves for connected."""
        if link not in self.links or link in self.world.links() or link[::-1] in self.world.links():
            self._unrepaired.discard(link)
            return
        if part_of(self.world.links(), link[0]).isdisjoint({link[1]}):
            self.world.link(*link)
        self.world.after(_AGAIN, self._connect, link)

    # What is said

    def _rows(self) -> set[TreeRow]:
        """The rows that there are."""
        return {
            (other, name, self._filters[row])
            for name, router in self.world.routers.items()
            for other in router.neighbours()
            for row in router.received(other).values()
        }

    def _heard(self, source: str, broker: str, update: Update) -> None:
        rows = len(update.add) + len(update.remove)
        if not {source, broker} <= self._path:
            self.counts["rows_off_path"] += rows
        if self._missing:
            self._missing.difference_update([(source, broker, self._filters[row]) for _, row in update.add])
        if not self._missing and self._broken_since is not None and rows:
            self.repairs.append(self.world.now - self._broken_since)
            self._broken_since = None

    def _in_vain(self) -> int:
        return sum([router.statistics().forwarding.wasted for router in self.world.routers.values()])

    # What came of it

    def wrong(self) -> list[str]:
        """What is not as it should be when everything is at rest."""
        found = [f"{one} has given up its link to {other}: {why}" for one, other, why in self.world.closed]
        found = [] if sorted(map(sorted, self.world.links())) == sorted(map(sorted, self.links)) else found
        there = {name: topics for name, topics in self.wanted.items() if name in self.world.routers}
        if self._rows() != ideal_rows(self.links, there):
            found.append("The tables are not those of the tree.")
        for name, router in self.world.routers.items():
            if router.reconfiguration().waiting:
                found.append(f"{name} has parked rows.")
        return found

    def outcome(self) -> TreeOutcome:
        said, got = (
            self.world.said,
            Counter([(event["number"], session) for _, session, event in self.world.delivered]),
        )
        there = {f"client {name}" for name in self.world.routers}
        expected = {(number, one) for number, takers in self._takers.items() for one in takers if one in there}
        doubled = sum([count - 1 for count in got.values()])
        others = said.total() - sum(said[kind] for kind in ("added", "removed", "forwarded", "Forward"))
        rows = said["added"] + said["removed"]
        return TreeOutcome(
            violations=len(self.wrong()) + doubled,
            changed=self.counts["changed"],
            rows_added=said["added"],
            rows_removed=said["removed"],
            rows=rows,
            rows_needed=self.counts["rows_needed"],
            rows_wasted=rows - self.counts["rows_needed"],
            rows_lost=self.counts["rows_lost"],
            rows_off_path=self.counts["rows_off_path"],
            needed_off_path=self.counts["needed_off_path"],
            messages=others,
            protocol_messages=sum(said[kind] for kind in _OF_PROTOCOLS),
            published=len(self._takers),
            expected=len(expected),
            lost=len(expected - got.keys()),
            doubled=doubled,
            forwarded=said["forwarded"],
            forwarded_in_vain=self._in_vain() - self._forwarded_in_vain,
            repair_mean=sum(self.repairs) / len(self.repairs) if self.repairs else 0.0,
            repair_max=max(self.repairs, default=0.0),
            simulated_seconds=self.world.now - self._began,
            wall_seconds=self.wall_seconds,
        )
