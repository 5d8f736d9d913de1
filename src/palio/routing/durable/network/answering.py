"""Answers to polls: what this broker says to a question to everyone, its own included.

It says how far its journal is, where a subscription lives that somebody looks for, which readers have their
home here (see `introductions`), and which have ended. Who asks for something that lasts (a reader, an
introduction, a name) is answered when it is known here for ever: else a crash would make the name free. So is
who asks for `strangers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from palio.protocol.durable.peers import Ask, Head, Introduction, Told
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.facts import FactKind
from palio.routing.durable.home.endings import Endings
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.namesakes import Namesakes
from palio.routing.durable.home.subscription import HomeState
from palio.routing.durable.home.wishes import Wishes
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.origin.introduced import Introduced
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.durable.origin.retention import Retention

# Readers that are believed to be at a broker that leaves, in an answer; it asks again.
MOST_BELIEVED = 1_000


@dataclass(eq=False, repr=False)
class Answering:
    """The answers of this broker. `tick` is set when a reader was heard of, and somebody is not introduced.

    `settling` is set when subscriptions here are to ask everybody once more.
    """

    _desk: Desk
    _journal: OriginJournal
    _topology: Topology
    _polling: Polling
    _retention: Retention
    _introduced: Introduced
    _homes: Homes
    _endings: Endings
    _namesakes: Namesakes
    _wishes: Wishes
    _settling: Alarm
    _tick: Alarm

    def hear(self, source: str, ask: Ask) -> None:
        if self._polling.hear(ask, source):
            self.answer(ask)

    def answer(self, ask: Ask) -> None:
        """Answer, when all readers that it names are on disk."""
        for origin, sequence, incarnation in ask.places:
            if origin == self._desk.broker:
                self._retention.compare(sequence, incarnation)
        generations = dict(zip(ask.readers, ask.generations, strict=False))
        for reader, name in ask.readers:
            self._namesakes.hear_of(name, reader, ask.asker, generations.get((reader, name), 0))
            self._wishes.believes_no_more(name, ask.asker)
            self._retention.register(reader, ask.asker)
            if self._introduced.is_due:
                self._tick.set()
        lasts = ask.readers or ask.introduce or ask.about is not None or ask.strangers
        wanted = [FactKind.KNOWN.of(ask.asker)] if lasts else []
        wanted += [FactKind.READER.of(reader, ask.asker) for reader, _ in ask.readers]
        if ask.leaving:
            wanted.append(FactKind.FORGOTTEN.of(ask.asker))
        if ask.leaving and ask.introduce:
            self._register_again(set(ask.doubted))
        self._retention.when_saved(wanted, partial(self._give, ask))

    def _give(self, ask: Ask) -> None:
        journal, broker = self._journal, self._desk.broker
        head = Head(
            broker, journal.stored, journal.trimmed, archived=journal.is_archived, lineage=journal.lineage
        )
        introductions: tuple[Introduction, ...] = ()
        if broker in ask.introduce and ask.asker in self._topology.known:
            introductions = (Introduction(broker, self._endings.whereabouts()),)
        self._polling.answer(
            Told(
                ask.asker,
                ask.number,
                (self._topology.epoch,),
                (head,),
                self._wishes.home_of(ask.about, ask.asker) if ask.about is not None else (),
                introductions,
                tuple([reader for reader in ask.doubted if self._endings.has_ended(reader)]),
                self._namesakes.later_here(ask),
                ((broker, tuple(self._at(ask.asker)[:MOST_BELIEVED])),) if ask.leaving else (),
                self._homes.read(ask.asker, set(ask.doubted)) if ask.leaving else (),
                self._met(ask),
            )
        )

    def _met(self, ask: Ask) -> tuple[str, ...]:
        """The asker's strangers of whom this broker has heard; only if it knows the asker, which is on disk."""
        if not ask.strangers or ask.asker not in self._topology.known:
            return ()
        heard_of = self._topology.heard_of
        return tuple([stranger for stranger in ask.strangers if stranger in heard_of])

    def _register_again(self, readers: set[str]) -> None:
        """Lets those of them that live here ask everybody once more: somebody believes them elsewhere."""
        for durable in self._homes.subscriptions.values():
            if durable.identity in readers and durable.state is HomeState.LIVE:
                durable.interrupt()
                self._settling.set()

    def _at(self, broker: str) -> list[str]:
        """The subscriptions that have their home at a broker, as far as is known here, or go there."""
        return [*self._journal.at_home(broker), *self._endings.going_to(broker)]
