"""Soaking with faults: as many different scenarios as asked for, each drawn from its seed.

Strategy, topology and advertisements go through all their combinations; which kinds of trouble there are, and
how much of each, is luck: some runs have one kind only, some have everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from typing import Any

import msgspec

from palio.sim.faults.run import simulate
from palio.sim.faults.scenario import TROUBLE, FaultScenario
from palio.sim.scenario import Shape
from palio.sim.soak import COMBINATIONS

_SHAPES: tuple[Shape, ...] = ("single", "line", "star", "tree", "ring", "graph", "hierarchy", "grid")
_CHUNK = 8  # seeds that a worker is given at once


class FaultSoaked(msgspec.Struct, frozen=True):
    """What came of one seed."""

    seed: int
    scenario: FaultScenario
    violations: tuple[str, ...]
    deliveries: int
    messages: int


def drawn(seed: int) -> FaultScenario:
    """The scenario of a seed; those of any `len(COMBINATIONS)` seeds in a row have all combinations."""
    (strategy, excess), topology, advertisements = COMBINATIONS[seed % len(COMBINATIONS)]
    chance = Random(f"faults soak {seed}")
    kinds = chance.sample(list(TROUBLE), chance.choice((1, 2, 3, 4, len(TROUBLE))))
    trouble: dict[str, Any] = {kind: chance.randint(1, TROUBLE[kind]) for kind in kinds}
    return FaultScenario(
        seed=seed,
        shape=chance.choice(_SHAPES),
        topology=topology,
        brokers=chance.choice((1, 2, 2, 3, 3, 3, 4, 5, 6)),
        strategy=strategy,
        merging_excess=excess,
        advertisements=advertisements,
        takers=chance.randint(1, 4),
        publishers=chance.randint(1, 3),
        notifications=chance.randint(5, 30),
        length=chance.choice((3.0, 8.0, 20.0)),
        outbox=chance.choice((4, 12, 100)),
        page=chance.choice((1, 3, 50)),
        attempts=chance.choice((3, 1000, 1000)),
        **trouble,
    )


def soak_one(seed: int) -> FaultSoaked:
    """Simulate the scenario of a seed."""
    scenario = drawn(seed)
    run = simulate(scenario)
    return FaultSoaked(
        seed=seed,
        scenario=scenario,
        violations=tuple(map(str, run.violations)),
        deliveries=len(run.record.handings),
        messages=run.world.handled,
    )


def soak(first: int, count: int, workers: int = 1) -> Iterator[FaultSoaked]:
    """The scenarios of `count` seeds from `first` on, in their order, on so many processes."""
    seeds = range(first, first + count)
    if workers <= 1:
        yield from map(soak_one, seeds)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(soak_one, seeds, chunksize=_CHUNK)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
