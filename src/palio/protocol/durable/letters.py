"""Letters: unicast messages from one broker to another, passed on hop by hop; and what they can say."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from palio.model.filter import Filter
from palio.protocol.base import Moment, Number, WireMessage
from palio.protocol.durable.attempts import FailuresOf
from palio.protocol.durable.lineage import JournalGap, Lineage
from palio.protocol.durable.retry import Retry
from palio.protocol.envelope import Envelope


class Fetch(msgspec.Struct, frozen=True, tag="fetch"):
    """Catch-up: read what the filter selects after one sequence up to another.

    The reader is named by its identity: the name of a subscription is nobody's business on the way.
    """

    reader: str = msgspec.field(name="name")  # as it is called on the wire
    filter: Filter
    after: Number
    upto: Number
    since: Moment = 0.0
    limit: Number = 1  # how many at the most


class Page(msgspec.Struct, frozen=True, tag="page"):
    """Answers `Fetch`: everything after one sequence up to another, in order; or why it cannot be read now.

    The last of these sequences was numbered in this incarnation of the journal. If the journal `begins` behind
    the first of them, what is between has been trimmed. What is `damaged` of them has been left out: nobody
    knows whether the filter would select it.
    """

    reader: str = msgspec.field(name="name")  # as it is called on the wire
    after: Number
    upto: Number
    envelopes: tuple[Envelope, ...]
    problem: str | None = None
    incarnation: str = ""
    begins: Number = 0
    damaged: tuple[Number, ...] = ()


class ReaderEnded(msgspec.Struct, frozen=True, tag="readerended"):
    """A reader has ended: the journal need not keep anything for it."""

    reader: str


class MoveOut(msgspec.Struct, frozen=True, tag="moveout"):
    """Relocation: hand a durable subscription over to the sender, if its filter is the one that is expected."""

    name: str
    filter: Filter | None = None  # any


class MoveIn(msgspec.Struct, frozen=True, tag="movein"):
    """Relocation: a durable subscription, handed over: filter, position, and what was not acknowledged.

    Its identity is that of its creation, of which one name may see several. The generation grows with each
    home, so that a letter that comes late cannot bring it back to a former one. Where it is `unconfirmed`, a
    disk may have brought it back after it had gone on.
    """

    name: str
    identity: str
    generation: Number
    filter: Filter
    since: Moment
    position: tuple[tuple[str, Number], ...]
    spool: tuple[tuple[Number, Number, Envelope], ...]  # delivery, attempts, what
    dead: tuple[tuple[Number, Number, Envelope], ...]
    next_delivery: Number
    ready: bool
    linger: Moment | None = None
    retry: Retry | None = None
    failures: FailuresOf = ()  # of what is in the spool, and of the dead letters
    paused: bool = False
    lineages: tuple[tuple[str, Lineage], ...] = ()  # of the journals that its positions are positions of
    gaps: tuple[JournalGap, ...] = ()
    unconfirmed: bool = False


class MovedIn(msgspec.Struct, frozen=True, tag="movedin"):
    """Relocation: the subscription is on disk at the sender; the receiver may forget it."""

    name: str
    identity: str
    generation: Number


class Differs(msgspec.Struct, frozen=True, tag="differs"):
    """Relocation refused: the subscription is at the sender, and stays there: it has another filter."""

    name: str
    filter: Filter


class NotHere(msgspec.Struct, frozen=True, tag="nothere"):
    """Relocation refused: the subscription that was asked for is not at the sender."""

    name: str


class Arrived(msgspec.Struct, frozen=True, tag="arrived"):
    """The subscription, which the receiver has looked for and the sender did not have, is at the sender now."""

    name: str


class Noted(msgspec.Struct, frozen=True, tag="noted"):
    """Answers `Arrived`: the sender does not believe any more that the subscription is not at the receiver."""

    name: str


class Newer(msgspec.Struct, frozen=True, tag="newer"):
    """The sender is the home of a subscription of that name that was created later than the receiver's."""

    name: str
    identity: str


class Count(msgspec.Struct, frozen=True, tag="count"):
    """Survey: count what the filter selects in the receiver's journal."""

    number: Number
    filter: Filter
    since: Moment
    until: Moment
    buckets: Number
    samples: Number


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """Answers `Count`: what was counted since the part before; `last` if that is all."""

    number: Number
    part: Number
    count: Number
    first: Moment | None
    last_time: Moment | None
    histogram: tuple[Number, ...]
    samples: tuple[Envelope, ...]
    last: bool = False
    broken: bool = False  # what follows cannot be read now


class Browse(msgspec.Struct, frozen=True, tag="browse"):
    """Replay: read a page of the receiver's journal."""

    number: Number
    filter: Filter
    after: Number
    upto: Number
    since: Moment
    until: Moment
    limit: Number


class Browsed(msgspec.Struct, frozen=True, tag="browsed"):
    """Answers `Browse`: all after one sequence up to another, in order; unless it cannot be read now."""

    number: Number
    after: Number
    upto: Number
    envelopes: tuple[Envelope, ...]
    broken: bool = False


JournalContent: TypeAlias = Fetch | Page | ReaderEnded | Count | Counted | Browse | Browsed
RelocationContent: TypeAlias = MoveOut | MoveIn | MovedIn | Differs | NotHere | Arrived | Noted | Newer
Content: TypeAlias = JournalContent | RelocationContent


class Carry(WireMessage, frozen=True):
    """A letter from one broker to another, passed on hop by hop; lost if the way is not known."""

    sender: str
    receiver: str
    hops: Number
    content: Content
