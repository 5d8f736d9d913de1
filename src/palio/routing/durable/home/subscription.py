"""A durable subscription at its home: its state, its position, and how it catches up.

States and what leads from one to the next (`TRANSITIONS`; the documentation draws its diagram from it):

- *storing*: it is new here, or was handed over, and not yet on disk;
- *behind*: on disk, but not known to be complete: the network has changed, it began anew, its outbox is full,
  or it is new. What comes live is not taken; it will be fetched;
- *live*: in the present epoch, everything that every origin published after its position comes by itself;
- *moving*: on its way to another home; nothing is taken or delivered here;
- *ended*: gone.

What always holds, and what code and tests refer to by number ("invariant 3"):

1. *Position.* For each origin the subscription knows the sequence up to which everything is in the outbox, has
   been acknowledged, or was not selected by the filter. It only grows, unless somebody moves the subscription
   (`steering`), or the journal came back older: then it is where both journals fork (`lineages`, invariant 9).
2. *One write.* On disk a position changes only together with what it stands for, in one atomic write.
3. *Disk first.* Nothing is handed out, and nothing is answered, before what it says is on disk.
4. *Told from disk.* Journals hear only of positions that are on disk. So nothing is trimmed that this home
   would want again after a crash.
5. *Becoming live.* When everyone in reach knows the filter (a wave) and has then said how far its journal is (a
   poll), all in one epoch, then whatever an origin numbers after that comes live, and what it numbered before
   can be fetched. Nothing that comes live in another epoch is taken.
6. *In order.* From the poll on, and while an origin is being caught up with, what comes live from it waits in a
   bounded buffer: the answers of different origins are not of the same moment, and what was before comes first.
   What does not fit into the buffer is fetched with the rest. A mark that comes meanwhile counts when all that
   has been taken: in a quiet network there is no other.
7. *Bounded.* What does not fit into an outbox is not taken. The subscription is behind then, and fetches it
   when there is room: the journals keep it (invariant 4).
8. *One number.* A delivery has one number, no other delivery ever gets it, and the next number is on disk
   before the delivery goes out.
9. *Of one journal.* A position is one of the journal with a known lineage, or that is not known. What comes is
   of the same lineage: in one epoch a broker does not begin anew, and a page says of which incarnation it is.
   The same sequence may name another event in what waits: the time tells the two apart.
10. *Reading needs no agreement.* What is behind is read in any epoch (`reading`): a page says all that the
   filter selects of one journal between two of its sequences, whatever links there are; and what an origin said
   of its journal in one of its lives stays true, unless its disk comes back older, which the lineage shows.
   What is live needs agreement, as it is complete only if nothing was lost on the way.

Branches that only save work are marked `shortcuts.TAKEN`; everything is the same without them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from palio.model.filter import Filter
from palio.protocol.durable.letters import Fetch
from palio.protocol.durable.lineage import JournalGap, Lineage, incarnation_of
from palio.protocol.durable.retry import Retry
from palio.protocol.envelope import Envelope
from palio.routing.durable.home.outbox import DeadLetters, Outbox
from palio.routing.table import TableEntry

# How much of one origin waits in memory while it is caught up with; beyond that it is fetched, too. A few
# pages: while the last one is being fetched, what is published at full speed has to fit.
MAX_BUFFERED = 4_096
MAX_BUFFERED_BYTES = 8 << 20

# By how much a move raises the generation, and that of what is unconfirmed by 1. So a copy that a disk has
# brought back (`namesakes`) stays behind the subscription that it is one of, wherever both go: it would have to
# move as often. And the subscription can move 2^46 times.
GENERATIONS = 1 << 16


JournalPlace: TypeAlias = tuple[int, str]  # a sequence, and the incarnation that numbered it


class HomeState(Enum):
    STORING = "storing"
    BEHIND = "behind"
    LIVE = "live"
    MOVING = "moving"
    ENDED = "ended"


TRANSITIONS: dict[HomeState, dict[str, HomeState]] = {
    HomeState.STORING: {"stored": HomeState.BEHIND, "moving": HomeState.MOVING, "finished": HomeState.ENDED},
    HomeState.BEHIND: {
        "complete": HomeState.LIVE,
        "interrupted": HomeState.BEHIND,
        "asked for": HomeState.MOVING,
        "finished": HomeState.ENDED,
    },
    HomeState.LIVE: {
        "interrupted": HomeState.BEHIND,
        "asked for": HomeState.MOVING,
        "finished": HomeState.ENDED,
    },
    HomeState.MOVING: {
        "interrupted": HomeState.MOVING,
        "handed over": HomeState.ENDED,
        "finished": HomeState.ENDED,
    },
    HomeState.ENDED: {},
}


@dataclass(eq=False, repr=False, slots=True)
class JournalRead:
    """A read of a journal that is waited for: what was asked of which origin, and when it last was."""

    origin: str
    fetch: Fetch
    asked_at: float
    # For whom it is, and with which of the filters; of several readers each takes its part.
    readers: dict[Durable, int]
    filters: tuple[Filter, ...]
    epoch: int = 0  # in which it was asked
    pause: float = 0.0  # until it is asked again in that epoch


@dataclass(eq=False, repr=False, slots=True)
class CatchUp:
    """Catch-up with one origin: what has to be fetched, up to `target`; then what is buffered follows."""

    target: int = 0
    read: JournalRead | None = None  # that is waited for
    limit: int = 0  # how many that may bring
    looked_at: float = 0.0  # when it was last tried to read on
    alone: bool = False  # whether what was read with others has brought it nothing
    away: bool = False  # whether the origin was not in reach: what comes is taken, and nothing is asked for
    failing_since: float | None = None  # since when the origin says that it cannot read what is next
    buffer: deque[Envelope] = field(default_factory=deque)
    bytes: int = 0  # that wait there, about
    marked: int = 0  # up to where all waits here or is to be fetched, as a mark has said

    def hold(self, envelope: Envelope) -> None:
        """Buffers an event that came live. What does not fit is fetched with the rest."""
        if envelope.sequence <= self.target:
            return
        if self.buffer and envelope.sequence <= self.buffer[-1].sequence:
            return
        self.buffer.append(envelope)
        self.bytes += envelope.notification.body.size
        if len(self.buffer) > MAX_BUFFERED or self.bytes > MAX_BUFFERED_BYTES:
            self.reach(envelope.sequence)

    def go_on_from(self, former: CatchUp | None, position: int) -> None:
        """Take the place of a former catch-up: a read from this position need not be asked for once more."""
        if former is not None and former.read is not None and former.read.fetch.after == position:
            self.read, self.limit, self.failing_since = former.read, former.limit, former.failing_since

    def interrupt(self) -> None:
        """What waits is in the journal, and is fetched from there: what follows it may be lost on the way."""
        self.away, self.marked = False, 0
        if self.buffer:
            self.reach(self.buffer[-1].sequence)

    def reach(self, target: int) -> None:
        """Fetch at least up to a sequence; what is buffered and not beyond it comes that way."""
        self.target = max(self.target, target)
        while self.buffer and self.buffer[0].sequence <= self.target:
            self.bytes -= self.buffer.popleft().notification.body.size


@dataclass(eq=False, repr=False, slots=True)
class Siblings:
    """How many subscriptions one owner has at this home."""

    count: int = 0


@dataclass(eq=False, repr=False, slots=True)
class Durable:
    """A durable subscription at its home. Also what the tables hold for it."""

    name: str
    filter: Filter
    since: float
    identity: str
    generation: int
    outbox: Outbox
    state: HomeState = HomeState.STORING
    epoch: int = 0
    entry: TableEntry[Filter] | None = None  # for what of the filter its owner may see
    position: dict[str, int] = field(default_factory=dict)
    # What of the position the store was asked to write, and what of it is on disk.
    written_position: dict[str, int] = field(default_factory=dict)
    stored_position: dict[str, JournalPlace] = field(default_factory=dict)
    # By origin: the lineage of the journal that the position is one of, and how far that was heard to be.
    lineages: dict[str, Lineage] = field(default_factory=dict)
    heads: dict[str, int] = field(default_factory=dict)
    unwritten: set[str] = field(default_factory=set)  # origins whose lineage on disk is an earlier one, or none
    gaps: tuple[JournalGap, ...] = ()  # what it may have missed
    latest_write: int = 0  # the token of what the store was last asked to write of its deliveries
    saving: bool = False  # whether positions that marks have moved are being written
    spooling: int = 0  # deliveries that are being written
    spooling_bytes: int = 0
    catching_up: dict[str, CatchUp] = field(default_factory=dict)
    collecting: dict[str, CatchUp] | None = None  # what comes live while the question is out
    dead: DeadLetters = field(default_factory=DeadLetters)
    next_delivery: int = 1
    taker: str | None = None
    asked: int = 0  # the number of its taker's request
    timer: float | None = None  # when deliveries are looked at again
    detached_at: float | None = None
    linger: float | None = None  # how long it outlives its taker; None: as the broker says
    retry: Retry | None = None  # how what failed is tried again; None: as the broker or the taker says
    unconfirmed: bool = False  # whether it may be a copy that a disk has brought back; see `namesakes`
    siblings: Siblings = field(default_factory=lambda: Siblings(1))  # those of its owner, itself included
    ready_told: bool = False
    paused: bool = False  # whether nothing is handed out; see `steering`
    # By origin: what waited beyond the position when it was moved back, by sequence and time.
    reread: dict[str, set[tuple[int, float]]] = field(default_factory=dict)
    moving_to: str | None = None
    moving_stored: bool = False
    handed_at: float = 0.0  # when it was last written to the next home
    # As a holder in the tables it is no session's.
    session: str = ""
    handles: dict[str, None] = field(default_factory=dict)

    def go(self, event: str) -> None:
        """Change the state as the table of transitions says."""
        self.state = TRANSITIONS[self.state][event]

    def look_for_reread(self) -> None:
        """Something that waits is beyond the position if the subscription was moved back."""
        self.reread.clear()
        for one in self.outbox.deliveries.values():
            origin, sequence = one.envelope.origin, one.envelope.sequence
            if sequence > self.position.get(origin, sequence):
                self.reread.setdefault(origin, set()).add((sequence, one.envelope.time))

    def not_known(self, origin: str, envelopes: tuple[Envelope, ...]) -> list[Envelope]:
        """Of what was fetched from an origin, what did not wait when the subscription was moved back."""
        known = self.reread.get(origin)
        if known is None:
            return list(envelopes)
        found = [envelope for envelope in envelopes if (envelope.sequence, envelope.time) not in known]
        known.difference_update([(envelope.sequence, envelope.time) for envelope in envelopes])
        if not known or self.position[origin] >= max(known)[0]:
            del self.reread[origin]
        return found

    def places(self, position: Iterable[tuple[str, int]]) -> dict[str, JournalPlace]:
        """Positions, with the incarnations of the journals that they are positions of."""
        known = self.lineages
        return {
            origin: (sequence, incarnation_of(sequence, known.get(origin, ()))) for origin, sequence in position
        }

    def lineages_to_write(self, position: Iterable[tuple[str, int]]) -> tuple[tuple[str, Lineage], ...]:
        """The lineages that go to disk with these positions, since it has others; from now on it has them."""
        if not self.unwritten:
            return ()
        origins = [origin for origin, _ in position if origin in self.unwritten]
        self.unwritten.difference_update(origins)
        return tuple([(origin, self.lineages.get(origin, ())) for origin in origins])

    def saved(self) -> None:
        """Note that positions which marks had moved are on disk."""
        self.saving = False

    def interrupt(self) -> None:
        """Interrupts live delivery: nothing is known to come by itself. What is being read goes on (10)."""
        if self.state in (HomeState.LIVE, HomeState.BEHIND, HomeState.MOVING):
            self.go("interrupted")
            self.epoch = 0
            self.collecting = None
            for catching_up in self.catching_up.values():
                catching_up.interrupt()

    def stop(self) -> None:
        """Interrupts live delivery and reading: what was asked for is not wanted any more, or not now."""
        self.interrupt()
        self.catching_up.clear()

    def buffers(self, origin: str) -> bool:
        """Whether what comes live of an origin waits in a buffer."""
        return self.collecting is not None or origin in self.catching_up

    def take(self, envelope: Envelope) -> bool:
        """Takes an event that came live in the present epoch. Returns whether it is to be spooled now."""
        origin, sequence = envelope.origin, envelope.sequence
        if self.collecting is not None:
            self.collecting.setdefault(origin, CatchUp(0)).hold(envelope)
            return False
        if self.state is not HomeState.LIVE or origin not in self.position:
            return False
        catching_up = self.catching_up.get(origin)
        if catching_up is not None:
            catching_up.hold(envelope)
            return False
        if sequence <= self.position[origin]:
            return False
        self.position[origin] = sequence
        return True

    def advance(self, origin: str, sequence: int) -> None:
        """Handles a mark: everything of the origin up to a sequence has come, or is being caught up with."""
        if self.collecting is not None:
            waiting = self.collecting.setdefault(origin, CatchUp())
        elif self.state is not HomeState.LIVE or origin not in self.position:
            return
        elif origin in self.catching_up:
            waiting = self.catching_up[origin]
        else:
            self.position[origin] = max(self.position[origin], sequence)
            return
        waiting.marked = max(waiting.marked, sequence)
