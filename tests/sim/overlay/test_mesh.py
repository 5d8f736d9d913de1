"""Brokers that keep a mesh, in the simulator: connected, each with its neighbours, and quiet in the end."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from palio.routing.announcements import Announcements
from palio.routing.overlay.effects import REFUSED
from palio.routing.overlay.mesh import MeshOverlay
from palio.routing.overlay.settings import SPARE
from palio.sim.overlay.mesh_oracle import mesh_at_rest
from palio.sim.overlay.oracle import connected, judge, parts
from palio.sim.overlay.script import CrashBrokers, LeaveBroker, OverlayScenario, PartNetwork, drawn
from palio.sim.overlay.world import OverlayWorld

SEEDS = 4
MANY = 800


def mesh_of(seed: int) -> OverlayScenario:
    return msgspec.structs.replace(drawn(seed), kind="mesh")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_mesh_is_whole_after_everything_that_happens(seed):
    assert judge(mesh_of(seed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, MANY, 40))
def test_many_meshes_are_whole_after_everything_that_happens(first):
    for seed in range(first, first + 40):
        assert judge(mesh_of(seed)) == [], f"seed {seed}"


def grown(brokers: int, seed: int = 1, **more) -> OverlayWorld:
    """A mesh that has come together, one broker after the other."""
    world = OverlayWorld(OverlayScenario(seed=seed, brokers=brokers, kind="mesh", **more))
    for number, broker in enumerate(world.brokers):
        world.after(float(number), world.begin, broker)
    world.run(brokers + 60.0)
    assert list(connected(world)) == []
    return world


def degrees(world: OverlayWorld) -> list[int]:
    return [len(broker.router.neighbours()) for broker in world.there()]


@pytest.mark.parametrize("links", [2, 3, 5])
def test_everybody_has_as_many_neighbours_as_it_should(links):
    world = grown(16, links=links)
    assert min(degrees(world)) >= links
    assert max(degrees(world)) <= SPARE * links
    assert list(mesh_at_rest(world)) == []


@pytest.mark.slow
def test_neighbours_are_nearer_than_chance_and_one_is_far():
    world = grown(40)
    lengths = {}
    for one, other in world.links():
        for name in (one, other):
            lengths.setdefault(name, []).append(world.latency(one, other))
    chance = Random(5)
    names = sorted(lengths)
    usual = sorted([world.latency(*chance.sample(names, 2)) for _ in range(400)])[200]
    near = sorted([sorted(found)[0] for found in lengths.values()])
    far = sorted([max(found) for found in lengths.values()])
    assert near[len(near) // 2] < 0.6 * usual
    assert far[len(far) // 2] > usual


def test_the_death_of_any_one_broker_parts_nobody_for_long():
    world = grown(12)
    for broker in list(world.brokers):
        world.crash(broker)
        world.run(world.now + 5.0)
        assert len(parts(world)) == 1
        world.begin(broker)
        world.run(world.now + 60.0)
    assert list(mesh_at_rest(world)) == []


def test_two_halves_find_each_other_again():
    world = grown(12)
    world.part(frozenset(range(6)), 40.0)
    world.run(world.now + 30.0)
    assert len(parts(world)) == 2
    world.run(world.now + 60.0)
    assert list(connected(world)) == []
    assert list(mesh_at_rest(world)) == []


def test_everybody_has_joined_through_one_broker_which_dies():
    world = grown(9, joins=(0,))
    world.leave(world.brokers[0])
    world.run(world.now + 90.0)
    assert list(connected(world)) == []
    assert list(mesh_at_rest(world)) == []


def test_trees_and_meshes_do_not_mix():
    world = OverlayWorld(OverlayScenario(seed=1, brokers=4, kind="mesh"))
    world.settings["b3"] = {"kind": "tree"}
    for broker in world.brokers:
        world.begin(broker)
    world.run(60.0)
    assert sorted(map(len, parts(world))) == [1, 3]
    assert any(event.what == REFUSED and "the same overlay" in event.reason for _, _, event in world.events)


# Faults that are planted

HARD = OverlayScenario(
    seed=5,
    brokers=12,
    joins=(0,),
    kind="mesh",
    happenings=(
        CrashBrokers(10.0, (0,), 8.0, False),
        PartNetwork(25.0, (2, 3, 4, 9, 10), 15.0),
        CrashBrokers(45.0, (1, 5), 1.0, True),
        LeaveBroker(50.0, 8),
    ),
)


def careless(monkeypatch):
    monkeypatch.setattr(MeshOverlay, "_looks_for", lambda self, known, reached: self._first_look)


def content(monkeypatch):
    monkeypatch.setattr(MeshOverlay, "_is_lacking", lambda self: not self._links)


def welcoming(monkeypatch):
    monkeypatch.setattr(MeshOverlay, "objection", lambda self, link, hello: None)
    monkeypatch.setattr(MeshOverlay, "_drop_if_too_many", lambda self: None)


def heartless(monkeypatch):
    """It drops whom it likes, whatever becomes of it."""
    monkeypatch.setattr(
        MeshOverlay, "_droppable", lambda self: max(self._links) if len(self._links) > 1 else None
    )
    monkeypatch.setattr(MeshOverlay, "_nearer", lambda self, known: True)


def secretive(monkeypatch):
    monkeypatch.setattr(Announcements, "_whole_interests", lambda self: ())


def busy(monkeypatch):
    monkeypatch.setattr(MeshOverlay, "_looks_for", lambda self, known, reached: True)


SLOW = pytest.mark.slow  # a network that does not come to rest takes its time


@pytest.mark.parametrize(
    "plant", [careless, content, welcoming, pytest.param(heartless, marks=SLOW), secretive, busy]
)
def test_faults_are_found(plant, monkeypatch):
    scenarios = [HARD, *map(mesh_of, range(100, 112))]
    assert judge(HARD) == []
    plant(monkeypatch)
    assert any(map(judge, scenarios))
