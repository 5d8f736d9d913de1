"""Durable delivery at one broker: journal, homes and what connects them, as the router sees it.

How a durable subscription comes to be complete, and stays so, is told in `subscription`. Here the steps are
put together: when the network has changed, or a subscription is new, this broker lets a wave go out (everyone
in reach knows our filters then), asks everyone how far the journals are, and if all that happened in one
epoch, its subscriptions are live. If not, it waits a moment and does it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec

from palio.model.filter import Filter
from palio.protocol.durable.attempts import Failures
from palio.protocol.durable.control import Pause, Resume, Seek
from palio.protocol.durable.journals import Forget, GoOn, Hold, ListJournals, Replay, Survey, TrimJournal
from palio.protocol.durable.letters import (
    Browse,
    Browsed,
    Carry,
    Count,
    Counted,
    Differs,
    Fetch,
    MovedIn,
    MoveIn,
    MoveOut,
    Newer,
    NotHere,
    Page,
    ReaderEnded,
)
from palio.protocol.durable.peers import Ask, Head, Marks, Told, TopologyChanged
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Change,
    Detach,
    Discard,
    Finish,
    Rejected,
    Requeue,
)
from palio.protocol.durable.wishes import require_sound
from palio.protocol.envelope import Envelope
from palio.protocol.requests import Publish, Published, Refused
from palio.routing.durable.desk import ANSWER_WITHIN, Desk, DurableSettings
from palio.routing.durable.effects import Recovered
from palio.routing.durable.facts import FactKind, values_of
from palio.routing.durable.home.lifecycle import Homes
from palio.routing.durable.home.relocation import Moving
from palio.routing.durable.home.spool import Change as HomeChange
from palio.routing.durable.home.steering import Steering
from palio.routing.durable.home.subscription import Durable, State
from palio.routing.durable.network.history import History
from palio.routing.durable.network.membership import Members
from palio.routing.durable.network.polling import Queries
from palio.routing.durable.network.progress import Telling
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.network.unicast import Letters
from palio.routing.durable.origin.holding import Holding
from palio.routing.durable.origin.introductions import Introductions
from palio.routing.durable.origin.journal import Journal
from palio.routing.durable.origin.retention import Readers
from palio.routing.durable.origin.serving import Origin
from palio.routing.effects import Send, SetTimer
from palio.routing.occurrences import Failed, Found, Stored
from palio.routing.scopes import Scopes, not_seen
from palio.routing.tables import Side


class WaveEnded(msgspec.Struct, frozen=True):
    """Not for the shell: everyone in reach knows what this broker had told when the wave began."""

    number: int


class DeadLetter(msgspec.Struct, frozen=True):
    """What its taker could not deal with, after the last attempt."""

    name: str
    delivery: int
    attempts: int
    envelope: Envelope
    failures: Failures = ()


class Surroundings(Protocol):
    """What durable delivery needs of the router around it."""

    @property
    def incarnation(self) -> int:
        """How often the broker has begun anew."""

    @property
    def filters(self) -> Side[Filter]:
        """The table of filters."""

    @property
    def scopes(self) -> Scopes:
        """What owners may see."""

    def neighbours(self) -> Mapping[str, Any]:
        """The brokers to which there is a link in use."""

    def mark_ways(self, entry: str, source: str | None) -> list[tuple[str, str]]:
        """Where a mark goes on, and under which entry: the ways that the events before it could take."""

    def begin_wave(self, ended: WaveEnded) -> None:
        """Give this back once everyone in reach knows all that this broker has told."""

    def send_on(self, envelopes: tuple[Envelope, ...]) -> None:
        """Let what is on disk start its way."""


class Service:
    """Durable delivery at one broker."""

    def __init__(
        self,
        broker: str,
        settings: DurableSettings,
        recovered: Recovered,
        surroundings: Surroundings,
    ) -> None:
        incarnation = surroundings.incarnation
        self._desk = Desk(broker, settings, surroundings.incarnation, surroundings.scopes)
        self._begin_wave = surroundings.begin_wave
        self._send_on = surroundings.send_on
        self.journal = Journal(
            broker,
            recovered,
            retention=settings.retention,
            remembered=settings.remembered,
            keep=settings.keep,
        )
        self._readers = Readers(self._desk, self.journal, self._may_trim)
        holding = Holding(self._desk, self.journal, self._readers, self._missing)
        self._members = Members(
            self._desk,
            incarnation,
            recovered.facts,
            neighbours=surroundings.neighbours,
            save=self._readers.save,
            when_saved=self._readers.when_saved,
            forgetting=self._forgetting,
            gone=self._gone,
            changed=self._epoch_changed,
        )
        self._known = self._members.known
        self.link_gained = self._members.link_gained
        self._queries = Queries(
            broker,
            self._members.links,
            send=self._send,
            ended=self._answered,
            epoch=lambda: self.epoch,
            first=incarnation << 32,
        )
        self._letters = Letters(self._desk, self._queries, self._tick_later)
        self.homes = Homes(
            self._desk,
            surroundings.filters,
            wake=self._wake,
            fetch=self._write_fetch,
            ended=self._letters.reader_ended,
            tick=self._tick_later,
        )
        self.homes.register_here = self._readers.register_here
        self._moving = Moving(
            self._desk,
            self.homes,
            ask=self._queries.ask,
            answer=self._answer,
            write=self._letters.write,
        )
        origin = Origin(self._desk, self.journal, self._letters.write)
        self._history = history = History(
            self._desk,
            ask=self._queries.ask,
            answer=self._answer,
            write=self._letters.write,
            first=incarnation << 32,
        )
        self._introductions = Introductions(
            self._desk,
            self.journal,
            self.homes,
            known=self._known,
            introduced=set(values_of(FactKind.INTRODUCED, recovered.facts)),
            ask=self._ask_about,
            register=self._readers.register,
            end=self._readers.end,
        )
        self._telling = Telling(
            self._desk,
            self.journal,
            self._readers,
            self.homes,
            ways=surroundings.mark_ways,
            way_to=self._queries.way_to,
            tick=self._tick_later,
        )
        steering = Steering(self._desk, self.homes, self._wake)
        self._wave = 0
        self._syncing: tuple[int, int, tuple[str, ...]] | None = None  # epoch, question, names
        self._syncing_until = 0.0
        self._sync_due = False
        self._ticking = False
        self._recovered: Recovered | None = recovered
        self.handlers: dict[type, Callable[[str, Any], None]] = {
            Attach: self._on_attach,
            Change: lambda session, message: self.homes.change(
                session, message.name, message.filter, message.number
            ),
            Acknowledged: self.homes.acknowledge,
            Rejected: self.homes.reject,
            Detach: self._on_detach,
            Finish: self.homes.finish_for,
            Requeue: self.homes.requeue,
            Discard: self.homes.discard,
            Forget: self._members.forget,
            Survey: self._and_tick(history.survey),
            Replay: self._and_tick(history.replay),
            GoOn: self._and_tick(history.go_on),
            ListJournals: self._and_tick(history.list_journals),
            Hold: holding.hold,
            TrimJournal: holding.trim,
            Pause: steering.pause,
            Resume: steering.resume,
            Seek: steering.seek,
        }
        self.store_handlers: dict[type, Callable[[Any], None]] = {
            Stored: self._on_stored,
            Failed: self._on_failed,
            Found: lambda message: self._desk.completed(message.token, message),
        }
        self.link_handlers: dict[type, Callable[[str, Any], None]] = {
            TopologyChanged: self._members.hear,
            Marks: lambda source, message: self._telling.hear(source, message, self.epoch),
            Ask: lambda source, ask: self._members.when_counting(source, partial(self._on_ask, source, ask)),
            Told: lambda source, message: self._queries.told(message, source),
            Carry: lambda source, message: self._letters.deliver(message),
        }
        self._letters.handlers = {
            Fetch: origin.fetch,
            Page: self._on_page,
            Count: origin.count,
            Counted: history.counted,
            Browse: origin.browse,
            Browsed: history.browsed,
            ReaderEnded: self._on_reader_ended,
            MoveOut: self._moving.asked_for,
            MoveIn: self._moving.come,
            MovedIn: self._moving.gone,
            Differs: self._moving.differs,
            NotHere: self._moving.not_here,
            Newer: self._moving.newer,
        }

    def begin(self, effects: list[Any], now: float) -> None:
        """A message is about to be handled; effects are put there."""
        self._desk.effects = effects
        self._desk.now = now
        if self._recovered is not None:
            recovered, self._recovered = self._recovered, None
            self.homes.recover(recovered)
            self._readers.drop_stale()
            if any(durable.state is State.MOVING for durable in self.homes.subscriptions.values()):
                self._tick_later()

    def describe(self) -> Iterator[dict[str, Any]]:
        """Every durable subscription that has its home here, as plain data."""
        for name, durable in sorted(self.homes.subscriptions.items()):
            oldest = min((one.envelope.time for one in durable.outbox.deliveries.values()), default=None)
            yield {
                "durable": name,
                "state": durable.state.value,
                "paused": durable.paused,
                "linger": durable.linger,
                "filter": str(durable.filter),
                "session": durable.taker,
                "pending": len(durable.outbox) + durable.spooling,
                "oldest": oldest,
                "delivered": durable.outbox.done,
                "dead_letters": len(durable.dead),
                "position": dict(durable.position),
            }

    @property
    def epoch(self) -> int:
        return self._members.topology.epoch

    @property
    def topology(self) -> Topology:
        return self._members.topology

    # Publishing

    def publish(self, session: str, message: Publish) -> None:
        """Journal notifications; they are confirmed and sent on when they are on disk."""
        append = self.journal.publish(
            session,
            message.number,
            message.notifications,
            self._desk.now,
            self._desk.token(),
            publisher=message.publisher or session,
        )
        if append is not None:
            self._desk.effects.append(append)
        self._confirm()

    def _on_stored(self, message: Stored) -> None:
        if self.journal.is_appending(message.token):
            envelopes = self.journal.appended(message.token)
            self._confirm()
            self._send_on(envelopes)
            if self.journal.readers or self._desk.settings.keep:
                self._tick_later()
        self._desk.completed(message.token)

    def _on_failed(self, message: Failed) -> None:
        if self.journal.is_appending(message.token):
            for request in self.journal.failed(message.token):
                self._desk.answer(
                    request.session,
                    Refused(f"publish {request.number}", "NotStored", message.reason, number=request.number),
                )
            self._confirm()
        self._desk.failed(message.token, message.reason)

    def _confirm(self) -> None:
        for request in self.journal.confirmed():
            if request.number:
                self._desk.answer(
                    request.session,
                    Published(request.number, self._desk.broker, request.first, request.sequences),
                )

    # Events and marks on their way

    def take(self, holder: Durable | HomeChange, envelope: Envelope) -> None:
        """A filter of a durable subscription selects what came."""
        if envelope.epoch == self.epoch:
            self.homes.take(holder, envelope)

    # The network changes

    def link_lost(self, neighbour: str) -> None:
        """A link of this broker went down."""
        self._queries.link_lost(neighbour)
        self._members.link_lost(neighbour)

    def origin_changed(self) -> None:
        """A publisher here advertises something new: filters that have not come here will come now.

        Until they have, what it publishes does not reach everyone by itself; so that counts as a change of the
        network, after which all homes ask again.
        """
        self._members.change()

    def _forgetting(self, broker: str) -> None:
        self._introductions.forget(broker)

    def _gone(self, broker: str) -> None:
        """Nothing is kept for the subscriptions of a broker that is gone for good."""
        for reader in self.journal.at_home(broker):
            self._readers.end(reader)
        self._readers.trim()

    def _epoch_changed(self) -> None:
        self._telling.epoch_changed()
        self._letters.epoch_changed()
        self._queries.forget_ways()
        self.homes.interrupt()
        if self.homes.subscriptions:
            self._wake()

    # Becoming live

    def _wake(self) -> None:
        """Bring subscriptions up to date, in a moment: there may be more to come."""
        if not self._sync_due:
            self._sync_due = True
            self._desk.effects.append(
                SetTimer("durable sync", self._desk.now + self._desk.settings.settle_within)
            )

    def _sync(self) -> None:
        names = tuple([durable.name for durable in self.homes.behind()])
        if not names:
            return
        self._wave += 1
        self._syncing = self.epoch, 0, names
        self.homes.begin_asking(names)
        self._syncing_until = self._desk.now + ANSWER_WITHIN * self._desk.settings.tick
        self._tick_later()
        self._begin_wave(WaveEnded(self._wave))

    def wave_ended(self, ended: WaveEnded) -> None:
        """Everyone in reach knows the filters of the subscriptions here."""
        if self._syncing is None or ended.number != self._wave:
            return
        epoch, _, names = self._syncing
        if epoch != self.epoch:
            self._wake()
            return
        self.homes.collect(names)
        ask = self._queries.ask(readers=self.homes.readers(names))
        self._syncing = epoch, ask.number, names
        self._answer(ask)

    def _answered(self, told: Told) -> None:
        """Everyone in reach has answered a question of ours."""
        self._introductions.answered(told)
        if told.introductions or told.ended:
            self._readers.trim()
        if self._moving.told(told, self._known) or self._history.told(told, self._known):
            self._tick_later()
            return
        if self._syncing is None or told.number != self._syncing[1]:
            return
        epoch, _, names = self._syncing
        self._syncing = None
        if set(told.epochs) == {epoch} and epoch == self.epoch:
            everyone = self._known <= {head.origin for head in told.heads}
            self.homes.complete(names, epoch, told.heads, everyone=everyone)
            self._tick_later()
        else:
            self._wake()

    # Questions

    def _on_ask(self, source: str, ask: Ask) -> None:
        if self._queries.hear(ask, source):
            self._answer(ask)

    def _answer(self, ask: Ask) -> None:
        """Answer, when all readers that it names are on disk."""
        for reader, name in ask.readers:
            self._moving.hear_of(name, reader, ask.asker)
            self._readers.register(reader, ask.asker)
            if self._introductions.is_due(self.epoch):
                self._tick_later()
        # Who asks for something that lasts (a reader, an introduction, a name) is answered when it is known
        # here for ever: whoever has forgotten it by a crash would take the name for free.
        lasts = ask.readers or ask.introduce or ask.about is not None
        wanted = [FactKind.KNOWN.of(ask.asker)] if lasts else []
        wanted += [FactKind.READER.of(reader, ask.asker) for reader, _ in ask.readers]
        self._readers.when_saved(wanted, partial(self._give_answer, ask))

    def _ask_about(self, introduce: tuple[str, ...], doubted: tuple[str, ...]) -> int:
        ask = self._queries.ask(introduce=introduce, doubted=doubted)
        self._answer(ask)
        return ask.number

    def _give_answer(self, ask: Ask) -> None:
        journal = self.journal
        head = Head(self._desk.broker, journal.stored, journal.trimmed, archived=journal.is_archived)
        homes = self._moving.home_of(ask.about, ask.asker) if ask.about is not None else ()
        self._queries.answer(
            Told(
                ask.asker,
                ask.number,
                (self.epoch,),
                (head,),
                homes,
                self._introductions.given(ask),
                self._introductions.ended(ask),
            )
        )

    # Reading and trimming

    def _write_fetch(self, origin: str, fetch: Fetch) -> None:
        self._letters.write(origin, fetch)
        self._tick_later()

    def _on_page(self, sender: str, page: Page) -> None:
        (self.homes.fetched if page.problem is None else self.homes.not_fetched)(sender, page)

    def _on_reader_ended(self, sender: str, letter: ReaderEnded) -> None:
        self._readers.end(letter.reader)
        self._readers.trim()

    def _may_trim(self) -> bool:
        """Not before everyone has been introduced; who is missing is asked."""
        return not self._missing()

    def _missing(self) -> tuple[str, ...]:
        if self._introductions.is_due(self.epoch):
            self._tick_later()
        return tuple(sorted(self._introductions.missing))

    # Time

    def _tick_later(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._desk.effects.append(SetTimer("durable tick", self._desk.now + self._desk.settings.tick))

    def on_timer(self, name: str) -> None:
        """A timer of durable delivery."""
        kind, _, rest = name.partition(" ")
        if kind == "deliver":
            self.homes.on_timer(rest)
        elif rest == "abandon":
            self.homes.abandon()
        elif rest == "sync":
            self._sync_due = False
            self._sync()
        elif rest == "tick":
            self._ticking = False
            self._tick()

    def _tick(self) -> None:
        if self._letters.ways_missing:
            self._letters.ways_missing = False
            self._answer(self._queries.ask())  # whoever answers shows the way to it
        self._letters.again()
        if self._telling.tell(self.epoch):
            self._letters.ways_missing = True
        self.homes.save_positions()
        if self._desk.settings.keep:
            self._readers.trim()  # what is old enough, also if there is no reader at all
        if self._syncing is not None and self._syncing_until <= self._desk.now:
            self._syncing = None  # an answer was lost
            self._wake()
        waiting = self.homes.fetch_again() | self._moving.again() | self._history.again()
        waiting |= self._introductions.look(self.epoch)
        if waiting or self._syncing is not None:
            self._tick_later()

    def scope_changed(self, owner: str) -> None:
        """An owner may see something else from now on."""
        self._history.scope_changed(owner)
        if self.homes.scope_changed(owner):
            self._wave += 1  # the one that is under way has told of what was wanted before
            self._syncing = None
            self._wake()

    def settle(self) -> None:
        """A message has been handled."""
        self.homes.settle()

    def session_closed(self, session: str) -> None:
        """A session is gone; its subscriptions stay."""
        self._history.session_closed(session)
        self._moving.session_closed(session)
        for durable in self.homes.subscriptions.values():
            if durable.taker == session:
                self.homes.detach(durable)

    def dead_letters(self, name: str | None = None) -> list[DeadLetter]:
        """The dead letters of one subscription here, or of all, in the order of their numbers."""
        return [
            DeadLetter(durable.name, number, attempts, envelope, durable.dead.failures_of(number))
            for durable in self.homes.subscriptions.values()
            if name is None or durable.name == name
            for number, attempts, envelope in durable.dead
        ]

    def _and_tick(self, handler: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
        """Whoever handles this is to be reminded of what is not answered."""

        def handle(session: str, message: Any) -> None:
            handler(session, message)
            self._tick_later()

        return handle

    def _on_attach(self, session: str, message: Attach) -> None:
        require_sound(message)
        if message.filter is not None:
            message.filter.require_satisfiable()
            if not self._desk.scopes.narrow(message.name, message.filter).conjunctions:
                raise not_seen(message.name, "subscribe to this")
        self._moving.attach(session, message)
        if self._moving.wishes:
            self._tick_later()

    def _on_detach(self, session: str, message: Detach) -> None:
        if not self._moving.withdraw(session, message.name):
            self.homes.detach(self.homes.of(session, message.name))

    def _send(self, broker: str, message: Any) -> None:
        self._desk.effects.append(Send(broker, message))
