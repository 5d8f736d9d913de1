"""Links that come and go at the same time, beside everything else: in the end tables are as from scratch."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import get_args

import pytest

from palio import Advertisement, Filter, Notification
from palio.protocol.requests import Advertise, Publish, Release, Subscribe
from palio.routing.covering import Covering
from palio.routing.reconfiguration import activation
from palio.routing.reconfiguration.activation import Activation
from palio.routing.reconfiguration.parking import Parking
from palio.routing.reconfiguration.protocols import Reconfiguration
from palio.routing.reconfiguration.settings import Protocol
from palio.routing.table import Table
from tests.routing.reconfiguration.scenes import side_of, tree_world
from tests.slices import sliced

PROTOCOLS = get_args(Protocol)
STRATEGIES = ("identity", "covering", "merging", "simple")
FILTERS = ("x > 1", "x > 3", "x > 5", 'x > 3 and kind = "a"', 'kind = "a"', 'kind = "b"', "x = 4", "x = 5")
ADVERTISED = ("x > 0", 'x > 0 and kind = "a"', "x > 4")
LASTS = 12.0


class Story:
    """What happens to a network in some seconds, and what its clients hold then."""

    def __init__(self, seed, protocol, strategy, advertisements):
        self.chance = chance = Random(f"convergence {seed}")
        self.names = [f"b{number}" for number in range(chance.randint(2, 9))]
        links = [(self.names[chance.randrange(place)], one) for place, one in enumerate(self.names) if place]
        self.kind = {"strategy": strategy, "advertisements": advertisements}
        self.world = tree_world(links, protocol, defer=chance.choice((0.3, 3.0)), **self.kind)
        self.wanted = {name: [] for name in self.names}
        self.advertised = {name: [] for name in self.names}
        self.handles = 0
        for _ in range(chance.randint(2, 10)):
            self.subscribe()
            self.advertise()
        self.world.run()
        for _ in range(chance.randint(5, 40)):
            self.world.run(self.world.now + chance.choice((0.0, 0.01, 0.05, 0.4, 2.0)))
            chance.choices((self.cut, self.link, self.subscribe, self.cancel, self.advertise), (5, 7, 2, 2, 1))[
                0
            ]()
        self.world.run()
        while len(self.parts()) > 1:
            self.link()
            self.world.run()

    def parts(self):
        links, found, left = self.world.links(), [], set(self.names)
        while left:
            found.append(side_of(links, (min(left), "")))
            left -= found[-1]
        return found

    def cut(self):
        links = self.world.links()
        if links:
            self.world.cut(*self.chance.choice(links))

    def link(self):
        parts = self.parts()
        if len(parts) > 1:
            one, other = self.chance.sample(parts, 2)
            self.world.link(self.chance.choice(sorted(one)), self.chance.choice(sorted(other)))

    def subscribe(self):
        self._hold(self.wanted, lambda: Filter.parse(self.chance.choice(FILTERS)), Subscribe)

    def advertise(self):
        self._hold(self.advertised, lambda: Advertisement.parse(self.chance.choice(ADVERTISED)), Advertise)

    def _hold(self, held, drawn, request):
        name, item = self.chance.choice(self.names), drawn()
        self.handles += 1
        held[name].append((str(self.handles), item))
        self.world.ask(name, f"client {name}", request(str(self.handles), item))

    def cancel(self):
        held = self.chance.choice((self.wanted, self.advertised))[self.chance.choice(self.names)]
        if held:
            name = next(one for one in self.names if held is self.wanted[one] or held is self.advertised[one])
            handle, _ = held.pop(self.chance.randrange(len(held)))
            self.world.ask(name, f"client {name}", Release(handle))

    def fresh(self):
        """A network that was built from scratch."""
        world = tree_world(self.world.links(), **self.kind) if len(self.names) > 1 else self.world
        for name in self.names if world is not self.world else ():
            for handle, item in self.advertised[name]:
                world.ask(name, f"client {name}", Advertise(handle, item))
            for handle, item in self.wanted[name]:
                world.ask(name, f"client {name}", Subscribe(handle, item))
        world.run()
        return world


def wrong(story):
    """What is not as it should be when everything is at rest."""
    world, fresh = story.world, story.fresh()
    for name, router in world.routers.items():
        if router.reconfiguration().waiting:
            yield f"{name} still has parked rows."
            continue
        for other in router.neighbours():
            if router.sent(other) != world.routers[other].received(name):
                yield f"{name} and {other} do not agree."
            for read in ("sent", "sent_advertisements"):
                has, should = (list(getattr(one.routers[name], read)(other).values()) for one in (world, fresh))
                if story.kind["strategy"] == "merging":
                    if not (covered(has, should) and covered(should, has)):
                        yield f"{name} tells {other} something else: {has}, {should}"
                elif Counter(has) != Counter(should):
                    yield f"{name} tells {other} {has} instead of {should}"
    yield from undelivered(story)


def covered(items, others):
    """Whether all are covered by the others together."""
    if all(any(other.covers(one) for other in others) for one in items):
        return True
    if not all(isinstance(one, Filter) for one in (*items, *others)):
        return False
    boxes = tuple(box for other in others for box in other.conjunctions)
    return all(Filter(boxes).covers(one) for one in items)


def undelivered(story):
    world = story.world
    for name in story.names:
        event = Notification({"x": story.chance.randint(0, 9), "kind": story.chance.choice("ab")})
        if story.kind["advertisements"] and not any(one.covers(event) for _, one in story.advertised[name]):
            continue
        world.delivered.clear()
        world.ask(name, f"client {name}", Publish((event,)))
        world.run()
        got = sorted(session for _, session, _ in world.delivered)
        takers = [one for one in story.names if any(filter.matches(event) for _, filter in story.wanted[one])]
        if got != sorted(f"client {one}" for one in takers):
            yield f"{event} of {name} came to {got}, and not to {takers}"


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("seed", sliced(range(60), 4))
def test_tables_are_as_from_scratch_whatever_happens(seed, advertisements, strategy):
    protocol = PROTOCOLS[seed % len(PROTOCOLS)]
    assert list(wrong(Story(seed, protocol, strategy, advertisements))) == []


# Faults that are planted


def found(seeds=range(8), advertisements=False, protocol="deferred"):
    return [seed for seed in seeds if list(wrong(Story(seed, protocol, "covering", advertisements)))]


def test_rows_that_are_parked_for_ever_are_found(monkeypatch):
    monkeypatch.setattr(Reconfiguration, "on_timer", lambda self, name: None)
    assert found()


def test_entries_that_new_ports_should_see_now_and_nobody_looks_at_again_are_found(monkeypatch):
    monkeypatch.setattr(Table, "_look_again", lambda self, entry: None)
    monkeypatch.setattr(Covering, "_look_again", lambda self, entry: None)
    assert found([15], advertisements=True) == [15]


def test_parked_rows_of_which_none_is_ever_dropped_are_found(monkeypatch):
    monkeypatch.setattr(Parking, "_dropping", lambda self, link, port: iter(()))
    assert found()


def test_what_is_held_back_for_ever_is_found(monkeypatch):
    monkeypatch.setattr(Activation, "on_timer", lambda self, seconds: None)
    assert found(range(12), protocol="informed")


def test_links_that_hold_back_everything_for_ever_are_found(monkeypatch):
    monkeypatch.setattr(activation, "_held_back", lambda table, digests: [one.place for one in table.entries()])
    monkeypatch.setattr(Table, "release", lambda self, port: None)
    assert found(range(12), protocol="informed")
