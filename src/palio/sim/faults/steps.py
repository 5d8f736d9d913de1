"""Steps: what goes wrong, and what clients do, in a run with faults. `str` of a step is its sentence.

Everything that a step needs is in it, so that leaving others out does not change it.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import msgspec


class _Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=str.lower):
    sentence: ClassVar[str]
    number: int = 0
    time: float = 0.0

    def __str__(self) -> str:
        return self.sentence.format(**msgspec.structs.asdict(self))


# What goes wrong.


class Crash(_Step, frozen=True, kw_only=True):
    """A broker ends after so many more effects, and begins anew later. A share of its writes survives."""

    sentence = "{broker} will crash after {effects} more effects, for {down:.1f} s."
    broker: str
    effects: int
    share: float
    down: float


class PauseBroker(_Step, frozen=True, kw_only=True, tag="pause"):
    sentence = "{broker} does nothing for {seconds:.1f} s."
    broker: str
    seconds: float


class Slow(_Step, frozen=True, kw_only=True):
    sentence = "{broker} needs {each:.2f} s for each message, for {seconds:.1f} s."
    broker: str
    seconds: float
    each: float


class Cut(_Step, frozen=True, kw_only=True):
    """Links are cut, and what is on them is lost. Their ends notice that some time later, each at its own."""

    links: tuple[int, ...]
    seconds: float
    noticed: tuple[float, float]

    def __str__(self) -> str:
        return f"The links {', '.join(map(str, self.links))} are cut for {self.seconds:.1f} s."


class Lag(_Step, frozen=True, kw_only=True):
    sentence = "The link {link} takes {more:.2f} s more for {seconds:.1f} s."
    link: int
    seconds: float
    more: float


class Full(_Step, frozen=True, kw_only=True):
    sentence = "The disk of {broker} is full for {seconds:.1f} s."
    broker: str
    seconds: float


class SlowDisk(_Step, frozen=True, kw_only=True):
    sentence = "The disk of {broker} needs {each:.2f} s for each write, for {seconds:.1f} s."
    broker: str
    seconds: float
    each: float


class Jump(_Step, frozen=True, kw_only=True):
    """The clock of a broker is set: forward, or a little back."""

    sentence = "The clock of {broker} jumps by {by:+.1f} s."
    broker: str
    by: float


class Older(_Step, frozen=True, kw_only=True):
    """A broker crashes, and its disk comes back as it was so many seconds before; or with nothing on it."""

    broker: str
    back: float | None
    down: float

    def __str__(self) -> str:
        how = "empty" if self.back is None else f"as it was {self.back:.1f} s before"
        return f"{self.broker} crashes for {self.down:.1f} s, and its disk comes back {how}."


class Flip(_Step, frozen=True, kw_only=True):
    """Bits flip on the disk of a broker at rest: in a share of its events, and of its deliveries that wait."""

    sentence = "Bits flip on the disk of {broker}, in a share of {share:.2f} of what is there."
    broker: str
    share: float


class Join(_Step, frozen=True, kw_only=True):
    """A broker that was never there before joins the network."""

    sentence = "{broker} joins the network."
    broker: str


class Depart(_Step, frozen=True, kw_only=True):
    """An operator lets a broker leave the network for good, in order."""

    sentence = "{broker} shall leave the network."
    broker: str


# What clients do.


class Say(_Step, frozen=True, kw_only=True):
    """A publisher publishes notifications, together. With a key they are versions of a document; or its end."""

    publisher: str
    contents: tuple[tuple[int, int, int], ...]  # for each: its number, kind and value
    identified: bool = True
    priority: int = 4
    lifetime: float | None = None
    key: str = ""
    withdraws: bool = False

    @property
    def numbers(self) -> list[int]:
        return [one[0] for one in self.contents]

    @property
    def named(self) -> str:
        return ", ".join(f"n={number}" for number in self.numbers)

    def __str__(self) -> str:
        if self.withdraws:
            return f"{self.publisher} wants to withdraw the document {self.key} ({self.named})."
        document = f" as the document {self.key}" if self.key else ""
        return f"{self.publisher} wants to publish {self.named}{document}."


class Shift(_Step, frozen=True, kw_only=True):
    """A publisher goes on at another broker; what is not confirmed yet it sees to at the former one."""

    sentence = "{publisher} goes on at {broker}."
    publisher: str
    broker: str


class Take(_Step, frozen=True, kw_only=True):
    """A client takes a durable subscription for the first time."""

    sentence = "{name} wants `{filter}` at {broker}, since {since}."
    name: str
    broker: str
    filter: str
    since: str | float = "now"
    retroactive: bool = False

    def __str__(self) -> str:
        first = ", beginning with the current documents" if self.retroactive else ""
        return f"{super().__str__()[:-1]}{first}."


class Leave(_Step, frozen=True, kw_only=True):
    """A client goes away, and comes back: to the same broker, or to another. `manner` is how it goes."""

    sentence = "{name} {manner}; it comes back to {broker} in {seconds:.1f} s."
    name: str
    manner: str
    seconds: float
    broker: str


class Twice(_Step, frozen=True, kw_only=True):
    """A client connects twice at the same time, and goes on with the second one."""

    sentence = "{name} connects to {brokers[0]} and to {brokers[1]}."
    name: str
    brokers: tuple[str, str]


class Refilter(_Step, frozen=True, kw_only=True):
    sentence = "{name} wants `{filter}` from now on."
    name: str
    filter: str


class Halt(_Step, frozen=True, kw_only=True):
    sentence = "{name} pauses its subscription for {seconds:.1f} s."
    name: str
    seconds: float


class Rewind(_Step, frozen=True, kw_only=True):
    """A client moves its subscription back to the beginning of everything."""

    sentence = "{name} wants everything once more."
    name: str


class End(_Step, frozen=True, kw_only=True):
    sentence = "{name} ends its subscription."
    name: str


MANNERS = ("closes", "detaches", "vanishes", "moves")  # in which a client leaves

Fault: TypeAlias = (
    Crash | PauseBroker | Slow | Cut | Lag | Full | SlowDisk | Jump | Older | Flip | Join | Depart
)
OfTaker: TypeAlias = Take | Leave | Twice | Refilter | Halt | Rewind | End
Doing: TypeAlias = Say | Shift | OfTaker
Step: TypeAlias = Fault | Doing
