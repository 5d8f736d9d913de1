"""`FaultRecord`: what happened in a run with faults, as the oracle sees it.

Everything has a *moment*: its number in the order in which things happened. Of the inside of brokers there
is only what must hold at a moment: what was on disk when something was confirmed or trimmed, how much was in
memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.lineage import JournalGap, Lineage, fork_point, incarnation_of
from palio.protocol.envelope import Envelope
from palio.routing.documents.beginning import RetroactivePosition

NEVER = 1 << 60

Name = tuple[str, int]


class StoryLine(NamedTuple):
    """A line of the story: `about` are subscriptions and numbers of notifications; empty is for all."""

    moment: int
    time: float
    who: str
    what: str
    about: tuple[Any, ...]


class WantedPublication(msgspec.Struct, eq=False):
    publisher: str
    broker: str
    notification: Notification
    identified: bool
    asked: int = NEVER
    confirmed: int = NEVER
    name: Name | None = None


class SubscriptionWish(msgspec.Struct, eq=False):
    """A filter that a client asked for: from when on, and from when on it was in force."""

    asked: int
    filter: Filter
    known: int = NEVER


class Taking(msgspec.Struct, eq=False):
    """A durable subscription, from its client's side."""

    name: str
    since: str | float
    wishes: list[SubscriptionWish] = []
    ready: int = NEVER
    readies: list[int] = []  # whenever it was told so
    gaps: list[JournalGap] = []  # of which it was told
    ready_trimmed: dict[str, int] = {}  # how far each journal was trimmed when it was ready
    ending: int = NEVER  # when the client began to end it
    ended: int = NEVER  # when it was told that it has ended
    # From when it was told that it is paused until it asked to go on, or to end.
    halts: list[tuple[int, int]] = []
    rewound: bool = False  # whether it ever asked for everything once more

    def wishes_from(self, moment: int) -> list[SubscriptionWish]:
        """The last one that was known to be in force before a moment, and all later ones."""
        known = [place for place, wish in enumerate(self.wishes) if wish.known < moment]
        return self.wishes[max(known, default=0) :]


class BegunDocuments(msgspec.Struct, eq=False):
    """The current documents with which a subscription began; `done` if it came to their end."""

    moment: int
    beginning: RetroactivePosition
    filter: Filter
    documents: list[Envelope] = []
    done: bool = False


class OlderDisk(NamedTuple):
    """A disk that came back older: when, whose, and what of it is not there any more.

    `lineage` is that of the journal that is gone. `ahead` are durable subscriptions elsewhere that had read, on
    their disks, what the journal does not have now; with the lineage of it that they know. `read` is how far
    each subscription, by its identity, had read the journal on the disk of its home, and in which lineage.
    """

    moment: int
    broker: str
    lineage: Lineage
    ahead: dict[str, Lineage]
    read: dict[str, tuple[int, Lineage]]

    def is_known_at(self, name: str, sequence: int) -> bool:
        """Whether a subscription was ahead in the journal in which something was lost.

        Another incarnation that it knows under that sequence says nothing of this one: it had gone on from
        where both fork.
        """
        known = incarnation_of(sequence, self.ahead.get(name, ()))
        return known != "" and known == incarnation_of(sequence, self.lineage)

    def had_read(self, identity: str, upto: int, journal: Lineage) -> bool:
        """Whether a subscription had read, when this disk came, all up to there of a journal as it is now."""
        sequence, lineage = self.read.get(identity, (0, ()))
        return bool(lineage) and fork_point(sequence, lineage, journal) >= upto


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


class FaultRecord:
    """Everything that was asked, answered and delivered."""

    def __init__(self) -> None:
        self.moment = 0
        self.publications: dict[int, WantedPublication] = {}
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
        # Disks that came back older
        self.older: list[OlderDisk] = []
        self.gone: dict[Name, list[Envelope]] = {}  # what was on them, also if it is there again
        self.lost: dict[
            int, OlderDisk
        ] = {}  # by number: what is not there any more, and with which disk it went
        # By number: what was lost, and came back with a newer disk, and when it last did.
        self.found_again: dict[int, int] = {}
        self.set_back: dict[str, int] = {}  # subscriptions that were on such a disk, and when it came back
        self.copied: set[str] = set()  # those that had gone on from there before, and may be there once more
        # Origin, and subscription: whom such a journal did not know any more when it trimmed.
        self.unknown_readers: set[tuple[str, str]] = set()
        # By name and number: how often the disk had come back when that was written.
        self.branches: dict[tuple[Name, int], int] = {}
        # What was damaged: events, by name; deliveries of subscriptions: their numbers, and those of what they
        # were.
        self.flipped: set[Name] = set()
        self.flipped_deliveries: dict[str, set[tuple[int, int]]] = {}
        # Subscriptions that were begun anew while their home was away, or had been at one that is forgotten.
        self.given_up: set[str] = set()
        # Who was forgotten; by whom it was too early, and after how long; and which two forgot each other.
        self.forgotten: set[str] = set()
        self.forgotten_early: list[tuple[str, str, float]] = []
        self.forgotten_by_both: list[tuple[str, str]] = []
        # Documents: with which ones subscriptions began; and at the end, by broker, the current version of each
        # (of those that were published there, and of all that are known), and what is kept.
        self.beginnings: dict[str, list[BegunDocuments]] = {}
        self.published_documents: dict[str, dict[str, Envelope]] = {}
        self.current_documents: dict[str, dict[str, Envelope]] = {}
        self.keeping: dict[str, Filter] = {}
        self.takings_of_keepers: dict[str, Taking] = {}  # by broker
        # Brokers that have left, and when; and who had not read all of their journals then, up to where.
        self.left: dict[str, int] = {}
        self.forgotten_at: dict[str, tuple[float, int]] = {}  # when the first of all did, the last time
        self.left_unread: list[tuple[str, str, int, int]] = []
        self.error = ""
        self.unquiet = ""
        self.waiting: list[str] = []  # who still waits for an answer at the end, and for which
        self.homes: dict[str, list[str]] = {}  # at the end: where each subscription is
        self.on_disk: dict[str, list[str]] = {}
        self.dead: dict[str, set[Name]] = {}  # at the end: the dead letters of each subscription
        self.lines: list[StoryLine] = []

    def lags(self) -> list[float]:
        """How long after it was published each event came to each subscription for the first time."""
        first: dict[tuple[str, int], float] = {}
        for handing in self.handings:
            first.setdefault((handing.name, number_of(handing.envelope)), handing.time - handing.envelope.time)
        return list(first.values())

    def tick(self) -> int:
        self.moment += 1
        return self.moment

    def written_at(self, broker: str) -> dict[Name, Envelope]:
        """What the disk of a broker has, or had before it was trimmed."""
        return {name: envelope for name, envelope in self.written.items() if name[0] == broker}

    def came_back(self, older: OlderDisk, written: dict[Name, Envelope]) -> None:
        """A disk came back older, with this on it."""
        self.older.append(older)
        for number, former in self.lost.items():
            if former.broker == older.broker:  # who is not ahead of what there is now need not notice
                ahead = {name: known for name, known in former.ahead.items() if name in older.ahead}
                self.lost[number] = former._replace(ahead=ahead)
        for name, envelope in self.written_at(older.broker).items():
            del self.written[name]
            self.gone.setdefault(name, []).append(envelope)
            self.lost[number_of(envelope)] = older
        self.written |= written
        for envelope in written.values():
            if self.lost.pop(number_of(envelope)).moment < older.moment:
                self.found_again[number_of(envelope)] = older.moment

    def note(self, time: float, who: str, what: str, *about: Any) -> None:
        self.lines.append(StoryLine(self.moment, time, who, what, about))


def number_of(envelope: Envelope) -> int:
    """The number by which a notification is known in a run."""
    number = envelope.notification["n"]
    assert isinstance(number, int)
    return number
