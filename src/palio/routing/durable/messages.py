"""What durable delivery adds to the messages: of clients, of the store, and between brokers."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from palio.model.filter import Filter
from palio.routing.durable.attempts import MAX_REASON, FailuresOf
from palio.routing.durable.control import Pause, Paused, Resume, Seek, Sought
from palio.routing.durable.outbox import Patience, Retry
from palio.routing.messages import Envelope, Moment, Number, _Message

Position: TypeAlias = dict[str, int]  # origin -> sequence: everything up to there is known


# From clients. `name` is the durable subscription's, unique in the network (principal and name).


class Attach(_Message, frozen=True):
    """Be the taker of a durable subscription from now on; create it if there is none of that name.

    `since` is for a new one: "now", "all", or a time in seconds; and so is `after`, a position: of the origins
    that it names, what follows those sequences is wanted. A subscription of that name at a home that cannot be
    reached is not guessed to be none: that is refused, unless the client asks to begin `anew`.

    If there is one with another filter, that is refused, unless the client takes it `as_is`. Without a filter
    the one that is there is meant, and none is created.

    `linger` is how many seconds the subscription outlives its taker. None leaves that as it is, which for a new
    one is the broker's own limit. `retry` is how often and after which pauses the subscription wants what
    failed to be tried again; None leaves that as it is, too. `in_flight` is how many deliveries may be out to
    this taker at a time, and `patience` how it is treated otherwise, if not as the broker says.
    """

    name: str
    filter: Filter | None
    since: str | Moment = "now"
    anew: bool = False
    linger: Moment | None = None
    in_flight: Number | None = None
    after: dict[str, Number] | None = None
    patience: Patience | None = None
    as_is: bool = False
    retry: Retry | None = None

    @property
    def expected(self) -> Filter | None:
        return None if self.as_is else self.filter


class Change(_Message, frozen=True):
    """Change the filter of a durable subscription in place."""

    name: str
    filter: Filter


class Acknowledged(_Message, frozen=True):
    """The client has done with these deliveries."""

    name: str
    deliveries: tuple[Number, ...]


class Rejected(_Message, frozen=True):
    """The client could not deal with these deliveries; they shall come again, or become dead letters.

    They come after a pause, or after the `delay`, in seconds. A taker that knows that nobody ever will be able
    to deal with them wants them to be dead letters at once. The reason is for whoever looks at these.
    """

    name: str
    deliveries: tuple[Number, ...]
    delay: Moment | None = None
    reason: Annotated[str, msgspec.Meta(max_length=MAX_REASON)] = ""
    dead_letter: bool = False


class Detach(_Message, frozen=True):
    """The client goes away; the subscription stays."""

    name: str


class Finish(_Message, frozen=True):
    """End a durable subscription for good."""

    name: str


class Requeue(_Message, frozen=True):
    """These dead letters shall be delivered after all, as if for the first time, says whoever asks for it."""

    name: str
    deliveries: tuple[Number, ...]


class Discard(_Message, frozen=True):
    """These dead letters are not needed any more, says whoever asks for it."""

    name: str
    deliveries: tuple[Number, ...]


class Forget(_Message, frozen=True):
    """From an operator: a broker is gone for good, and nobody shall wait for it any more."""

    broker: str


class Survey(_Message, frozen=True):
    """How many of all that is in the journals in reach does the filter select, from one time to another?

    The answer has a histogram of that time, and the newest as samples. Without an end it is until now.
    """

    number: Number
    filter: Filter
    since: Moment = 0.0
    until: Moment | None = None
    buckets: Number = 24
    samples: Number = 5


class Replay(_Message, frozen=True):
    """All that is in the journals in reach and that the filter selects, origin by origin, page by page.

    With `ranges` only what those origins have after one sequence up to another.
    """

    number: Number
    filter: Filter
    since: Moment = 0.0
    until: Moment | None = None
    page: Number = 100
    ranges: tuple[tuple[str, Number, Number], ...] = ()


class GoOn(_Message, frozen=True):
    """The next page of a replay, please."""

    number: Number


class ListJournals(_Message, frozen=True):
    """Which journals are in reach, and how far are they?"""

    number: Number


class Hold(_Message, frozen=True):
    """Keep this broker's journal for a reader that has all up to a sequence; -1 ends that.

    A reader is no subscription: a lake, or a query that comes back later. Nothing is sent to it.
    """

    number: Number
    reader: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    sequence: Annotated[int, msgspec.Meta(ge=-1, le=2**62)]


class TrimJournal(_Message, frozen=True):
    """From an operator: let go all of this broker's journal that nobody needs, however new it is.

    With `upto` nothing after that sequence. With `dry` nothing at all: only what would go is said.
    """

    number: Number
    upto: Number | None = None
    dry: bool = False


DurableRequest: TypeAlias = (
    Attach
    | Change
    | Acknowledged
    | Rejected
    | Detach
    | Finish
    | Requeue
    | Discard
    | Forget
    | Survey
    | Replay
    | GoOn
    | ListJournals
    | Hold
    | TrimJournal
    | Pause
    | Resume
    | Seek
)


# To clients.


class Attached(_Message, frozen=True):
    """The session is the taker now; the subscription is on disk at this home, with this filter in force."""

    name: str
    home: str
    created: bool = False
    filter: Filter | None = None
    paused: bool = False


class DurableReady(_Message, frozen=True):
    """Whatever is confirmed to its publisher from now on, anywhere in reach, will be delivered."""

    name: str


class Done(_Message, frozen=True):
    """These acknowledgements are on disk: they will not be delivered again."""

    name: str
    deliveries: tuple[Number, ...]


class Changed(_Message, frozen=True):
    """The new filter is in force; examples of what it drops and of what it adds, if there are any."""

    name: str
    drops: str | None
    adds: str | None
    filter: Filter | None = None


class Taken(_Message, frozen=True):
    """Another session has become the taker, here or at another home."""

    name: str


class Requeued(_Message, frozen=True):
    """These were dead letters and are deliveries again, on disk."""

    name: str
    deliveries: tuple[Number, ...]


class Discarded(_Message, frozen=True):
    """These were dead letters and are gone, on disk."""

    name: str
    deliveries: tuple[Number, ...]


class Forgot(_Message, frozen=True):
    """That a broker is forgotten is on disk here, and on its way to all others."""

    broker: str


class Surveyed(_Message, frozen=True):
    """What was counted. Times are those of the first and the last; `missing` are origins that did not say."""

    number: Number
    count: Number
    first: Moment | None
    last: Moment | None
    histogram: tuple[Number, ...]
    span: tuple[Moment, Moment]
    samples: tuple[Envelope, ...]
    missing: tuple[str, ...] = ()


class Replayed(_Message, frozen=True):
    """A page of a replay, all of one origin; or its end, with the origins that did not answer."""

    number: Number
    origin: str = ""
    envelopes: tuple[Envelope, ...] = ()
    last: bool = False
    missing: tuple[str, ...] = ()


class JournalRange(msgspec.Struct, frozen=True, array_like=True):
    """A journal has all after `trimmed` up to `head`."""

    origin: str
    trimmed: Number
    head: Number


class JournalsListed(_Message, frozen=True):
    """The journals in reach; `missing` are brokers that were ever heard of and did not answer."""

    number: Number
    journals: tuple[JournalRange, ...]
    missing: tuple[str, ...] = ()


class Held(_Message, frozen=True):
    """That the journal is kept for a reader is on disk; what was trimmed before is gone."""

    number: Number
    journal: JournalRange


class JournalTrimmed(_Message, frozen=True):
    """How far the journal is trimmed now, and by whom it is needed beyond that: readers, and how far each is.

    Not while brokers are `missing` of which it is not known whom they have. `gone` have gone, or would go.
    """

    number: Number
    journal: JournalRange
    needed_by: tuple[tuple[str, Number], ...] = ()
    missing: tuple[str, ...] = ()
    gone: Number = 0


DurableAnswer: TypeAlias = (
    Attached
    | DurableReady
    | Done
    | Changed
    | Taken
    | Requeued
    | Discarded
    | Forgot
    | Surveyed
    | Replayed
    | JournalsListed
    | Held
    | JournalTrimmed
    | Paused
    | Sought
)


# From the store. Each effect on the store has a token, and is completed by one of these.


class Stored(_Message, frozen=True):
    """It is on disk, and so is all that was asked for before it."""

    token: Number


class Failed(_Message, frozen=True):
    """It could not be written, or read; after an append that failed, none that was asked for later was done."""

    token: Number
    reason: str


class Found(_Message, frozen=True):
    """What was read of the journal: all that the filter selects up to `upto`, in order."""

    token: Number
    upto: Number
    envelopes: tuple[Envelope, ...]


StoreMessage: TypeAlias = Stored | Failed | Found


# Between brokers.


class TopologyChanged(_Message, frozen=True):
    """A broker's links have changed, or it began anew: the highest version of each counts; flooded.

    A broker that is `forgotten` up to a version is one again only with a higher one.
    """

    versions: tuple[tuple[str, Number], ...]
    forgotten: tuple[tuple[str, Number], ...] = ()


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """All that an origin published up to a sequence has gone before this mark, if the epoch is unbroken."""

    origin: str
    sequence: Number
    entry: str
    epoch: Number


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far readers of an origin are: nothing behind these positions needs to be kept for them."""

    origin: str
    positions: tuple[tuple[str, Number], ...]  # by the identity of the subscription


class Marks(_Message, frozen=True):
    """What is in no hurry, once a tick in one message: how far origins are, and how far their readers.

    Marks are for the receiver and everyone behind it; each progress goes on to its origin.
    """

    marks: tuple[Mark, ...]
    progress: tuple[Progress, ...] = ()


class Ask(_Message, frozen=True):
    """A question to every broker in reach: how far is your journal, and are you the home of `about`?

    Each of `readers` (identity and name) is registered at the journal: from then on nothing that it has not
    read is trimmed. Who is named in `introduce` shall say which readers have their home there, and anybody who
    knows it which of the readers that are `doubted` have ended.
    """

    asker: str
    number: Number
    about: str | None = None
    readers: tuple[tuple[str, str], ...] = ()
    distance: Number = 0  # how many hops the sender is from the asker
    introduce: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    epoch: Number = 0  # that the asker is in


class Head(msgspec.Struct, frozen=True, array_like=True):
    """How far a journal is, and the sequence up to which it has been trimmed."""

    origin: str
    head: Number
    trimmed: Number
    distance: Number = 0  # how many hops the sender is from the origin
    archived: bool = False  # what was trimmed can still be read

    @property
    def begins(self) -> int:
        """The sequence after which something may be read."""
        return 0 if self.archived else self.trimmed


class Introduction(msgspec.Struct, frozen=True, array_like=True):
    """The durable subscriptions that a broker has, or has handed over: identities, and where they are."""

    broker: str
    readers: tuple[tuple[str, str], ...]


class Told(_Message, frozen=True):
    """The answers of the sender and everyone behind it; `epochs` are the different epochs that they are in."""

    asker: str
    number: Number
    epochs: tuple[Number, ...]
    heads: tuple[Head, ...] = ()
    homes: tuple[str, ...] = ()
    introductions: tuple[Introduction, ...] = ()
    ended: tuple[str, ...] = ()


class Fetch(msgspec.Struct, frozen=True, tag="fetch"):
    """Read what the filter selects after one sequence up to another.

    The reader is named by its identity: the name of a subscription is nobody's business on the way.
    """

    reader: str = msgspec.field(name="name")  # as it is called on the wire
    filter: Filter
    after: Number
    upto: Number
    since: Moment = 0.0
    limit: Number = 1  # how many at the most


class Page(msgspec.Struct, frozen=True, tag="page"):
    """The answer: everything after one sequence up to another, in order; or why it cannot be read now."""

    reader: str = msgspec.field(name="name")  # as it is called on the wire
    after: Number
    upto: Number
    envelopes: tuple[Envelope, ...]
    problem: str | None = None


class ReaderEnded(msgspec.Struct, frozen=True, tag="readerended"):
    """A reader has ended: nothing needs to be kept for it."""

    reader: str


class MoveOut(msgspec.Struct, frozen=True, tag="moveout"):
    """Hand a durable subscription over to the sender, if its filter is the one that is expected."""

    name: str
    filter: Filter | None = None  # any


class MoveIn(msgspec.Struct, frozen=True, tag="movein"):
    """A durable subscription, handed over: filter, position, and what was not acknowledged.

    Its identity is that of its creation, of which one name may see several. The generation counts its homes, so
    that a letter that comes late cannot bring it back to a former one.
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


class MovedIn(msgspec.Struct, frozen=True, tag="movedin"):
    """The subscription is on disk at the sender; the receiver may forget it."""

    name: str
    identity: str
    generation: Number


class Differs(msgspec.Struct, frozen=True, tag="differs"):
    """The subscription that was asked for is at the sender, and stays there: it has another filter."""

    name: str
    filter: Filter


class NotHere(msgspec.Struct, frozen=True, tag="nothere"):
    """The subscription that was asked for is not at the sender."""

    name: str


class Newer(msgspec.Struct, frozen=True, tag="newer"):
    """The sender is the home of a subscription of that name that was created later than the receiver's."""

    name: str
    identity: str


class Count(msgspec.Struct, frozen=True, tag="count"):
    """Count what the filter selects in the receiver's journal, for a survey of the sender."""

    number: Number
    filter: Filter
    since: Moment
    until: Moment
    buckets: Number
    samples: Number


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """What was counted since the part before; `last` if that is all."""

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
    """A page of the receiver's journal, for a replay of the sender."""

    number: Number
    filter: Filter
    after: Number
    upto: Number
    since: Moment
    until: Moment
    limit: Number


class Browsed(msgspec.Struct, frozen=True, tag="browsed"):
    """The page: everything after one sequence up to another, in order; unless that cannot be read now."""

    number: Number
    after: Number
    upto: Number
    envelopes: tuple[Envelope, ...]
    broken: bool = False


Content: TypeAlias = (
    Fetch
    | Page
    | ReaderEnded
    | MoveOut
    | MoveIn
    | MovedIn
    | Differs
    | NotHere
    | Newer
    | Count
    | Counted
    | Browse
    | Browsed
)


class Carry(_Message, frozen=True):
    """A letter from one broker to another, passed on hop by hop; lost if the way is not known."""

    sender: str
    receiver: str
    hops: Number
    content: Content


DurablePeerMessage: TypeAlias = TopologyChanged | Marks | Ask | Told | Carry
DurableMessage: TypeAlias = DurableRequest | StoreMessage | DurablePeerMessage
