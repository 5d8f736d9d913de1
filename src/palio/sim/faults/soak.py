"""Soaking with faults: as many different scenarios as asked for, each drawn from its seed.

Strategy, topology and advertisements go through all their combinations; the rest is luck, also the *mix* of a
run (swarm testing: Groce et al., ISSTA 2012). Most runs are mixed: few kinds of trouble, much of each, tied
into knots that find what is rare. The others are even: any number of kinds, spread over the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from random import Random
from typing import Any, get_args

import msgspec

from palio.routing.reconfiguration.settings import Protocol
from palio.sim.faults.knots import KNOTS, WORDS, Word
from palio.sim.faults.reach import FaultReach, counts
from palio.sim.faults.run import simulate
from palio.sim.faults.scenario import TROUBLE, FaultScenario
from palio.sim.scenario import Shape
from palio.sim.soak import Soaked, combination, in_order

_SHAPES: tuple[Shape, ...] = ("single", "line", "star", "tree", "ring", "graph", "hierarchy", "grid")
_EVEN = 0.25  # the share of runs that are not mixed
_OLDER = 0.1  # the share of runs in which disks come back older than they were
_FLIPPED = 0.1  # the share of runs in which bits flip on disks
_DEPARTING = 0.1  # the share of runs in which brokers leave for good
_FORGETTING = 0.1  # the share of runs in which brokers forget those that are away for too long
_FLAPPING = 0.1  # the share of runs in which links come and go all the time
_RELAYS = 0.1  # the share of runs in which relays stand between the brokers
_GROUPS = 0.5  # the share of runs in which several writes reach a disk together
_HOMING = 0.3  # of these, the share in which a former home has such a disk
_FIRST_KNOTS = tuple(word for word in KNOTS if word not in ("roaming", "homing"))


class FaultSoaked(Soaked[FaultScenario], frozen=True):
    """What came of one seed, and what it came across where that was measured."""

    reached: tuple[tuple[str, str, str, int], ...] = ()  # kind, what, state, times


def drawn(seed: int) -> FaultScenario:
    """The scenario of a seed; those of any `len(COMBINATIONS)` seeds in a row have all combinations."""
    scenario = drawn_evenly(seed) if Random(f"mix {seed}").random() < _EVEN else drawn_mixed(seed)
    # Drawn apart, so that all other seeds have the scenario that they had before disks came back older.
    if Random(f"faults older disks {seed}").random() < _OLDER:
        scenario = with_older_disks(scenario)
    if Random(f"faults flipped bits {seed}").random() < _FLIPPED:
        scenario = with_flipped_bits(scenario)
    if Random(f"faults forgetting {seed}").random() < _FORGETTING:
        scenario = with_forgetting(scenario)
    if Random(f"faults flapping links {seed}").random() < _FLAPPING:
        scenario = with_flapping_links(scenario)
    if Random(f"faults departing {seed}").random() < _DEPARTING and not scenario.older:
        scenario = with_departures(scenario)
    if Random(f"faults relays {seed}").random() < _RELAYS:
        scenario = with_some_relays(scenario)
    groups = Random(f"faults groups {seed}").random() < _GROUPS
    protocol = Random(f"faults reconfiguration {seed}").choice(get_args(Protocol))
    return msgspec.structs.replace(scenario, groups=groups, reconfiguration=protocol)


def with_some_relays(scenario: FaultScenario) -> FaultScenario:
    """A scenario in which brokers that keep nothing stand between the others."""
    count = Random(f"faults how many relays {scenario.seed}").choice((1, 1, 2, 3))
    return msgspec.structs.replace(scenario, relays=count)


def with_flapping_links(scenario: FaultScenario) -> FaultScenario:
    """A scenario in which links change faster than everyone can agree on an epoch, or hardly slower."""
    every = Random(f"faults how fast {scenario.seed}").choice((0.05, 0.1, 0.25, 0.5))
    return msgspec.structs.replace(scenario, flapping=every)


def with_flipped_bits(scenario: FaultScenario) -> FaultScenario:
    """A scenario in which bits flip on disks. What a lake does with what is damaged is another matter."""
    count = Random(f"faults how many flips {scenario.seed}").choice((1, 1, 2, 3))
    return msgspec.structs.replace(scenario, flips=count, lake=False)


def with_forgetting(scenario: FaultScenario) -> FaultScenario:
    """A scenario in which brokers are away for longer than others wait for them."""
    chance = Random(f"faults forgetting more {scenario.seed}")
    return msgspec.structs.replace(
        scenario,
        forget_after=chance.choice((0.5, 2.0, 6.0)),
        brokers=max(2, scenario.brokers),
        shape="line" if scenario.shape == "single" else scenario.shape,
        crashes=max(scenario.crashes, chance.randint(0, 3)),
        cuts=max(scenario.cuts, chance.randint(0, 3)),
        partitions=max(scenario.partitions, chance.randint(0, 2)),
        length=max(scenario.length, 16.0),
        late=False,
    )


def with_departures(scenario: FaultScenario) -> FaultScenario:
    """A scenario in which brokers leave the network for good, in order; what only lakes have goes with them."""
    count = Random(f"faults how many depart {scenario.seed}").choice((1, 1, 2))
    return msgspec.structs.replace(
        scenario,
        departs=count,
        brokers=max(count + 1, scenario.brokers),
        shape="line" if scenario.shape == "single" else scenario.shape,
        forget_after=0.0,
        older=0,
        lake=False,
        mix=tuple(word for word in scenario.mix if word != "homing"),
    )


def with_older_disks(scenario: FaultScenario) -> FaultScenario:
    """A scenario in which disks come back older than they were, or empty.

    A lake would have to come back with them, and nobody joins: a broker that forgets everything is as one that
    joins, but for what others remember of it, and what is promised to who joins is another matter.
    """
    count = Random(f"faults how many older disks {scenario.seed}").choice((1, 1, 1, 2, 3))
    mix = tuple(word for word in scenario.mix if word not in ("joining", "roaming"))
    if Random(f"faults homing {scenario.seed}").random() < _HOMING:
        mix = (*mix, "homing")
    return msgspec.structs.replace(scenario, older=count, lake=False, joins=0, mix=mix)


def with_documents(scenario: FaultScenario) -> FaultScenario:
    """A scenario in which documents are published, kept, and what some subscriptions begin with.

    Nobody is forgotten or leaves: of what such a broker published, nothing is promised to who keeps it.
    """
    chance = Random(f"faults documents {scenario.seed}")
    return msgspec.structs.replace(
        scenario,
        documents=chance.choice((6, 12, 24)),
        keepers=chance.choice((1, 1, 2, 3)),
        beginners=chance.choice((0, 1, 2, 3)),
        forget_after=0.0,
        departs=0,
        publishers=max(scenario.publishers, chance.choice((1, 2, 3))),
    )


def drawn_mixed(seed: int) -> FaultScenario:
    """A short run with few kinds of trouble, much of each, and knots."""
    chance = Random(f"faults mixed {seed}")
    mix: set[Word] = set(chance.sample(_FIRST_KNOTS, chance.choice((0, 1, 1, 2, 2, 3))))
    mix |= {word for word in ("close", "early") if chance.random() < 0.4}
    if chance.random() < 0.6:
        mix.add("striking")
    kinds = set(chance.sample(list(TROUBLE), chance.choice((0, 1, 1, 2, 2, 3))))
    if "joining" in mix:
        kinds.add("joins")
    # What is rare by itself is not made more frequent than it can be: a subscription ends once.
    trouble: dict[str, Any] = {kind: chance.randint(1, 2 * TROUBLE[kind]) for kind in sorted(kinds)}
    # Drawn apart, so that the rest of a seed's scenario is what it was before these were there.
    more = Random(f"faults mixed more {seed}")
    if Random(f"faults roaming {seed}").random() < 0.2:
        mix.add("roaming")
        trouble.setdefault("joins", 1)
    if more.random() < 0.25:
        trouble |= {"halts": more.randint(1, 2), "rewinds": more.randint(0, 2)}
    return FaultScenario(
        seed=seed,
        shape=chance.choice(_SHAPES),
        brokers=chance.choice((1, 2, 2, 2, 3, 3, 4, 4, 5)),
        takers=chance.choice((1, 1, 2, 2, 3)),
        publishers=chance.choice((1, 1, 2, 3)),
        notifications=chance.randint(3, 24),
        length=chance.choice((3.0, 3.0, 8.0, 16.0)),
        late=chance.random() < 0.3,
        batched=chance.random() < 0.5,
        outbox=chance.choice((4, 12, 100)),
        page=chance.choice((1, 1, 3, 50)),
        attempts=chance.choice((3, 1000, 1000)),
        anew=chance.random() < 0.15,
        lake=chance.random() < 0.4,
        retries=more.random() < 0.25,
        independent=True,
        mix=tuple(word for word in WORDS if word in mix),
        **trouble,
        **combination(seed),
    )


def drawn_evenly(seed: int) -> FaultScenario:
    """A run in which any kinds of trouble are spread over its time, and do not wait for each other."""
    chance = Random(f"faults soak {seed}")
    # Most runs are short, since most mistakes are about two or three things that meet. Some are longer.
    large = chance.random() < 0.15
    kinds = chance.sample(list(TROUBLE), chance.choice((1, 2, 3, 4, 6, len(TROUBLE))))
    most = 2 if large else 1
    trouble: dict[str, Any] = {kind: chance.randint(1, most * TROUBLE[kind]) for kind in kinds}
    return FaultScenario(
        seed=seed,
        shape=chance.choice(_SHAPES),
        brokers=chance.choice((4, 6, 8) if large else (1, 2, 2, 3, 3, 3, 4, 5)),
        takers=chance.randint(2, 6) if large else chance.randint(1, 4),
        publishers=chance.randint(1, 4),
        notifications=chance.randint(30, 80) if large else chance.randint(5, 30),
        length=chance.choice((8.0, 20.0, 40.0) if large else (3.0, 8.0, 20.0)),
        late=chance.random() < 0.3,
        outbox=chance.choice((4, 12, 100)),
        page=chance.choice((1, 3, 50)),
        attempts=chance.choice((3, 1000, 1000)),
        anew=chance.random() < 0.15,
        lake=chance.random() < 0.4,
        **trouble,
        **combination(seed),
    )


# What may be in all runs of a soak, and is in some of any: by the name of its option.
KINDS: dict[str, Callable[[FaultScenario], FaultScenario]] = {
    "older-disks": with_older_disks,
    "flipped-bits": with_flipped_bits,
    "flapping-links": with_flapping_links,
    "departing": with_departures,
    "relays": with_some_relays,
    "documents": with_documents,
}


def soak_one(
    seed: int, *, even: bool = False, kinds: Collection[str] = (), measured: bool = False
) -> FaultSoaked:
    """Simulate the scenario of a seed, with such `kinds` of trouble, and measure what it reaches."""
    scenario = drawn_evenly(seed) if even else drawn(seed)
    for kind, with_kind in KINDS.items():
        if kind in kinds:
            scenario = with_kind(scenario)
    reach = FaultReach() if measured else None
    run = simulate(scenario, reach=reach)
    return FaultSoaked(
        seed=seed,
        scenario=scenario,
        violations=tuple(map(str, run.violations)),
        deliveries=len(run.record.handings),
        messages=run.world.handled,
        reached=counts(reach) if reach is not None else (),
    )


def soak(
    first: int,
    count: int,
    workers: int = 1,
    *,
    even: bool = False,
    kinds: Collection[str] = (),
    measured: bool = False,
) -> Iterator[FaultSoaked]:
    """The scenarios of `count` seeds from `first` on, in their order, on so many processes.

    What is in `kinds` is in all of them, and not only in some.
    """
    one = partial(soak_one, even=even, kinds=tuple(kinds), measured=measured)
    return in_order(one, range(first, first + count), workers)
