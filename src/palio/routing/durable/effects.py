"""What durable delivery wants done: by the store of this broker, and for clients.

The store carries out what it is asked for in that order. It completes each with a message of the same token:
`Stored` (or `Failed`) once it is on disk, `Found` for what was read. A crash loses a suffix of what was not
completed. After a restart, `Router.recover` is given what is on disk (`Recovered`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.durable.attempts import FailuresOf
from palio.protocol.durable.lineage import JournalGap, Lineage
from palio.protocol.durable.retry import Retry
from palio.protocol.envelope import Envelope
from palio.routing.durable.facts import Fact

# Bytes of a key: PostgreSQL finds rows by what is a good deal shorter than one of its pages.
MAX_KEY = 1_024


class InvalidRecord(PalioError):
    """A keyed record that no store could keep."""

    reason: str
    sentence = "This is no keyed record: {reason}"


class KeyedRecord(msgspec.Struct, frozen=True):
    """The current value of something, found by its kind and its key. Without a value there is none any more.

    In an `Append`, the value may be one of its events, named by its sequence: it is the envelope as bytes. A
    store that has it in its journal need not write it once more.

    Raises `InvalidRecord` for a kind or a key that cannot be one.
    """

    kind: str
    key: str
    value: bytes | None
    event: int = 0

    def __post_init__(self) -> None:
        try:
            longest = max(len(self.kind.encode()), len(self.key.encode()))
        except UnicodeEncodeError:
            raise InvalidRecord("Its kind or its key is no text.") from None
        if not self.kind or longest > MAX_KEY:
            raise InvalidRecord(f"Its kind and its key have at most {MAX_KEY:,} bytes, and it has a kind.")

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return len(self.kind) + len(self.key) + len(self.value or b"")


# Seconds by which rows of the operation log may be out of order: a request has the time at which it came, and
# its row is made when it is answered. Who waits longer for an answer has gone (a guess).
OUT_OF_ORDER = 600.0


class LoggedOperation(msgspec.Struct, frozen=True, gc=False):
    """A row of the operation log: what somebody has asked for, and what came of it.

    Of a publish it has which sequences were given, and how many; not what was published, which is in the
    journal. `number` is given by the store.
    """

    time: float
    binding: str  # how it came: palio, websocket, http
    principal: str
    session: str
    kind: str
    subject: str  # what it was about, if that has a name
    bytes: int
    result: str  # done, refused or unanswered
    reason: str = ""  # why it was refused
    sequence: int = 0  # of a publish: the first one
    events: int = 0  # and how many
    number: int = 0

    @property
    def size(self) -> int:
        """About how many bytes it takes on disk."""
        texts = self.binding, self.principal, self.session, self.kind, self.subject, self.result, self.reason
        return 64 + sum(map(len, texts))


class LogBounds(msgspec.Struct, frozen=True):
    """How much of the operation log is kept: seconds back from its newest row, and bytes."""

    keep: float = 30 * 86_400.0  # a month: what most who look into such a log ask for is younger (a guess)
    size: int = 1 << 30  # a row has some 150 bytes: seven million requests


class Append(msgspec.Struct, frozen=True):
    """Add to the journal. Sequences are dense: the first one follows the last one on disk, or it fails.

    Keyed records are written with it, all or nothing: what an event says and what is true because of it
    are there together. There may also be records alone. So are rows of the operation log.
    """

    token: int
    envelopes: tuple[Envelope, ...]
    publisher: str
    records: tuple[KeyedRecord, ...] = ()
    log: tuple[LoggedOperation, ...] = ()


class Read(msgspec.Struct, frozen=True):
    """Read the journal after one sequence up to another: what the filter selects, not older than `since`.

    At most `limit` are returned, or fewer if they are large; what was found then reaches only up to the last of
    them. What was trimmed may be read elsewhere, which can take longer than what is asked for later, and fail.
    """

    token: int
    filter: Filter
    after: int
    upto: int
    limit: int
    since: float = 0.0
    documents: bool = False  # of what was trimmed, the current documents that have outlived it are wanted


class Spool(msgspec.Struct, frozen=True):
    """One atomic change of a durable subscription: what it has to deliver, and how far it is.

    `add` and `dead` are (delivery, attempts, envelope); `remove` names deliveries. `position` replaces the
    sequences of the origins that it names. With a `filter`, the subscription is created, or its filter
    changed, together with its generation, the time from which on it wants events, the home to which it is
    being handed over, if it is, how long it outlives its taker, and how it wants things to be tried again. The
    number of the next delivery on disk is the largest of `next_delivery` and one more than any number that was
    added: no number is given twice. Why attempts failed (`failures`) is kept with what is added or dead.

    A number is a delivery or a dead letter, never both: what is removed is neither any more, then what is added
    is no dead letter, and what is dead is no delivery.

    `lineages` are those of the journals that these positions are positions of, for some of the origins: of
    others they stay. An empty one is not known. `gaps` replaces what it may have missed; None leaves it.
    """

    token: int
    name: str
    filter: Filter | None = None
    identity: str = ""
    generation: int = 0
    since: float = 0.0
    moving_to: str | None = None
    next_delivery: int = 1
    add: tuple[tuple[int, int, Envelope], ...] = ()
    remove: tuple[int, ...] = ()
    dead: tuple[tuple[int, int, Envelope], ...] = ()
    position: tuple[tuple[str, int], ...] = ()
    linger: float | None = None
    retry: Retry | None = None
    failures: FailuresOf = ()
    lineages: tuple[tuple[str, Lineage], ...] = ()
    gaps: tuple[JournalGap, ...] | None = None


class SaveFact(msgspec.Struct, frozen=True):
    """Remember a fact with its value, in the place of the one before; without a value, forget it."""

    token: int
    fact: Fact
    value: int | None


class Trim(msgspec.Struct, frozen=True):
    """Nobody needs the journal up to this sequence any more. Not completed."""

    upto: int


class Remove(msgspec.Struct, frozen=True):
    """Forget a durable subscription with all that belongs to it."""

    token: int
    name: str


class Hand(msgspec.Struct, frozen=True):
    """Deliveries of a durable subscription to its taker: number, attempt, and what.

    From attempt 2 on it is, or may be, a redelivery.
    """

    session: str
    name: str
    deliveries: tuple[tuple[int, int, Envelope], ...]


class ReportGap(msgspec.Struct, frozen=True):
    """Tell whoever looks after the broker what may be missing: a journal came back older, or is damaged.

    It is missing for a durable subscription here; without one, the journal is that of this broker. The `fork`
    is the incarnation that the journal is in now, and tells this time from the next.
    """

    gap: JournalGap
    durable: str
    fork: str = ""

    @property
    def why(self) -> str:
        """Why something is missing: what a journal has trimmed, it let go as it did not know of the reader."""
        if self.gap.what != "older":
            return "damaged"
        return "trimmed" if self.durable and self.gap.upto is not None else "came back older"


class HasLeft(msgspec.Struct, frozen=True):
    """This broker has left the network: everybody has forgotten it, and it can be stopped for good."""


# Why a broker was forgotten: it was away for too long, an operator has said so, it has left and said so itself,
# or another broker has told it.
ForgottenWhy: TypeAlias = Literal["away", "operator", "left", "told"]


class ReportForgotten(msgspec.Struct, frozen=True):
    """Tell whoever looks after the broker that another one is forgotten, and what the journal here gives up.

    So many durable subscriptions were at home there; what follows `read` in this journal, up to its end, is not
    kept for them any more.
    """

    broker: str
    why: ForgottenWhy
    readers: int
    read: int
    head: int
    at: float


StoreEffect: TypeAlias = Append | Read | Spool | SaveFact | Trim | Remove
STORE_EFFECTS: tuple[type, ...] = get_args(StoreEffect)


class Subscribed(msgspec.Struct, frozen=True):
    """A durable subscription as it is on disk."""

    name: str
    identity: str
    generation: int
    filter: Filter
    since: float
    position: dict[str, int]
    spool: tuple[tuple[int, int, Envelope], ...]
    dead: tuple[tuple[int, int, Envelope], ...]
    next_delivery: int
    moving_to: str | None = None
    linger: float | None = None
    retry: Retry | None = None
    failures: FailuresOf = ()  # of spool and dead letters
    lineages: dict[str, Lineage] = {}  # of the journals that its positions are positions of, where known
    gaps: tuple[JournalGap, ...] = ()


class Recovered(msgspec.Struct, frozen=True):
    """All that is on disk at a broker that begins anew."""

    head: int = 0
    trimmed: int = 0
    recent: tuple[tuple[str, str, int, float], ...] = ()  # publisher, id, sequence, time: against duplicates
    facts: tuple[tuple[Fact, int], ...] = ()
    subscriptions: tuple[Subscribed, ...] = ()
    shared: tuple[KeyedRecord, ...] = ()  # see `routing.sharing`
    archived: bool = False  # what was trimmed can still be read
    lineage: Lineage = ()  # of the journal, the incarnation that begins now at its end
    opened_before: int = 0  # the number of the opening before this one, as far as the disk knows
    last_time: float = 0.0  # that of the last event; documents have at least this one
