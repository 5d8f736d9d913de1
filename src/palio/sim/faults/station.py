"""Stations and wires: a broker with all that is around it, and a link between two of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from palio.protocol.envelope import Envelope
from palio.routing.router import Router
from palio.sim.faults.disk import Disk
from palio.sim.faults.record import Name
from palio.sim.topologies import TopologyLink

DISK_EACH = 0.004  # seconds that a write takes
REDIAL = 0.4  # seconds until two brokers try to connect again, or an operator asks again


class CrashPlan(msgspec.Struct, frozen=True, array_like=True):
    """When to crash: before or after the effect with this number. A `share` of the writes survives."""

    broker: str
    at: int
    after: bool
    share: float
    down: float = 0.3


class DiskCopy(NamedTuple):
    """A disk as it was at a moment, and all that had been written to its journal, also what was trimmed."""

    disk: Disk
    written: dict[Name, Envelope]


@dataclass(eq=False, repr=False, slots=True)
class FaultyStation:
    """A broker, its disk and its clock. `life` is another one after each crash and each beginning."""

    name: str
    disk: Disk
    is_relay: bool = False  # then nothing is ever written to its disk
    router: Router | None = None
    incarnation: int = 0
    life: int = 0
    wires: dict[str, Wire] = field(default_factory=dict)
    timers: dict[str, tuple[int, float]] = field(default_factory=dict)  # number, when by the broker's clock
    inbox: deque[tuple[Any, str]] = field(default_factory=deque)
    handling: bool = False
    free_at: float = 0.0
    each: float = 0.0  # seconds for a message
    writing: bool = False
    group: int = 1  # how many writes reach the disk together
    disk_each: float = DISK_EACH
    offset: float = 0.0
    ahead: float = 0.0  # by how much its clock was set forward, in all
    last: float = 0.0
    epochs: list[int] = field(default_factory=list)  # while it handles something; of what may leave still
    has_told: bool = False  # that it is in another epoch, since something left in one of these
    keeping: dict[int, Callable[[bool], None]] = field(default_factory=dict)  # by token: who waits for records
    carried: int = 0  # effects
    plans: deque[CrashPlan] = field(default_factory=deque)
    departs: bool = False  # whether it shall leave
    is_gone: bool = False  # whether it has
    hosted: set[str] = field(default_factory=set)  # subscriptions that have ever had their home here
    ends: list[int] = field(default_factory=list)  # how many effects had been carried out after each message

    def clock(self, now: float) -> float:
        """The broker's time: it may be wrong, but never goes back."""
        last = self.last = max(self.last, now + self.offset)
        return last

    def forget(self) -> None:
        """What a crash takes."""
        self.timers.clear()
        self.keeping.clear()
        self.inbox.clear()
        for wire in self.wires.values():
            wire.lines[self.name].coming.clear()
        self.handling = self.writing = False


@dataclass(eq=False, repr=False, slots=True)
class FaultyLine:
    """One direction of a link. Messages of an earlier epoch are lost.

    A broker that is behind may be told of connections that are gone, one after the other. What it sends goes on
    the one that it was told of last, as a real broker writes to the connection that it has.
    """

    epoch: int = 0
    used: int = -1  # the epoch of the connection that its broker uses
    coming: deque[int] = field(default_factory=deque)  # those of which it will be told
    arrival: float = 0.0

    def begin(self) -> None:
        """Its broker is told of the next connection, and uses it."""
        self.used = self.coming.popleft()


class Wire:
    """A link. `told` is whether the broker at an end has been told that it is up."""

    def __init__(self, number: int, one: FaultyStation, other: FaultyStation, link: TopologyLink) -> None:
        self.number = number
        self.one = one
        self.other = other
        self.link = link
        self.latency = link.latency
        self.more = 0.0
        self.cut_until = 0.0
        self.up = False
        self.lines = {one.name: FaultyLine(), other.name: FaultyLine()}  # by where they begin
        self.told = {one.name: False, other.name: False}

    def opposite(self, name: str) -> FaultyStation:
        return self.other if name == self.one.name else self.one
