"""Networks that repair themselves, in the simulator: whatever happens, they are whole in the end."""

from __future__ import annotations

import random

import msgspec
import pytest

from palio.routing.links import Naming
from palio.routing.neighbours import Neighbours
from palio.routing.overlay import tree
from palio.routing.overlay.effects import DAMPED, JOINED, REPAIR_DONE, OverlayEvent
from palio.routing.overlay.tree import FIRST_PAUSE, TreeOverlay
from palio.routing.reconfiguration.parking import Parking
from palio.sim.overlay.oracle import at_rest, connected, judge, parts
from palio.sim.overlay.script import CrashBrokers, LeaveBroker, OverlayScenario, PartNetwork, drawn
from palio.sim.overlay.world import OverlayWorld

SEEDS = 12
DONE = OverlayEvent(REPAIR_DONE, "somebody", former="nobody")
ONCE_FAILED = (1009, 1176, 1574, 1660, 3022, 3228)
MANY = 2_000


def tree_of(seed: int) -> OverlayScenario:
    return msgspec.structs.replace(drawn(seed), kind="tree")


@pytest.mark.parametrize("seed", [*range(SEEDS), *ONCE_FAILED])
def test_a_network_is_whole_after_everything_that_happens(seed):
    assert judge(tree_of(seed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, MANY, 40))
def test_many_networks_are_whole_after_everything_that_happens(first):
    for seed in range(first, first + 40):
        assert judge(tree_of(seed)) == [], f"seed {seed}"


def grown(brokers: int, seed: int = 1, **more) -> OverlayWorld:
    """A network that has come together, one broker after the other."""
    world = OverlayWorld(OverlayScenario(seed=seed, brokers=brokers, **more))
    for number, broker in enumerate(world.brokers):
        world.after(float(number), world.begin, broker)
    world.run(brokers + 120.0)
    assert list(at_rest(world)) == []
    return world


def root_of(world: OverlayWorld):
    return next(one for one in world.there() if one.router.overlay().component == one.name)


def linked(world: OverlayWorld, since: float) -> int:
    return sum([event.what == JOINED for at, _, event in world.events if at >= since])


@pytest.mark.parametrize("seed", range(4))
def test_the_children_of_a_dead_broker_make_one_link_each(seed):
    world = grown(20, seed, degree=5)
    inner = [one for one in world.there() if one is not root_of(world) and len(one.router.neighbours()) > 2]
    victim, began = inner[seed % len(inner)], world.now
    children = len(victim.router.neighbours()) - 1
    world.crash(victim)
    world.run(began + 60.0)
    assert linked(world, began) == children
    assert list(at_rest(world)) == []


@pytest.mark.parametrize("seed", range(4))
def test_the_children_of_a_dead_root_make_one_link_fewer(seed):
    world = grown(12, seed, degree=5)
    victim, began = root_of(world), world.now
    children = len(victim.router.neighbours())
    assert children > 1
    world.crash(victim)
    world.run(began + 60.0)
    assert linked(world, began) == children - 1
    assert list(at_rest(world)) == []


def test_who_was_told_to_wait_need_not_wait_when_who_was_to_ask_has_joined_somebody_else(monkeypatch):
    monkeypatch.setattr(tree, "SUGGESTED_WITHIN", 2.0)
    waited = []
    for seed in range(8):
        world = grown(15, seed, degree=4)
        began = world.now
        world.crash(root_of(world))
        world.run(began + 2.0)  # after which it asks itself
        waited += [seed] * any(connected(world))
    assert waited in ([], [0])  # there the larger part has no room for the smaller one


def test_a_newcomer_makes_one_link():
    world = grown(8)
    assert linked(world, 0.0) == 7


def test_the_larger_part_keeps_its_name():
    world = grown(10, seed=3, degree=4)
    root = root_of(world)
    below = next(one for one in world.there() if one is not root and len(one.router.neighbours()) == 1)
    world.part(frozenset([root.number, below.number]), 20.0)  # the root is on the smaller side
    world.run(world.now + 15.0)
    large, small = parts(world)[0], parts(world)[-1]
    names = {world.brokers[int(name[1:])].router.overlay().component for name in large}
    assert len(large) > len(small)
    assert len(names) == 1
    world.run(world.now + 90.0)
    assert list(at_rest(world)) == []
    assert {root_of(world).name} == names


def test_everybody_has_joined_through_one_broker_which_dies():
    world = grown(9, degree=3, joins=(0,))
    world.crash(world.brokers[0])
    world.run(world.now + 10.0)
    assert list(connected(world)) == []


def test_a_full_star_takes_one_more():
    world = grown(12, degree=2, joins=(0,))
    assert max(len(one.router.neighbours()) for one in world.there()) <= 4


def test_a_link_that_breaks_again_and_again_is_damped():
    world = grown(3, degree=2)
    for _ in range(12):
        world._break(next(one for one in world.connections() if one.up), silent=False)
        world.run(world.now + 2.0)
    assert any(event.what == DAMPED for _, _, event in world.events)
    world.run(world.now + 120.0)
    assert list(at_rest(world)) == []


def test_attempts_to_reach_who_is_away_are_few():
    world = grown(10, joins=(0,))
    for broker in world.there()[5:]:
        world.leave(broker)
    world.run(world.now + 60.0)
    dialled = world.dialled
    world.run(world.now + 600.0)
    assert world.dialled - dialled <= 3 * 600 / 22


@pytest.mark.parametrize("seed", range(2))
def test_links_that_were_removed_by_hand_are_not_made_again_and_all_is_whole_without_them(seed):
    world = grown(14, seed, degree=4)
    chance, removed = random.Random(seed), set()
    for _ in range(5):
        pair = chance.choice(world.links())
        one, other = chance.sample(pair, 2)
        removed.add(pair)
        world.remove_link(next(broker for broker in world.there() if broker.name == one), other)
        world.run(world.now + chance.uniform(0.0, 30.0))
    world.run(world.now + 200.0)
    assert list(connected(world)) == []
    assert list(at_rest(world)) == []
    assert not removed & set(world.links())


# Faults that are planted

HARD = OverlayScenario(
    seed=5,
    brokers=9,
    joins=(0, 1),
    degree=3,
    happenings=(
        CrashBrokers(10.0, (0,), 8.0, False),
        PartNetwork(25.0, (2, 3, 4), 10.0),
        CrashBrokers(40.0, (1, 5), 1.0, True),
        LeaveBroker(50.0, 8),
    ),
)


def never_again(monkeypatch):
    monkeypatch.setattr(TreeOverlay, "_look_later", lambda self: setattr(self, "_look_at", None))
    monkeypatch.setattr(TreeOverlay, "_shrunk", lambda self: None)


def busy(monkeypatch):
    later = TreeOverlay._look_later

    def always(self):
        for known in self._book._known.values():
            known.in_part = False
        later(self)
        self._look_at = self._now() + 2 * FIRST_PAUSE

    monkeypatch.setattr(TreeOverlay, "_look_later", always)


def welcoming(monkeypatch):
    objection = TreeOverlay.objection

    def never_full(self, link, hello):
        found = objection(self, link, hello)
        return None if found is not None and found.why == "full" else found

    monkeypatch.setattr(TreeOverlay, "objection", never_full)


def nameless(monkeypatch):
    monkeypatch.setattr(TreeOverlay, "adopts", lambda self, link, hello: False)


def orphaned(monkeypatch):
    monkeypatch.setattr(Naming, "lose", lambda self, neighbour: False)


def blind(monkeypatch):
    monkeypatch.setattr(Neighbours, "_objection", lambda self, link, hello: None)
    monkeypatch.setattr(TreeOverlay, "objection", lambda self, link, hello: None)

    def hear(self, component, path, neighbour):
        if component != self.component and neighbour == self.toward:
            self.adopt(component, path, neighbour)
            return "adopted"
        return ""

    monkeypatch.setattr(Naming, "hear", hear)


def silent(monkeypatch):
    monkeypatch.setattr(Neighbours, "_tell_of_end", lambda self, link, how, parted: None)


def boasting(monkeypatch):
    monkeypatch.setattr(TreeOverlay, "_tell_of_repair", lambda self, parent: self._tell(DONE))


def hoarding(monkeypatch):
    monkeypatch.setattr(Parking, "_dropping", lambda self, link, port: iter(()))


@pytest.mark.parametrize(
    "plant", [never_again, busy, welcoming, nameless, orphaned, blind, silent, boasting, hoarding]
)
def test_faults_are_found(plant, monkeypatch):
    scenarios = [HARD, *map(tree_of, range(100, 112))]
    assert not any(map(judge, scenarios[:2]))
    plant(monkeypatch)
    assert any(map(judge, scenarios))
