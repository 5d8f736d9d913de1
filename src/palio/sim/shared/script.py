"""What decides a run about shared records: a network, and what happens to it, drawn from a seed."""

from __future__ import annotations

from random import Random
from typing import TypeAlias, get_args

import msgspec

from palio.sim.scenario import Shape, Topology
from palio.sim.shapes import draw
from palio.sim.topologies import Layout, lay_out

# Seconds in which things happen; keys are few, so that changes meet.
LASTS = 3.0
KEYS = 4


class PutRecord(msgspec.Struct, frozen=True, tag="put"):
    """Somebody at a broker changes a record, or removes it; and waits until it is there, or everywhere."""

    at: float
    broker: int
    key: int
    removes: bool
    everywhere: bool


class CutLink(msgspec.Struct, frozen=True, tag="cut"):
    """A link breaks, and comes back after a time; or, in the first part of the run, does not."""

    at: float
    link: int
    back: float | None


class CrashBroker(msgspec.Struct, frozen=True, tag="crash"):
    """A broker ends at once; a share of what it was writing is on disk. It begins anew after a time."""

    at: float
    broker: int
    share: float
    back: float


class FillDisk(msgspec.Struct, frozen=True, tag="fill"):
    """A disk is full for a time."""

    at: float
    broker: int
    lasts: float


Happening: TypeAlias = PutRecord | CutLink | CrashBroker | FillDisk


class SharedScenario(msgspec.Struct, frozen=True, kw_only=True, tag="shared"):
    """A network, by number of its brokers; those that are `older` know nothing of shared records."""

    seed: int
    shape: Shape
    topology: Topology
    brokers: int
    durable: bool
    older: tuple[int, ...]
    happenings: tuple[Happening, ...]

    def layout(self) -> Layout:
        chance = Random(f"shared network {self.seed}")
        return lay_out(draw(self.shape, self.brokers, chance), self.topology, chance)


def drawn(seed: int) -> SharedScenario:
    """The scenario of a seed."""
    chance = Random(f"shared {seed}")
    topologies: tuple[Topology, ...] = get_args(Topology)
    shapes: tuple[Shape, ...] = get_args(Shape)
    brokers = chance.randint(2, 7)
    scenario = SharedScenario(
        seed=seed,
        shape=chance.choice(shapes),
        topology=topologies[seed % len(topologies)],
        brokers=brokers,
        durable=chance.random() < 0.6,
        older=(),
        happenings=(),
    )
    layout = scenario.layout()
    brokers, links = layout.size, len(layout.links)  # some shapes have a few brokers more, or fewer
    older = (chance.randrange(brokers),) if brokers > 1 and chance.random() < 0.2 else ()
    happenings: list[Happening] = []
    current = [one for one in range(brokers) if one not in older]
    for _ in range(chance.randint(3, 25)):
        at, broker = round(chance.uniform(0.0, LASTS), 3), chance.choice(current)
        removes, everywhere = chance.random() < 0.25, chance.random() < 0.6
        happenings.append(PutRecord(at, broker, chance.randrange(KEYS), removes, everywhere))
    for _ in range(chance.choice((0, 0, 2, 5, 10)) if links else 0):
        at = round(chance.uniform(0.0, LASTS), 3)
        back = None if chance.random() < 0.2 else round(chance.choice((0.02, 0.3, 1.0)), 3)
        happenings.append(CutLink(at, chance.randrange(links), back))
    if scenario.durable:
        for _ in range(chance.choice((0, 0, 1, 3))):
            at, broker = round(chance.uniform(0.0, LASTS), 3), chance.choice(current)
            happenings.append(
                CrashBroker(at, broker, chance.choice((0.0, 0.5, 1.0)), chance.choice((0.05, 0.6)))
            )
        for _ in range(chance.choice((0, 0, 1))):
            happenings.append(FillDisk(round(chance.uniform(0.0, LASTS), 3), chance.choice(current), 0.7))
    return msgspec.structs.replace(
        scenario, older=older, happenings=tuple(sorted(happenings, key=lambda one: one.at))
    )
