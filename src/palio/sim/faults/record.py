"""`Record`: what happened in a run with faults, as the oracle sees it.

Everything has a *moment*: its number in the order in which things happened. Of the inside of brokers there
is only what must hold at a moment: what was on disk when something was confirmed or trimmed, how much was in
memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope

NEVER = 1 << 60

Name = tuple[str, int]


class Line(NamedTuple):
    """A line of the story: `about` are subscriptions and numbers of notifications; empty is for all."""

    moment: int
    time: float
    who: str
    what: str
    about: tuple[Any, ...]


class Publication:
    """A notification that somebody wants to be published."""

    __slots__ = ("asked", "broker", "confirmed", "identified", "name", "notification", "publisher")

    def __init__(self, publisher: str, broker: str, notification: Notification, identified: bool) -> None:
        self.publisher = publisher
        self.broker = broker
        self.notification = notification
        self.identified = identified
        self.asked = NEVER
        self.confirmed = NEVER
        self.name: Name | None = None


class Wish:
    """A filter that a client asked for: from when on, and from when on it was in force."""

    __slots__ = ("asked", "filter", "known")

    def __init__(self, asked: int, filter: Filter) -> None:
        self.asked = asked
        self.filter = filter
        self.known = NEVER


class Taking:
    """A durable subscription, from its client's side."""

    __slots__ = ("ended", "ending", "halts", "name", "ready", "ready_trimmed", "rewound", "since", "wishes")

    def __init__(self, name: str, since: str | float) -> None:
        self.name = name
        self.since = since
        self.wishes: list[Wish] = []
        self.ready = NEVER
        self.ready_trimmed: dict[str, int] = {}  # how far each journal was trimmed when it was ready
        self.ending = NEVER  # when the client began to end it
        self.ended = NEVER  # when it was told that it has ended
        # From when it was told that it is paused until it asked to go on, or to end.
        self.halts: list[tuple[int, int]] = []
        self.rewound = False  # whether it ever asked for everything once more


class Handing(NamedTuple):
    """A delivery. It is not `seen` if the client had vanished."""

    moment: int
    time: float
    clock: float  # of the broker
    broker: str
    name: str
    delivery: int
    attempt: int
    envelope: Envelope
    seen: bool
    life: str  # the identity of the subscription: another one of that name, created anew, has another


class Record:
    """Everything that was asked, answered and delivered."""

    def __init__(self) -> None:
        self.moment = 0
        self.publications: dict[int, Publication] = {}
        self.takings: dict[str, Taking] = {}
        self.handings: list[Handing] = []
        self.done: dict[tuple[str, int], int] = {}  # (subscription, delivery): when it was answered
        self.written: dict[Name, Envelope] = {}  # what was on disk, also if it was trimmed later
        self.confirmed_unwritten: list[tuple[str, int, int]] = []  # origin, sequence, number
        self.given_twice: list[tuple[str, int, int, int]] = []  # origin, sequence, one number, the other
        self.trimmed_early: list[tuple[str, int, str, int]] = []  # origin, up to, subscription, its position
        self.misdated: list[tuple[str, str, int]] = []  # broker, and the name of what left it in another epoch
        self.crowded: list[tuple[str, str, int, int]] = []  # broker, what, how many, how many are allowed
        self.ghosts: set[tuple[str, str, str]] = set()  # broker, subscription, taker that is not connected
        self.given_up: set[str] = set()  # subscriptions that were begun anew while their home was away
        self.error = ""
        self.unquiet = ""
        self.waiting: list[str] = []  # who still waits for an answer at the end, and for which
        self.homes: dict[str, list[str]] = {}  # at the end: where each subscription is
        self.on_disk: dict[str, list[str]] = {}
        self.lines: list[Line] = []

    def tick(self) -> int:
        self.moment += 1
        return self.moment

    def note(self, time: float, who: str, what: str, *about: Any) -> None:
        self.lines.append(Line(self.moment, time, who, what, about))


def number_of(envelope: Envelope) -> int:
    """The number by which a notification is known in a run."""
    number = envelope.notification["n"]
    assert isinstance(number, int)
    return number
