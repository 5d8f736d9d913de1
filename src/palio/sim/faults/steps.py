"""Steps: what goes wrong, and what clients do, in a run with faults. `str` of a step is a sentence.

Everything that a step needs is in it, so that leaving others out does not change it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class _Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=str.lower):
    number: int = 0
    time: float = 0.0


# What goes wrong.


class Crash(_Step, frozen=True, kw_only=True):
    """A broker ends after so many more effects, and begins anew later. A share of its writes survives."""

    broker: str
    effects: int
    share: float
    down: float

    def __str__(self) -> str:
        return f"{self.broker} will crash after {self.effects} more effects, for {self.down:.1f} s."


class PauseBroker(_Step, frozen=True, kw_only=True, tag="pause"):
    """A broker does nothing for a while."""

    broker: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.broker} does nothing for {self.seconds:.1f} s."


class Slow(_Step, frozen=True, kw_only=True):
    """A broker needs so long for each message for a while."""

    broker: str
    seconds: float
    each: float

    def __str__(self) -> str:
        return f"{self.broker} needs {self.each:.2f} s for each message, for {self.seconds:.1f} s."


class Cut(_Step, frozen=True, kw_only=True):
    """Links are cut, and what is on them is lost. Their ends notice that some time later, each at its own."""

    links: tuple[int, ...]
    seconds: float
    noticed: tuple[float, float]

    def __str__(self) -> str:
        return f"The links {', '.join(map(str, self.links))} are cut for {self.seconds:.1f} s."


class Lag(_Step, frozen=True, kw_only=True):
    """A link is slower for a while."""

    link: int
    seconds: float
    more: float

    def __str__(self) -> str:
        return f"The link {self.link} takes {self.more:.2f} s more for {self.seconds:.1f} s."


class Full(_Step, frozen=True, kw_only=True):
    """A disk is full for a while."""

    broker: str
    seconds: float

    def __str__(self) -> str:
        return f"The disk of {self.broker} is full for {self.seconds:.1f} s."


class SlowDisk(_Step, frozen=True, kw_only=True):
    """A disk needs so long for each write for a while."""

    broker: str
    seconds: float
    each: float

    def __str__(self) -> str:
        return f"The disk of {self.broker} needs {self.each:.2f} s for each write, for {self.seconds:.1f} s."


class Jump(_Step, frozen=True, kw_only=True):
    """The clock of a broker is set: forward, or a little back."""

    broker: str
    by: float

    def __str__(self) -> str:
        return f"The clock of {self.broker} jumps by {self.by:+.1f} s."


class Join(_Step, frozen=True, kw_only=True):
    """A broker that was never there before joins the network."""

    broker: str

    def __str__(self) -> str:
        return f"{self.broker} joins the network."


# What clients do.


class Say(_Step, frozen=True, kw_only=True):
    """A publisher publishes notifications, together."""

    publisher: str
    contents: tuple[tuple[int, int, int], ...]  # for each: its number, kind and value
    identified: bool = True
    priority: int = 4
    lifetime: float | None = None

    def __str__(self) -> str:
        return f"{self.publisher} wants to publish {', '.join(f'n={one[0]}' for one in self.contents)}."


class Shift(_Step, frozen=True, kw_only=True):
    """A publisher goes on at another broker; what is not confirmed yet it sees to at the former one."""

    publisher: str
    broker: str

    def __str__(self) -> str:
        return f"{self.publisher} goes on at {self.broker}."


class Take(_Step, frozen=True, kw_only=True):
    """A client takes a durable subscription for the first time."""

    name: str
    broker: str
    filter: str
    since: str | float = "now"

    def __str__(self) -> str:
        return f"{self.name} wants `{self.filter}` at {self.broker}, since {self.since}."


class Leave(_Step, frozen=True, kw_only=True):
    """A client goes away, and comes back: to the same broker, or to another. `manner` is how it goes."""

    name: str
    manner: str  # closes, detaches or vanishes
    seconds: float
    broker: str

    def __str__(self) -> str:
        return f"{self.name} {self.manner}; it comes back to {self.broker} in {self.seconds:.1f} s."


class Twice(_Step, frozen=True, kw_only=True):
    """A client connects twice at the same time, and goes on with the second one."""

    name: str
    brokers: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.name} connects to {self.brokers[0]} and to {self.brokers[1]}."


class Refilter(_Step, frozen=True, kw_only=True):
    """A client changes its filter."""

    name: str
    filter: str

    def __str__(self) -> str:
        return f"{self.name} wants `{self.filter}` from now on."


class Halt(_Step, frozen=True, kw_only=True):
    """A client pauses its subscription for a while."""

    name: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} pauses its subscription for {self.seconds:.1f} s."


class Rewind(_Step, frozen=True, kw_only=True):
    """A client moves its subscription back to the beginning of everything."""

    name: str

    def __str__(self) -> str:
        return f"{self.name} wants everything once more."


class End(_Step, frozen=True, kw_only=True):
    """A client ends its subscription."""

    name: str

    def __str__(self) -> str:
        return f"{self.name} ends its subscription."


Fault: TypeAlias = Crash | PauseBroker | Slow | Cut | Lag | Full | SlowDisk | Jump | Join
OfTaker: TypeAlias = Take | Leave | Twice | Refilter | Halt | Rewind | End
Doing: TypeAlias = Say | Shift | OfTaker
Step: TypeAlias = Fault | Doing
