"""Company: who can reach whom, and since when. By that it is judged whether a broker was rightly forgotten."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from palio.routing.durable.effects import ReportForgotten
from palio.sim.faults.station import FaultyStation

if TYPE_CHECKING:
    from palio.sim.faults.world import World

# Seconds that brokers may be together again, or have been together only, without one of them noticing: it is
# paused or slow, or what it would hear by lags. Nothing of that lasts longer in a run.
UNNOTICED = 15.0

# Seconds in which all hear that one is forgotten.
_TOLD_WITHIN = 3.0

_Pair = frozenset[str]


class _Forgetting(NamedTuple):
    """Who was with a broker when it forgot another one, and of whom all it knew."""

    part: set[str]
    known: set[str]


class Company:
    """The pairs of brokers that are together, by the links that are there."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._together: dict[_Pair, float] = {}  # since when
        self._parted: dict[_Pair, tuple[float, float]] = {}  # from when and until when they were, last
        # Who has forgotten whom since they were together: who was with it then, and of whom all it knew.
        self._forgotten: dict[tuple[str, str], _Forgetting] = {}
        self._mutual: list[tuple[str, str, _Forgetting, _Forgetting]] = []
        self._known: dict[tuple[str, int], set[str]] = {}  # by broker and moment: all that it knew before

    def changed(self) -> None:
        """Handles links that have come or gone."""
        if not self._world.settings.forget_after:
            return  # nobody asks
        now, found = self._world.now, set(self._pairs())
        for pair in [pair for pair in self._together if pair not in found]:
            self._parted[pair] = self._together.pop(pair), now
        for pair in found:
            self._together.setdefault(pair, now)
            one, other = pair
            self._forgotten.pop((one, other), None)
            self._forgotten.pop((other, one), None)

    def forgotten(self, station: FaultyStation, effect: ReportForgotten) -> None:
        """Handles that a broker forgets another one: what only that one has is given up."""
        world, record = self._world, self._world.record
        last, _ = record.forgotten_at.get(effect.broker, (-_TOLD_WITHIN, 0))
        if world.now - last > _TOLD_WITHIN:
            record.forgotten_at[effect.broker] = world.now, record.moment
        if world.stations[effect.broker].departs:
            return  # that gives up nothing
        record.forgotten.add(effect.broker)
        record.given_up |= world.stations[effect.broker].hosted
        if effect.why != "away":
            return
        pair = frozenset((station.name, effect.broker))
        begin, end = self._parted.get(pair, (0.0, 0.0))
        if pair in self._together:
            begin, end = self._together[pair], world.now
        # A clock that is set ahead has all that it measures end early.
        least = world.settings.forget_after - max(0.0, station.ahead)
        if end - begin > UNNOTICED and world.now - end < least:
            record.forgotten_early.append((station.name, effect.broker, world.now - end))
        members = {one.name for one in world.members}
        part = members & {station.name}.union(*[one for one in self._together if station.name in one])
        service = station.router.durable if station.router is not None else None
        known = self._known.setdefault((station.name, record.moment), set())
        known |= {effect.broker, *(service.topology.known if service is not None else ())}
        here = self._forgotten[station.name, effect.broker] = _Forgetting(part, known)
        there = self._forgotten.get((effect.broker, station.name))
        if there is not None:
            self._mutual.append((station.name, effect.broker, here, there))

    def mutual(self) -> list[tuple[str, str]]:
        """Pairs of brokers of which each has forgotten the other.

        Not if somebody had gone from the one part to the other between; nor parts of a part: they know of less.
        """
        return [
            (one, other)
            for one, other, here, there in self._mutual
            if not here.part & there.part and here.known == there.known
        ]

    def _pairs(self) -> list[_Pair]:
        parts = {name: {name} for name in self._world.stations}
        for wire in self._world.wires:
            if wire.up and parts[wire.one.name] is not parts[wire.other.name]:
                joined = parts[wire.one.name] | parts[wire.other.name]
                for name in joined:
                    parts[name] = joined
        different = {id(part): part for part in parts.values()}.values()
        return [frozenset(pair) for part in different for pair in combinations(sorted(part), 2)]
