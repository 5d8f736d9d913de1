"""What decides a run about the overlay: brokers on a map, and what happens to them, drawn from a seed."""

from __future__ import annotations

from random import Random
from typing import Literal, TypeAlias, get_args

import msgspec

from palio.routing.reconfiguration.settings import Protocol
from palio.sim.scenario import AnyScenario, WrongScenario

# Seconds in which things happen, after all have begun.
BEGIN_WITHIN = 5.0
LASTS = 60.0


class CrashBrokers(msgspec.Struct, frozen=True, tag="crash"):
    """Some brokers end at once; others notice soon, or by their heartbeats (`silent`). They come back."""

    at: float
    brokers: tuple[int, ...]
    back: float
    silent: bool


class LeaveBroker(msgspec.Struct, frozen=True, tag="leave"):
    """A broker ends in order, and does not come back."""

    at: float
    broker: int


class JoinBroker(msgspec.Struct, frozen=True, tag="join"):
    """A broker begins that was not there before."""

    at: float
    broker: int


class PartNetwork(msgspec.Struct, frozen=True, tag="part"):
    """Some brokers and all others cannot reach each other for a time."""

    at: float
    brokers: tuple[int, ...]
    lasts: float


class CutConnection(msgspec.Struct, frozen=True, tag="cut"):
    """A connection breaks, by the place of its number among those that there are; both ends live."""

    at: float
    place: float


class SlowNetwork(msgspec.Struct, frozen=True, tag="slow"):
    """Everything takes so many times as long for a time, and a share of all attempts to connect is lost."""

    at: float
    times: float
    lost: float
    lasts: float


Happening: TypeAlias = CrashBrokers | LeaveBroker | JoinBroker | PartNetwork | CutConnection | SlowNetwork


class OverlayScenario(AnyScenario, frozen=True, kw_only=True, tag="overlay"):
    """So many brokers, of which each is told where some of the first ones are."""

    seed: int = 1
    brokers: int = 8
    joins: tuple[int, ...] = (0,)  # to whom all are told to go
    kind: Literal["tree", "mesh"] = "tree"
    degree: int = 8
    links: int = 3
    keeps: bool = False  # brokers that were met, over a restart
    strategy: Literal["identity", "covering", "merging"] = "covering"
    reconfiguration: Protocol = "notified"
    happenings: tuple[Happening, ...] = ()

    def __post_init__(self) -> None:
        self._demand_some("brokers", "degree")
        numbers = {one for happening in self.happenings for one in _brokers_of(happening)} | {*self.joins}
        if numbers and not 0 <= min(numbers) <= max(numbers) < self.brokers:
            raise WrongScenario("brokers", f"They are numbered from 0 to {self.brokers - 1}.")

    @property
    def late(self) -> frozenset[int]:
        """Brokers that are not there from the beginning."""
        return frozenset([one.broker for one in self.happenings if isinstance(one, JoinBroker)])


def _brokers_of(happening: Happening) -> tuple[int, ...]:
    if isinstance(happening, CrashBrokers | PartNetwork):
        return happening.brokers
    return (happening.broker,) if isinstance(happening, LeaveBroker | JoinBroker) else ()


def drawn(seed: int) -> OverlayScenario:
    """The scenario of a seed."""
    chance = Random(f"overlay {seed}")
    brokers = chance.choice((2, 3, 5, 8, 12, 20))
    joins = tuple(chance.sample(range(brokers), min(brokers, chance.choice((1, 1, 2, 3)))))
    gone: set[int] = set()
    happenings: list[Happening] = []

    def moment() -> float:
        return round(chance.choice((chance.uniform(0.0, LASTS), chance.randrange(3) * LASTS / 3)), 3)

    for _ in range(chance.choice((0, 1, 3, 6))):
        some = chance.sample(range(brokers), min(brokers - 1, chance.choice((1, 1, 1, 2, 3))))
        back = round(chance.choice((0.05, 1.0, 10.0)), 3)
        happenings.append(CrashBrokers(moment(), tuple(some), back, chance.random() < 0.3))
    for _ in range(chance.choice((0, 0, 1, 2))):
        some = chance.sample(range(brokers), chance.randint(1, max(1, brokers // 2)))
        happenings.append(PartNetwork(moment(), tuple(some), round(chance.choice((0.5, 5.0, 20.0)), 3)))
    for _ in range(chance.choice((0, 0, 2, 5))):
        happenings.append(CutConnection(moment(), round(chance.random(), 3)))
    for _ in range(chance.choice((0, 0, 1))):
        happenings.append(SlowNetwork(moment(), chance.choice((3.0, 20.0)), chance.choice((0.0, 0.3)), 10.0))
    for _ in range(chance.choice((0, 0, 1, 2))):
        others = [one for one in range(brokers) if one not in joins and one not in gone]
        if len(others) > 1:
            gone.add(others[0])
            kind = chance.choice((LeaveBroker, JoinBroker))
            happenings.append(kind(moment(), others[0]))
    # Drawn by itself: what a seed means otherwise is older than meshes are.
    kinds = Random(f"overlay kind {seed}")
    return OverlayScenario(
        seed=seed,
        kind=kinds.choice(("tree", "tree", "mesh")),
        links=kinds.choice((2, 3, 4)),
        keeps=kinds.choice((True, False)),
        brokers=brokers,
        joins=joins,
        degree=chance.choice((2, 3, 8)),
        strategy=chance.choice(("covering", "identity", "merging")),
        reconfiguration=Random(f"overlay reconfiguration {seed}").choice(get_args(Protocol)),
        happenings=tuple(sorted(happenings, key=lambda one: one.at)),
    )
