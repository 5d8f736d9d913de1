"""A scenario of the overlay for every seed."""

from __future__ import annotations

from collections.abc import Iterator

from palio.sim.overlay.oracle import judged
from palio.sim.overlay.script import OverlayScenario, drawn
from palio.sim.overlay.world import OverlayWorld
from palio.sim.soak import Soaked, in_order


def soak_one(seed: int) -> Soaked[OverlayScenario]:
    """Simulate the scenario of a seed; nothing is published in it."""
    world = OverlayWorld(drawn(seed))
    violations = tuple(judged(world))
    return Soaked(seed, world.scenario, violations, deliveries=0, messages=world.sent.total())


def soak(first: int, count: int, workers: int = 1) -> Iterator[Soaked[OverlayScenario]]:
    """The scenarios of `count` seeds from `first` on, in their order, on so many processes."""
    return in_order(soak_one, range(first, first + count), workers)
