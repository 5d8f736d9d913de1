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
  knew B, and waited for it; if it was B, it knew A. Only parts of a network that never met have no such
  broker.

What is not yet on disk at its home is left out: nothing was promised to it, and it will ask to be a reader
itself. Whoever is forgotten has to be introduced again, should it come back; and who hears that it was itself
forgotten has everyone introduced again, since subscriptions may have become ready without it.

*Doubts.* The letter that says that a reader has ended may be lost, or come before an introduction that names
it. So readers that have stood still for long, with something to read, are asked about: rarely, and only while
there is other work. What counts is who says that one has ended for good. That nobody knows of one is no
proof: it may be on its way.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.protocol.durable.peers import Ask, Introduction, Told
from palio.routing.durable.desk import ANSWER_WITHIN, Desk
from palio.routing.durable.effects import SaveFact
from palio.routing.durable.facts import FactKind
from palio.routing.durable.home.lifecycle import Homes
from palio.routing.durable.origin.journal import Journal

# How many ticks a reader may stand still before it is asked about, and how many are asked about at a time.
DOUBT_AFTER = 100
MOST_DOUBTED = 1_000


class Introductions:
    """Who has been introduced to this broker's journal, and what it answers to others.

    `known` are the brokers that were heard of, also while they change. `ask` asks everyone, `register` makes
    somebody a reader, `end` ends one.
    """

    def __init__(
        self,
        desk: Desk,
        journal: Journal,
        homes: Homes,
        *,
        known: set[str],
        introduced: set[str],
        ask: Callable[[tuple[str, ...], tuple[str, ...]], int],
        register: Callable[[str, str], None],
        end: Callable[[str], None],
    ) -> None:
        self._desk = desk
        self._journal = journal
        self._homes = homes
        self._known = known
        self._introduced = introduced
        self._ask = ask
        self._register = register
        self._end = end
        self._asked_in: int | None = None  # the epoch
        self._waiting: int | None = None  # for the answer to this question
        self._until = 0.0
        self._behind: dict[str, int] = {}  # where readers stood when they were last looked at
        self._doubt_at = 0.0

    # At the journal

    @property
    def missing(self) -> set[str]:
        """The brokers whose readers are not known."""
        return self._known - self._introduced - {self._desk.broker}

    def is_due(self, epoch: int) -> bool:
        """Whether somebody is missing who may be in reach, and was not asked.

        Who does not answer cannot be reached before the network changes.
        """
        return self._asked_in != epoch and bool(self.missing)

    def look(self, epoch: int) -> bool:
        """Ask what there is to ask. Returns whether an answer is waited for."""
        now, tick = self._desk.now, self._desk.settings.tick
        if self._waiting is not None and self._until <= now:
            self._asked_in = None  # the answer was lost
        doubted = self._doubted()
        journal = self._journal
        if (journal.readers or journal.trimmed < journal.stored) and self.is_due(epoch):
            self._asked_in = epoch
            self._until = now + ANSWER_WITHIN * tick
            self._waiting = 0
            number = self._ask(tuple(sorted(self.missing)), doubted)
            self._waiting = number if self._waiting == 0 else None
        elif doubted:
            self._ask((), doubted)
        if not self.missing:
            self._waiting = None
        return self._waiting is not None

    def answered(self, told: Told) -> None:
        """Everyone in reach has answered a question of this broker, whatever else that was about."""
        for introduction in told.introductions:
            if introduction.broker in self._known:
                self._introduce(introduction)
        for reader in told.ended:
            self._end(reader)
        if self._waiting in (0, told.number):
            self._waiting = None

    def forget(self, broker: str) -> None:
        """A broker is gone for good; if that is this one, everyone has lived without it."""
        gone = self._introduced if broker == self._desk.broker else self._introduced & {broker}
        for one in sorted(gone):
            self._introduced.discard(one)
            self._desk.effects.append(SaveFact(self._desk.token(), FactKind.INTRODUCED.of(one), None))
        if gone:
            self._asked_in = None

    def _introduce(self, introduction: Introduction) -> None:
        for reader, home in introduction.readers:
            # A reader that is known has told its home itself, perhaps a later one.
            is_there = home in self._known
            if reader not in self._journal.readers and is_there and not self._homes.has_ended(reader):
                self._register(reader, home)
        self._introduced.add(introduction.broker)
        fact = FactKind.INTRODUCED.of(introduction.broker)
        self._desk.effects.append(SaveFact(self._desk.token(), fact, 1))

    def _doubted(self) -> tuple[str, ...]:
        if self._desk.now < self._doubt_at:
            return ()
        self._doubt_at = self._desk.now + DOUBT_AFTER * self._desk.settings.tick
        before, self._behind = self._behind, self._journal.behind()
        still = [reader for reader, sequence in self._behind.items() if before.get(reader) == sequence]
        return tuple(still[:MOST_DOUBTED])

    # At the home

    def given(self, ask: Ask) -> tuple[Introduction, ...]:
        """What this broker says of its readers to who wants to know of it, and is known here."""
        if self._desk.broker not in ask.introduce or ask.asker not in self._known:
            return ()
        return (Introduction(self._desk.broker, self._homes.introduced()),)

    def ended(self, ask: Ask) -> tuple[str, ...]:
        """Of the readers that are doubted, those that are known here to have ended."""
        return tuple([reader for reader in ask.doubted if self._homes.has_ended(reader)])
