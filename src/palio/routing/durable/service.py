"""Durable delivery at one broker, as the router sees it: which part (see `composition`) handles what."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from palio.protocol.durable import control, journals, letters, peers, subscriptions
from palio.protocol.envelope import Envelope
from palio.routing.durable.alarm import ABANDON, DELIVER, FORGET, SYNC, TICK
from palio.routing.durable.composition import DurableParts, Surroundings
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import Recovered
from palio.routing.durable.home.homes import FilterChange
from palio.routing.durable.home.subscription import Durable, HomeState
from palio.routing.durable.leaving import Leaving
from palio.routing.durable.statistics import DurableStatistics, phases_of, statistics_of
from palio.routing.occurrences import Failed, Found, Stored, StoreMessage


class Service:
    """Durable delivery at one broker."""

    def __init__(
        self, broker: str, settings: DurableSettings, recovered: Recovered, around: Surroundings
    ) -> None:
        self.parts = parts = DurableParts(broker, settings, recovered, around)
        self.homes, self.journal, self.topology = parts.homes, parts.journal, parts.topology
        self._recovered: Recovered | None = recovered
        # What the router hands over at once
        self.leaving = Leaving(parts, recovered.facts, around.neighbours, parts.tick)
        self.publish = self.leaving.publish
        self.wave_ended = parts.going_live.wave_ended
        self.link_gained = parts.membership.link_gained
        self.handlers: dict[type, Callable[[str, Any], None]] = {
            subscriptions.Attach: self._attach,
            subscriptions.Change: parts.changes.change,
            subscriptions.Acknowledged: parts.takers.acknowledge,
            subscriptions.Rejected: parts.takers.reject,
            subscriptions.Detach: parts.relocation.detach,
            subscriptions.Finish: parts.lifecycle.finish_for,
            subscriptions.Requeue: parts.dead_letters.requeue,
            subscriptions.Discard: parts.dead_letters.discard,
            journals.Forget: parts.membership.forget,
            journals.Survey: parts.history.survey,
            journals.Replay: parts.history.replay,
            journals.GoOn: parts.history.go_on,
            journals.ListJournals: parts.history.list_journals,
            journals.Hold: parts.holding.hold,
            journals.TrimJournal: parts.holding.trim,
            control.Pause: parts.steering.pause,
            control.Resume: parts.steering.resume,
            control.Seek: parts.steering.seek,
        }
        self.store_handlers: dict[type, Callable[[Any], None]] = {
            Stored: parts.appending.stored,
            Failed: parts.appending.failed,
            Found: lambda message: parts.desk.completed(message.token, message),
        }
        self.link_handlers: dict[type, Callable[[str, Any], None]] = {
            peers.TopologyChanged: parts.membership.hear,
            peers.Marks: parts.telling.hear,
            peers.Ask: lambda source, ask: parts.membership.when_counting(
                source, partial(parts.answering.hear, source, ask)
            ),
            peers.Told: lambda source, message: parts.polling.told(message, source),
            letters.Carry: lambda source, message: parts.letters.deliver(message),
        }
        parts.handlers |= {
            letters.Fetch: parts.serving.fetch,
            letters.Page: parts.reading.fetched,
            letters.Count: parts.serving.count,
            letters.Counted: parts.history.counted,
            letters.Browse: parts.serving.browse,
            letters.Browsed: parts.history.browsed,
            letters.ReaderEnded: parts.retention.hear_end,
            letters.MoveOut: parts.relocation.asked_for,
            letters.MoveIn: self._come,
            letters.MovedIn: parts.relocation.gone,
            letters.Differs: parts.relocation.differs,
            letters.NotHere: parts.relocation.not_here,
            letters.Arrived: parts.relocation.arrived,
            letters.Noted: parts.relocation.noted,
            letters.Newer: parts.namesakes.newer,
        }
        self._timers: dict[str, Callable[[], None]] = {
            SYNC: parts.going_live.settled,
            TICK: self._tick,
            ABANDON: parts.lifecycle.abandon,
            FORGET: parts.absence.on_timer,
        }

    @property
    def epoch(self) -> int:
        return self.topology.epoch

    def begin(self, effects: list[Any], now: float) -> None:
        """Begin to handle a message; its effects are put there."""
        desk = self.parts.desk
        desk.effects, desk.now = effects, now
        if self._recovered is not None:
            recovered, self._recovered = self._recovered, None
            self.parts.lifecycle.recover(recovered)
            self.parts.retention.drop_stale()
            self.parts.absence.epoch_changed()
            if any(durable.state is HomeState.MOVING for durable in self.homes.subscriptions.values()):
                self.parts.tick.set()
            if self.leaving.is_under_way:
                self.parts.tick.set()

    def settle(self) -> None:
        """Handles together what has come since: events on disk, and what they bring to subscriptions."""
        self.parts.appending.settle()
        self.parts.spooling.settle()

    def only_delivers(self, message: StoreMessage) -> bool:
        """Whether it completes what was published here, or was written of deliveries: no more follows from it
        than further deliveries.
        """
        if type(message) is not Stored:
            return False
        return self.journal.is_appending(message.token) or self.parts.desk.is_of_deliveries(message.token)

    def take(self, holder: Durable | FilterChange, envelope: Envelope) -> None:
        """Takes an event that the filter of a durable subscription selects."""
        if envelope.epoch == self.topology.epoch:
            self.parts.spooling.take(holder, envelope)

    def _attach(self, session: str, attach: subscriptions.Attach) -> None:
        self.leaving.require_none()
        self.parts.relocation.attach(session, attach)

    def _come(self, sender: str, letter: letters.MoveIn) -> None:
        if self.leaving.stage != "left":
            self.leaving.came_back(sender, letter.identity)
            self.parts.relocation.come(sender, letter)

    def link_lost(self, neighbour: str) -> None:
        self.parts.polling.link_lost(neighbour)
        self.parts.membership.link_lost(neighbour)

    def origin_changed(self) -> None:
        """Handles a new advertisement of a publisher here: filters that have not come here will come now.

        Until they have, what it publishes does not reach everyone by itself; so that counts as a change of the
        network, after which all homes ask again.
        """
        self.parts.membership.change()

    def scope_changed(self, owner: str) -> None:
        self.parts.history.scope_changed(owner)
        self.parts.going_live.scope_changed(owner)

    def session_closed(self, session: str) -> None:
        """Handles the end of a session; its subscriptions stay."""
        parts = self.parts
        for part in (parts.appending, parts.history, parts.wishes, parts.takers):
            part.session_closed(session)

    def on_timer(self, name: str) -> None:
        if name.startswith(DELIVER):
            self.parts.takers.on_timer(name.removeprefix(DELIVER))
        elif name in self._timers:
            self._timers[name]()

    def _tick(self) -> None:
        """Housekeeping: sends progress, and retries what was not answered, as long as it is waited for."""
        parts = self.parts
        parts.tick.rang()
        if parts.letters.ways_missing:
            parts.letters.ways_missing = False
            parts.answering.answer(parts.polling.ask())  # whoever answers shows the way to it
        parts.letters.again()
        if parts.telling.tell():
            parts.letters.ways_missing = True
        waiting = parts.spooling.save_positions()
        if parts.desk.settings.keep:
            parts.retention.trim()  # what is old enough, also if there is no reader at all
        parts.going_live.again()
        waiting |= parts.reading.again() | parts.relocation.again() | parts.history.again()
        waiting |= parts.introductions.look() | parts.absence.again() | self.leaving.again()
        waiting |= parts.strangers.again()
        if waiting or parts.going_live.is_under_way:
            parts.tick.set()

    def statistics(self) -> DurableStatistics:
        return statistics_of(self.parts)

    def phases(self) -> dict[str, str]:
        """What the subscriptions here are doing, and those that sessions here wait for."""
        return phases_of(self.parts)
