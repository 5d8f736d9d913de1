"""What it costs to keep brokers together: messages for a join, a leave, a dead broker, a partition that heals.

Counted is what the overlay itself says: hellos, refusals, names and news of who is near; and how often somebody
was dialled. Rows, which follow from any change of links, are not the overlay's.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from palio.routing.overlay.effects import GIVEN_UP
from palio.sim.overlay.oracle import links_beside, parts, reached
from palio.sim.overlay.script import OverlayScenario
from palio.sim.overlay.world import OverlayBroker, OverlayWorld

Change = Literal[
    "a join", "a leave", "a leaf dies", "an inner broker dies", "the root dies", "a partition heals"
]
CHANGES: tuple[Change, ...] = get_args(Change)
# What the overlay says, by type; the rest of what links carry is about rows.
SAID = ("Hello", "Goodbye", "Joined", "Nearby", "Suggest", "LinkState")
_GROWS, _GROWN = 60.0, 300.0  # seconds in which brokers begin, and in which they have come together
_APART = 60.0
_WATCHED = 120.0  # seconds in which a change is over


class OverlayCost(msgspec.Struct, frozen=True):
    """What one change has cost, about a broker with so many neighbours; connected again after some seconds."""

    messages: int
    dialled: int
    neighbours: int
    seconds: float
    given_up: int  # links that have closed a loop


def measure(change: Change, brokers: int, seed: int, kind: Literal["tree", "mesh"] = "tree") -> OverlayCost:
    """The cost of one change in a network of so many brokers that was at rest."""
    scenario = OverlayScenario(seed=seed, kind=kind, brokers=brokers + 1, joins=(0, 1, 2))
    world = OverlayWorld(scenario, subscribing=False)
    newcomer = world.brokers[brokers]
    for number in range(brokers):
        world.after(_GROWS * number / brokers, world.begin, world.brokers[number])
    world.run(_GROWN)
    broker = newcomer if change == "a join" else chosen(world, change)
    neighbours = len(broker.router.neighbours()) if broker.router is not None else 1
    if change == "a partition heals":
        world.part(frozenset(range(brokers // 2)), _APART)
        world.run(_GROWN + _APART)
    before, began = _counts(world), world.now
    if change == "a join":
        world.begin(newcomer)
    elif change == "a leave":
        world.leave(broker)
    elif change != "a partition heals":
        world.crash(broker)
    world.run(began + 0.5)  # until it is noticed
    while len(parts(world)) > 1 and world.now < began + _WATCHED:
        world.run(world.now + 0.1)
    seconds = round(world.now - began, 1)
    world.run(began + _WATCHED)
    said, dialled, given_up = [after - first for after, first in zip(_counts(world), before, strict=True)]
    return OverlayCost(said, dialled, neighbours, seconds, given_up)


class EventCost(msgspec.Struct, frozen=True):
    """What became of events that all brokers want, at rest and while those beside a dead broker find links."""

    redundant_at_rest: float  # copies beyond the first that a broker got, for each event
    redundant_in_repair: float
    missed_at_rest: int  # deliveries that did not come, to whom the network was known to lead
    missed_in_repair: int  # the same, where the way from the publisher was not by the dead broker


def measure_events(
    change: Change, brokers: int, seed: int, kind: Literal["tree", "mesh"] = "tree"
) -> EventCost:
    """Events that are published before and after the death of a broker, everywhere, until all is repaired."""
    scenario = OverlayScenario(seed=seed, kind=kind, brokers=brokers, joins=(0, 1, 2))
    world = OverlayWorld(scenario, subscribing=False)
    for number in range(brokers):
        world.after(_GROWS * number / brokers, world.begin, world.brokers[number])
    world.run(_GROWN)
    for broker in world.brokers:
        world.subscribe(broker, "exists(number)", "all")
    world.run(world.now + _GROWS)
    assert len(world.ready) == brokers
    broker = chosen(world, change)
    some = [one for one in world.there() if one is not broker][:: max(1, brokers // 10)][:10]
    rest = [world.publish(one) for one in some]
    world.run(world.now + 10.0)
    redundant = redundant_copies(world)
    missed = sum([not world.delivered[one.name, number] for one in world.there() for number in rest])
    beside = links_beside(world)
    world.crash(broker)
    published = {}
    for _ in range(60):
        for one in some:
            published[world.publish(one)] = one.name
        world.run(world.now + 0.1)
    world.run(world.now + _WATCHED)
    assert len(parts(world)) == 1
    lost = 0
    for number, name in published.items():
        near = reached(beside, {name}, broker.name)
        lost += sum([not world.delivered[other, number] for other in near])
    in_repair = redundant_copies(world) - redundant
    return EventCost(redundant / len(rest), in_repair / len(published), missed, lost)


def redundant_copies(world: OverlayWorld) -> int:
    """How often somebody got an event that it had got before, or had published itself."""
    return sum([count - (broker != origin) for (broker, (origin, _)), count in world.copies.items()])


def chosen(world: OverlayWorld, change: Change) -> OverlayBroker:
    """The broker that a change is about: the one of its sort that has most neighbours."""
    degree = {broker.name: len(broker.router.neighbours()) for broker in world.there() if broker.router}
    roots = {broker.router.overlay().component for broker in world.there() if broker.router}
    sorts = {
        "a leaf dies": [name for name in degree if degree[name] == 1 and name not in roots],
        "the root dies": [name for name in degree if name in roots],
    }
    inner = [name for name in degree if name not in roots]
    best = max(sorts.get(change, inner), key=lambda name: degree[name])
    return next(broker for broker in world.brokers if broker.name == best)


def _counts(world: OverlayWorld) -> tuple[int, int, int]:
    given_up = sum([event.what == GIVEN_UP for _, _, event in world.events])
    return sum([world.sent[kind] for kind in SAID]), world.dialled, given_up
