"""Between neighbouring brokers, about durable delivery: membership, marks (watermarks), progress, polls."""

from __future__ import annotations

from typing import Literal

import msgspec

from palio.protocol.base import Number, WireMessage
from palio.protocol.durable.lineage import Lineage


class TopologyChanged(WireMessage, frozen=True):
    """Membership: a broker's links have changed, or it began anew: the highest version of each counts; flooded.

    A broker that is `forgotten` up to a version is one again only with a higher one. `relays` count their
    links, too, but are no members: nobody waits for them. Of `strangers` the sender has heard from relays
    alone; what relays tell is all of that kind.
    """

    versions: tuple[tuple[str, Number], ...]
    forgotten: tuple[tuple[str, Number], ...] = ()
    relays: tuple[tuple[str, Number], ...] = ()
    strangers: tuple[tuple[str, Number], ...] = ()


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """A watermark: all of an origin up to a sequence has gone before it, if the epoch is unbroken."""

    origin: str
    sequence: Number
    entry: str
    epoch: Number


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far readers of an origin are: nothing behind these positions needs to be kept for them.

    All of them are places in a journal that have this incarnation (see `lineage`).
    """

    origin: str
    positions: tuple[tuple[str, Number], ...]  # by the identity of the subscription
    incarnation: str = ""


class Marks(WireMessage, frozen=True):
    """Marks and progress, once a tick in one message: how far origins are, and how far their readers.

    Marks are for the receiver and everyone behind it; each progress goes on to its origin.
    """

    marks: tuple[Mark, ...]
    progress: tuple[Progress, ...] = ()


class Ask(WireMessage, frozen=True):
    """Poll every broker in reach: how far is your journal, and are you the home of `about`?

    Each of `readers` (identity and name) is registered at the journal: from then on nothing that it has not
    read is trimmed. Who is named in `introduce` shall say which readers have their home there, and anybody who
    knows it which of the readers that are `doubted` have ended. `places` are the furthest that the readers have
    come in journals: origin, sequence, and the incarnation that numbered it. Whose journal does not have that
    came back older. `generations` are those of the readers, in their order; a broker of an earlier version says
    none. Whoever is their home in a later generation says so.

    If the asker is `leaving`, everybody says which readers it believes to have their home there, and answers
    when it has on disk that it has forgotten the asker, if it has.

    `strangers` are brokers of which only relays have told the asker. Whoever has heard of one of them says so,
    when it has on disk that it knows the asker.
    """

    asker: str
    number: Number
    about: str | None = None
    readers: tuple[tuple[str, str], ...] = ()
    distance: Number = 0  # how many hops the sender is from the asker
    introduce: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    epoch: Number = 0  # that the asker is in
    places: tuple[tuple[str, Number, str], ...] = ()
    generations: tuple[Number, ...] = ()
    leaving: bool = False
    strangers: tuple[str, ...] = ()


class Head(msgspec.Struct, frozen=True, array_like=True):
    """How far a journal is, and the sequence up to which it has been trimmed."""

    origin: str
    head: Number
    trimmed: Number
    distance: Number = 0  # how many hops the sender is from the origin
    archived: bool = False  # what was trimmed can still be read
    lineage: Lineage = ()  # of the journal; not known of a broker of an earlier version

    @property
    def begins(self) -> int:
        """The sequence after which something may be read."""
        return 0 if self.archived else self.trimmed


class Introduction(msgspec.Struct, frozen=True, array_like=True):
    """The durable subscriptions that a broker has, or has handed over: identities, and where they are."""

    broker: str
    readers: tuple[tuple[str, str], ...]


class LaterHome(msgspec.Struct, frozen=True, array_like=True):
    """A home of a durable subscription in a later generation than that of the one that asks.

    It is on disk *here*, it is *coming*, or it was here up to that generation and is *gone*.
    """

    reader: str
    home: str
    generation: Number
    state: Literal["here", "coming", "gone"]


class Told(WireMessage, frozen=True):
    """Answers `Ask`, for the sender and everyone behind it; `epochs` are all that they are in.

    `later` names those of the asker's readers that have gone on to other homes. If the asker is leaving,
    `believed` are brokers, and the readers that each of them believes to be there; those of an earlier version
    are not among them. `read` is how far those of the doubted readers have read the asker's journal that have
    their home at one of these brokers, and in which incarnation. `met` are the strangers of whom one of these
    brokers has heard that has the asker on disk, itself among them.
    """

    asker: str
    number: Number
    epochs: tuple[Number, ...]
    heads: tuple[Head, ...] = ()
    homes: tuple[str, ...] = ()
    introductions: tuple[Introduction, ...] = ()
    ended: tuple[str, ...] = ()
    later: tuple[LaterHome, ...] = ()
    believed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    read: tuple[tuple[str, Number, str], ...] = ()
    met: tuple[str, ...] = ()
