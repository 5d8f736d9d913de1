"""Introductions: a journal trims only when it knows the readers of every broker that it has ever heard of.

A subscription is told that it is ready when every broker that its home knows has made it a reader of its
journal. A broker that joins later is not among these, and the home may be away just then. So each broker *A*
asks each broker *B*, once, for the readers that have their home there: that is the introduction of B to A,
remembered on disk. While anybody is missing, A keeps everything.

Why that is enough. Let A trim something that was published when a subscription at B was ready already.

- *B knew A when it became ready*: it is a reader at A, on disk, since before that.
- *B did not, and was introduced later*: it was in B's list. Lists have also what is being handed over to
  another home, or was: who asked there before it came, and here after it had gone, hears of it here.
- *It was stored at B after B had been introduced*: B answers only when it has on disk that it knows A, so
  nothing that is created there later is ready without A.
- *A does not know B*: take any broker that both know. It had on disk that it knows the one who asked first,
  before it answered. Links keep order, and who is new at a link is told of everyone first; so an answer comes
  after the news of all whom its giver knows, and the one who asked second knew the first. If that was A, it
  knew B, and waited for it; if it was B, it knew A. Only parts that never met have no such broker.

What is not yet on disk at its home is left out: nothing was promised to it, and it will ask to be a reader
itself. Whoever is forgotten has to be introduced again, should it come back; and who hears that it was itself
forgotten has everyone introduced again, since subscriptions may have become ready without it.

*Doubts.* The letter that says that a reader has ended may be lost, or come before an introduction that names
it. So readers that have stood still for long, with something to read, are asked about: rarely, and only while
there is other work. What counts is who says that one has ended for good. That nobody knows of one is no
proof: it may be on its way.
"""

from __future__ import annotations

from dataclasses import dataclass

from palio.protocol.durable.peers import Introduction, Told
from palio.routing.durable.desk import ANSWER_WITHIN, Desk
from palio.routing.durable.home.endings import Endings
from palio.routing.durable.network.answering import Answering
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.origin.introduced import Introduced
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.durable.origin.retention import Retention

# How many ticks a reader may stand still before it is asked about, and how many are asked about at a time.
DOUBT_AFTER = 100
MOST_DOUBTED = 1_000


@dataclass(eq=False, repr=False)
class Introductions:
    """What this journal asks of the brokers that were heard of. What they answer is in `answering`."""

    _desk: Desk
    _journal: OriginJournal
    _introduced: Introduced
    _topology: Topology
    _polling: Polling
    _answering: Answering
    _retention: Retention
    _endings: Endings

    def __post_init__(self) -> None:
        self._waiting: int | None = None  # for the answer to this question
        self._until = 0.0
        self._behind: dict[str, int] = {}  # where readers stood when they were last looked at
        self._doubt_at = 0.0

    def look(self) -> bool:
        """Ask for the introductions that are missing. Returns whether an answer is waited for."""
        now, tick, introduced = self._desk.now, self._desk.settings.tick, self._introduced
        if self._waiting is not None and self._until <= now:
            introduced.asked_in = None  # the answer was lost
        doubted = self._doubted()
        journal = self._journal
        if (journal.readers or journal.trimmed < journal.stored) and introduced.is_due:
            introduced.asked_in = self._topology.epoch
            self._until = now + ANSWER_WITHIN * tick
            self._ask(tuple(sorted(introduced.missing)), doubted)
        elif doubted:
            self._ask((), doubted)
        if not introduced.missing:
            self._waiting = None
        return self._waiting is not None

    def _ask(self, introduce: tuple[str, ...], doubted: tuple[str, ...]) -> None:
        ask = self._polling.ask(introduce=introduce, doubted=doubted, then=self._answered)
        if introduce:
            self._waiting = ask.number
        self._answering.answer(ask)

    def _answered(self, told: Told) -> None:
        for introduction in told.introductions:
            if introduction.broker in self._topology.known:
                self._introduce(introduction)
        for reader in told.ended:
            self._retention.end(reader)
        if self._waiting == told.number:
            self._waiting = None
        if told.introductions or told.ended:
            self._retention.trim()

    def _introduce(self, introduction: Introduction) -> None:
        for reader, home in introduction.readers:
            # A reader that is known has told its home itself, perhaps a later one.
            is_there = home in self._topology.known
            if reader not in self._journal.readers and is_there and not self._endings.has_ended(reader):
                self._retention.register(reader, home)
        self._introduced.add(introduction.broker)

    def _doubted(self) -> tuple[str, ...]:
        if self._desk.now < self._doubt_at:
            return ()
        self._doubt_at = self._desk.now + DOUBT_AFTER * self._desk.settings.tick
        before, self._behind = self._behind, self._journal.behind()
        still = [reader for reader, sequence in self._behind.items() if before.get(reader) == sequence]
        return tuple(still[:MOST_DOUBTED])
