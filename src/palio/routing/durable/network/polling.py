"""Polls: questions to every broker in reach, and the ways for letters to one of them.

A question is flooded over all links, and the answers come back the way it went (an echo): each broker answers
the neighbour from which it first heard the question, once all its other neighbours have answered it, or have
sent it the same question, and its own answer is there. So the asker knows when all have answered.

On the way a broker learns in which direction, and how far, the asker is, and those who answered. Letters follow
the shortest of these ways. Neighbours need no learning.

Invariants of ways:

1. A way is *sure* if it was learned from a question in the epoch in which it was asked, or from answers in the
   one epoch in which all of them were given. Who is between has been in that epoch, too (see `topology`), and
   knows the rest of the way, or has heard of a change since, of which we shall hear. All ways are forgotten
   when the epoch changes. So by sure ways a letter comes nearer with each hop, and cannot run in circles.
2. A way that is not sure (its giver may have forgotten it by now) is taken while there is no other, and asked
   about: it may lead nowhere, and it is all that there is between brokers that do not agree on the epoch.
3. A letter whose way is not known is lost, and whoever wrote it writes again. The broker that has lost it asks
   (`unicast`), whoever wrote it: the writer may know a way up to there, and has no reason to ask.
4. The *former* way, which was known before the epoch changed, is tried by letters while there is no other, as
   one that is not sure: most changes are elsewhere, and where links change faster than everyone can be asked
   nobody would ever know a way. It may run in circles, so what takes it is bounded, and nothing but a letter
   takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from palio.protocol.durable.peers import Ask, Head, Introduction, LaterHome, Told
from palio.routing.durable.desk import Desk
from palio.routing.durable.network.topology import Topology
from palio.routing.effects import Send


class PendingPoll(msgspec.Struct, eq=False):
    """A poll that is being answered here."""

    parent: str | None
    missing: set[str]
    then: Callable[[Told], None] | None = None  # what hears the answers, if the question is this broker's
    answered: bool = False  # by this broker itself
    epochs: dict[int, None] = {}
    heads: list[Head] = []
    homes: list[str] = []
    introductions: list[Introduction] = []
    ended: list[str] = []
    later: list[LaterHome] = []
    believed: list[tuple[str, tuple[str, ...]]] = []
    read: list[tuple[str, int, str]] = []
    met: dict[str, None] = {}

    def add(self, told: Told, heads: Iterable[Head]) -> None:
        """Add the answer of somebody; the heads are those of the answer, as far as they are from here."""
        self.epochs.update(dict.fromkeys(told.epochs))
        self.heads += heads
        self.homes += told.homes
        self.introductions += told.introductions
        self.ended += told.ended
        self.later += told.later
        self.believed += told.believed
        self.read += told.read
        self.met.update(dict.fromkeys(told.met))


class Polling:
    """This broker's part in polls, its own and those of others."""

    def __init__(
        self, desk: Desk, neighbours: Callable[[], Iterable[str]], topology: Topology, first: int
    ) -> None:
        """`neighbours` are those whose links count, `first` is the number before that of the first question."""
        self._desk = desk
        self._broker = desk.broker
        self._neighbours = neighbours
        self._topology = topology
        self._number = first
        self._questions: dict[tuple[str, int], PendingPoll] = {}
        self._latest: dict[str, int] = {}
        # By broker: whether that is doubtful, how far it is, and by which neighbour.
        self._ways: dict[str, tuple[bool, int, str]] = {}
        self._former: dict[str, str] = {}  # the neighbours by which brokers were reached in former epochs

    def ask(
        self,
        about: str | None = None,
        *,
        readers: tuple[tuple[str, str], ...] = (),
        introduce: tuple[str, ...] = (),
        doubted: tuple[str, ...] = (),
        places: tuple[tuple[str, int, str], ...] = (),
        generations: tuple[int, ...] = (),
        leaving: bool = False,
        strangers: tuple[str, ...] = (),
        then: Callable[[Told], None] | None = None,
    ) -> Ask:
        """Poll everyone; `then` hears what all in reach have answered.

        This broker's own answer has to be given, too (`answering`).
        """
        self._number += 1
        number, epoch = self._number, self._topology.epoch
        asked = about, readers, 0, introduce, doubted, epoch, places, generations, leaving, strangers
        ask = Ask(self._broker, number, *asked)
        self._begin(ask, None, then)
        return ask

    def hear(self, ask: Ask, source: str) -> bool:
        """Handles an `Ask` from a neighbour. Returns whether it is new, and an answer is due."""
        self._learn(ask.asker, ask.distance + 1, source, sure=ask.epoch == self._topology.epoch)
        key = ask.asker, ask.number
        question = self._questions.get(key)
        if question is not None:
            if source in question.missing:
                question.missing.discard(source)
                self._finish(key)
            else:  # the link is so new that this broker has not asked there
                self._send(source, Told(ask.asker, ask.number, ()))
            return False
        if ask.asker == self._broker or ask.number <= self._latest.get(ask.asker, -1):
            self._send(source, Told(ask.asker, ask.number, ()))  # it has been answered, or its asker began anew
            return False
        self._begin(ask, source)
        return True

    def answer(self, told: Told) -> None:
        """Add this broker's own answer to a poll."""
        question = self._questions.get((told.asker, told.number))
        if question is not None:
            question.answered = True
            question.add(told, told.heads)
            self._finish((told.asker, told.number))

    def told(self, told: Told, source: str) -> None:
        """Handles a `Told`: a neighbour gives the answers of all behind it."""
        heads = [msgspec.structs.replace(head, distance=head.distance + 1) for head in told.heads]
        sure = set(told.epochs) == {self._topology.epoch}
        for head in heads:
            self._learn(head.origin, head.distance, source, sure=sure)
        question = self._questions.get((told.asker, told.number))
        if question is not None and source in question.missing:
            question.missing.discard(source)
            question.add(told, heads)
            self._finish((told.asker, told.number))

    def __len__(self) -> int:
        """How many questions are being answered here."""
        return len(self._questions)

    def way_to(self, broker: str) -> str | None:
        """The neighbour by which a broker is reached, if that is known."""
        if broker in self._neighbours():
            return broker
        way = self._ways.get(broker)
        return way[2] if way is not None else None

    def former_way_to(self, broker: str) -> str | None:
        """The neighbour by which a broker was reached before the epoch changed, if there is a link to it."""
        former = self._former.get(broker)
        return former if former is not None and former in self._neighbours() else None

    @property
    def longest_way(self) -> int:
        """How many hops a way may have that is not one in circles."""
        return len(self._topology.known) + len(self._topology.relays)

    def is_sure_of(self, broker: str) -> bool:
        """Whether the way to a broker is known, and need not be asked about."""
        return broker in self._neighbours() or (broker in self._ways and not self._ways[broker][0])

    def forget_ways(self) -> None:
        """Forget all ways, as the network has changed: they may be longer now, or lead nowhere."""
        former = self._former | {broker: way for broker, (*_, way) in self._ways.items()}
        self._former = {broker: way for broker, way in former.items() if broker in self._topology.known}
        self._ways.clear()

    def _learn(self, broker: str, distance: int, way: str, *, sure: bool) -> None:
        known = self._ways.get(broker)
        if broker != self._broker and (known is None or (not sure, distance) < known[:2]):
            self._ways[broker] = not sure, distance, way

    def link_lost(self, broker: str) -> None:
        """Handles a lost link: nobody waits for that neighbour, and ways through it are forgotten."""
        self.forget_ways()
        for key, question in list(self._questions.items()):
            if question.parent == broker:
                del self._questions[key]
            elif broker in question.missing:
                question.missing.discard(broker)
                self._finish(key)

    def _begin(self, ask: Ask, parent: str | None, then: Callable[[Told], None] | None = None) -> None:
        self._latest[ask.asker] = max(ask.number, self._latest.get(ask.asker, -1))
        others = [name for name in self._neighbours() if name != parent]
        self._questions[ask.asker, ask.number] = PendingPoll(parent, set(others), then)
        onward = msgspec.structs.replace(ask, distance=ask.distance + 1) if parent is not None else ask
        for name in others:
            self._send(name, onward)

    def _finish(self, key: tuple[str, int]) -> None:
        question = self._questions[key]
        if question.missing or not question.answered:
            return
        del self._questions[key]
        told = Told(
            *key,
            tuple(question.epochs),
            tuple(question.heads),
            tuple(question.homes),
            tuple(question.introductions),
            tuple(question.ended),
            tuple(question.later),
            tuple(question.believed),
            tuple(question.read),
            tuple(question.met),
        )
        if question.parent is not None:
            self._send(question.parent, told)
        elif question.then is not None:
            question.then(told)

    def _send(self, broker: str, message: Ask | Told) -> None:
        self._desk.effects.append(Send(broker, message))
