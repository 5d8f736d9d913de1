"""Reach: what runs with faults have come across, so that what is rare can be seen and made common.

Two things are counted. A *meeting* is something that happens (a crash, a cut, a client that leaves) while the
broker or the subscription that it happens to is in some state. A *transition* is how a subscription gets from
one phase to another at a broker. A phase is finer than the state of `home.subscription`: it tells
also what is being looked for, asked for, fetched, changed or written.

Nothing here changes a run: brokers are looked at between two messages, and only where somebody asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from palio.routing.durable.effects import Append, Remove, Spool
from palio.sim.faults import steps
from palio.sim.faults.record import NEVER
from palio.sim.faults.station import DISK_EACH, FaultyStation, Wire

if TYPE_CHECKING:
    from palio.sim.faults.world import World

# What a subscription is at a broker; "absent" and "down" are the beginning and the end of transitions only.
PHASES = (
    "looked for", "asked for", "wanted", "storing", "behind", "asking", "catching up", "changing", "live",
    "leaving", "handing over", "removing",
)  # fmt: skip
# What else a broker may be in the middle of.
CIRCUMSTANCES = ("journaling", "spooling", "full disk", "slow disk", "busy", "link cut", "link lagging")
STATES = PHASES + CIRCUMSTANCES
_KINDS: dict[type, str] = {
    steps.PauseBroker: "pause", steps.Slow: "slow", steps.Cut: "cut", steps.Lag: "lag",
    steps.Full: "full disk", steps.SlowDisk: "slow disk", steps.Jump: "jump",
    steps.Flip: "flip", steps.Twice: "twice", steps.Refilter: "change", steps.End: "end",
}  # fmt: skip
# What happens. A broker that joins has no state before.
HAPPENINGS = ("crash", *[kind for kind in _KINDS.values() if kind != "flip"], *steps.MANNERS)

# How a subscription gets from one phase to another at a broker; each of these has been seen.
TRANSITIONS: dict[str, tuple[str, ...]] = {
    "absent": ("looked for", "storing"),
    "asked for": ("absent", "down", "looked for", "storing", "wanted"),
    "asking": ("behind", "catching up", "changing", "down", "leaving", "live", "removing"),
    "behind": ("asking", "catching up", "changing", "down", "leaving", "live", "removing"),
    "catching up": ("behind", "changing", "down", "leaving", "live", "removing"),
    "changing": ("behind", "down", "leaving", "live", "removing"),
    "down": ("absent", "behind", "handing over"),
    "handing over": ("down", "removing", "wanted"),
    "leaving": ("down", "handing over"),
    "live": ("behind", "changing", "down", "leaving", "removing"),
    "looked for": ("absent", "asked for", "down", "storing", "wanted"),
    "removing": ("absent", "down", "looked for"),
    "storing": ("behind", "down"),
    "wanted": ("absent", "down", "looked for", "storing"),
}


class Reached(msgspec.Struct, frozen=True):
    """How often something was reached, and in how many runs."""

    kind: str  # meeting or transition
    what: str
    state: str
    times: int
    runs: int


class FaultReach:
    """What one run, or several, have come across."""

    def __init__(self) -> None:
        self.meetings: Counter[tuple[str, str]] = Counter()
        self.transitions: Counter[tuple[str, str]] = Counter()
        self._phases: dict[str, dict[str, str]] = {}  # by broker and subscription

    # What happens in a run

    def look(self, station: FaultyStation) -> None:
        """A broker has handled a message."""
        before, now = self._phases.get(station.name, {}), phases(station)
        if before != now:
            for name in {**before, **now}:
                one, other = before.get(name, "absent"), now.get(name, "absent")
                if one != other:
                    self.transitions[one, other] += 1
            self._phases[station.name] = now

    def crash(self, station: FaultyStation) -> None:
        """A broker is about to crash."""
        self._meet("crash", states(station))
        before = self._phases.get(station.name, {})
        self._phases[station.name] = dict.fromkeys(before, "down")
        for phase in before.values():
            self.transitions[phase, "down"] += 1

    def step(self, world: World, step: steps.Step) -> None:
        """Something is about to happen."""
        kind = _KINDS.get(type(step))
        match step:
            case steps.Leave(name=name, manner=manner):
                self._meet(manner, _around(world, name))
            case steps.Twice(name=name) | steps.Refilter(name=name) | steps.End(name=name) if kind is not None:
                self._meet(kind, _around(world, name))
            case steps.Cut(links=links) if kind is not None:
                self._meet(kind, _at_ends([world.wires[link] for link in links]))
            case steps.Lag(link=link) if kind is not None:
                self._meet(kind, _at_ends([world.wires[link]]))
            case steps.Join():
                pass
            case _ if kind is not None:
                self._meet(kind, states(world.stations[step.broker]))  # type: ignore[union-attr]

    def _meet(self, what: str, found: Iterable[str]) -> None:
        for state in set(found):
            self.meetings[what, state] += 1


def phases(station: FaultyStation) -> dict[str, str]:
    """The phase of each subscription that a broker knows, or looks for."""
    service = station.router.durable if station.router is not None else None
    if service is None:
        return {}
    found = {effect.name: "removing" for effect in station.disk.queue if isinstance(effect, Remove)}
    return found | service.phases()


def circumstances(station: FaultyStation) -> set[str]:
    """What else a broker is in the middle of."""
    found = set()
    for effect in station.disk.queue:
        if isinstance(effect, Append):
            found.add("journaling")
        elif isinstance(effect, Spool):
            found.add("spooling")
    if station.disk.full:
        found.add("full disk")
    if station.disk_each != DISK_EACH:
        found.add("slow disk")
    if station.each or station.inbox:
        found.add("busy")
    for wire in station.wires.values():
        if not wire.up:
            found.add("link cut")
        elif wire.more:
            found.add("link lagging")
    return found


def states(station: FaultyStation) -> set[str]:
    """All that a broker is in the middle of."""
    return {*phases(station).values(), *circumstances(station)} if station.router is not None else set()


def _at_ends(wires: Iterable[Wire]) -> set[str]:
    return {state for wire in wires for end in (wire.one, wire.other) for state in states(end)}


def _around(world: World, name: str) -> set[str]:
    """The phases of one subscription, wherever it is, and what those brokers are in the middle of.

    Nothing, where its client is not there yet or has begun to end it: it does nothing else then.
    """
    found: set[str] = set()
    taking = world.record.takings.get(name)
    if taking is None or taking.ending != NEVER:
        return found
    for station in world.stations.values():
        known = phases(station)
        if name in known:
            found |= {known[name], *circumstances(station)}
    return found


class Reckoning:
    """The reach of many runs."""

    def __init__(self) -> None:
        self._times: Counter[tuple[str, str, str]] = Counter()
        self._runs: Counter[tuple[str, str, str]] = Counter()

    def add(self, reached: Iterable[tuple[str, str, str, int]]) -> None:
        """What one run has reached, as `counts` says it."""
        for kind, what, state, times in reached:
            self._times[kind, what, state] += times
            self._runs[kind, what, state] += 1

    def rows(self) -> list[Reached]:
        """Everything that can be reached, also what was not, the rarest first."""
        known = {("meeting", what, state) for what in HAPPENINGS for state in STATES}
        known |= {("transition", one, other) for one, others in TRANSITIONS.items() for other in others}
        rows = [Reached(*key, self._times[key], self._runs[key]) for key in known | set(self._times)]
        return sorted(rows, key=lambda row: (row.runs, row.times, row.kind, row.what, row.state))


def counts(reach: FaultReach) -> tuple[tuple[str, str, str, int], ...]:
    """What a run has reached, as plain data."""
    meetings = [("meeting", what, state, times) for (what, state), times in reach.meetings.items()]
    transitions = [("transition", one, other, times) for (one, other), times in reach.transitions.items()]
    return (*meetings, *transitions)
