"""Soaking: as many different scenarios as asked for, each drawn from its seed.

Strategy, topology and advertisements go through all their combinations, one seed after the other; the rest
is luck. The networks are small and crowded, so that filters meet, cover and race: a large network shows
nothing more, only later.
"""

from __future__ import annotations

import gc
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, product
from multiprocessing import get_context
from random import Random
from typing import Any, Generic, TypeVar, get_args

import msgspec

from palio.routing.reconfiguration.settings import Protocol
from palio.sim.run import simulate, without_collections
from palio.sim.scenario import AnyScenario, Scenario, Shape, StrategyName, Topology

# A strategy, and how much excess a merged filter may have.
_STRATEGIES: tuple[tuple[Any, float], ...] = (
    *((name, 0.0) for name in get_args(StrategyName)),
    ("merging", 0.3),
)
_TOPOLOGIES: tuple[Topology, ...] = get_args(Topology)
COMBINATIONS = tuple(product(_STRATEGIES, _TOPOLOGIES, (False, True)))
_SHAPES: tuple[Shape, ...] = get_args(Shape)
_CHUNK = 8  # seeds that a worker is given at once
_AHEAD = 8  # chunks for each worker that wait: a million seeds take no more memory than a hundred

Result = TypeVar("Result")
OneScenario = TypeVar("OneScenario", bound=AnyScenario)


class Soaked(msgspec.Struct, Generic[OneScenario], frozen=True):
    """What came of one seed."""

    seed: int
    scenario: OneScenario
    violations: tuple[str, ...]
    deliveries: int
    messages: int


def drawn(seed: int) -> Scenario:
    """The scenario of a seed; those of any `len(COMBINATIONS)` seeds in a row have all combinations."""
    chance = Random(f"soak {seed}")
    return Scenario(
        seed=seed,
        shape=chance.choice(_SHAPES),
        brokers=chance.randint(1, 12) if chance.random() < 0.9 else chance.randint(13, 40),
        subscribers=chance.randint(1, 8),
        publishers=chance.randint(1, 4),
        subscriptions=chance.randint(1, 24),
        notifications=chance.randint(10, 40),
        interests=chance.randint(1, 5),
        skew=chance.choice((0.0, 1.0)),
        locality=chance.choice((0.0, 0.5)),
        covered=chance.choice((0.0, 0.5, 0.9, 1.0)),
        churn=chance.choice((0.0, 0.3, 1.0)),
        link_churn=chance.choice((0.0, 0.0, 0.3)),
        repeats=chance.choice((0.0, 0.3)),
        both=chance.choice((0.0, 0.3)),
        batch=chance.choice((1, 3)),
        haste=chance.choice((1.0, 5.0, 20.0)),
        ready=chance.random() < 0.8,
        reconfiguration=Random(f"reconfiguration {seed}").choice(get_args(Protocol)),
        **combination(seed),
    )


def combination(seed: int) -> dict[str, Any]:
    """What in the scenario of a seed is no luck."""
    (strategy, excess), topology, advertised = COMBINATIONS[seed % len(COMBINATIONS)]
    chosen = {"strategy": strategy, "merging_excess": excess}
    return chosen | {"topology": topology, "advertisements": advertised}


def soak_one(seed: int) -> Soaked[Scenario]:
    scenario = drawn(seed)
    run = simulate(scenario)
    return Soaked(
        seed=seed,
        scenario=scenario,
        violations=tuple(map(str, run.verdict.violations)),
        deliveries=len(run.network.history.deliveries),
        messages=run.network.handled,
    )


def soak(first: int, count: int, workers: int = 1) -> Iterator[Soaked[Scenario]]:
    """The scenarios of `count` seeds from `first` on, in their order, on so many processes."""
    return in_order(soak_one, range(first, first + count), workers)


def in_order(one: Callable[[int], Result], seeds: range, workers: int) -> Iterator[Result]:
    """What comes of each seed, in the order of the seeds, on so many processes."""
    if workers <= 1:
        for seed in seeds:
            yield _alone(one, seed)
        return
    chunks = (seeds[first : first + _CHUNK] for first in range(0, len(seeds), _CHUNK))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin_worker) as pool:
        submitted = (pool.submit(_several, one, chunk) for chunk in chunks)  # as they are asked for
        try:
            waiting = deque(islice(submitted, _AHEAD * workers))
            while waiting:
                yield from waiting.popleft().result()
                waiting.extend(islice(submitted, 1))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it decides when it ends
    gc.freeze()  # modules stay: no use in looking through them after each run


def _several(one: Callable[[int], Result], seeds: range) -> list[Result]:
    return [_alone(one, seed) for seed in seeds]


def _alone(one: Callable[[int], Result], seed: int) -> Result:
    """What comes of a seed. The world is one web of cycles, of which nothing can go before the run is over."""
    with without_collections():  # the next object that is made lets the collector take the whole run
        return one(seed)
