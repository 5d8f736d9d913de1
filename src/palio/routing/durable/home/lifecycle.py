"""The life cycle of durable subscriptions at this home: creating, adopting, ending, recovering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palio.model.filter import Filter
from palio.protocol.durable.letters import MoveIn
from palio.protocol.durable.subscriptions import Attach, Finish
from palio.protocol.requests import Ended
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import Recovered, Remove, Subscribed
from palio.routing.durable.facts import FactKind, values_of
from palio.routing.durable.home.catch_up import FROM_NOW
from palio.routing.durable.home.endings import Endings
from palio.routing.durable.home.filter_change import FilterChanges
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.outbox import DeadLetters, Outbox
from palio.routing.durable.home.spool import Spooling
from palio.routing.durable.home.subscription import GENERATIONS, Durable, HomeState
from palio.routing.durable.home.takers import Takers, failures_of
from palio.routing.durable.home.writing import Writing
from palio.routing.durable.network.unicast import Unicast
from palio.routing.durable.origin.retention import Retention


@dataclass(eq=False, repr=False)
class Lifecycle:
    """Creates, recovers and ends the subscriptions here.

    A new one reads this broker's own journal (`retention`) from its first moment on. `settling` is set when one
    is to be brought up to date, `tick` when one is to be handed over until that is answered.
    """

    _desk: Desk
    _homes: Homes
    _writing: Writing
    _spooling: Spooling
    _changes: FilterChanges
    _takers: Takers
    _endings: Endings
    _retention: Retention
    _letters: Unicast
    _settling: Alarm
    _tick: Alarm

    def recover(self, recovered: Recovered) -> None:
        paused = set(values_of(FactKind.PAUSED, recovered.facts))
        for identity in paused - {stored.identity for stored in recovered.subscriptions}:
            self._desk.save(FactKind.PAUSED.of(identity), None)
        for stored in recovered.subscriptions:
            # Attempts are not written one by one: whatever is on disk may have been delivered before.
            durable = self.restored(stored, delivered=1)
            self._homes.add(durable)
            durable.stored_position = durable.places(stored.position.items())
            durable.written_position = dict(stored.position)
            durable.next_delivery = stored.next_delivery
            durable.paused = stored.identity in paused
            durable.unconfirmed = True
            self._takers.leave_alone(durable)
            if stored.moving_to is None:
                self._stored(durable)
            else:
                durable.moving_to = stored.moving_to
                durable.moving_stored = True
                durable.go("moving")

    def create(self, session: str, attach: Attach, filter: Filter) -> None:
        """Creates a subscription that is nowhere yet."""
        since = {"now": FROM_NOW, "all": 0.0}.get(attach.since, attach.since)  # type: ignore[arg-type]
        identity = self._desk.identity()
        durable = Durable(attach.name, filter, float(since), identity, 1, Outbox(self._desk.settings.patience))
        self._homes.add(durable)
        durable.taker = session
        durable.linger = attach.linger
        durable.retry = attach.retry
        self._takers.treat(durable, attach)
        beginning, lineages = dict(attach.after or {}), dict(attach.lineages or {})
        if since == FROM_NOW:
            # What is published here from now on is meant, whenever the rest of the network knows of it. It is a
            # position in this journal: whoever takes the subscription over may find another one of that name.
            position, lineage = self._retention.register_here(identity)
            if self._desk.broker not in beginning:
                beginning[self._desk.broker], lineages[self._desk.broker] = position, lineage
        durable.position = dict(beginning)
        durable.lineages = {origin: one for origin, one in lineages.items() if origin in beginning}
        durable.unwritten = set(durable.lineages)
        durable.written_position = dict(beginning)
        places = durable.places(beginning.items())

        def stored() -> None:
            if durable.state is HomeState.ENDED:
                return  # it retired meanwhile
            durable.stored_position = places
            self._stored(durable, created=True)

        self._writing.subscription(durable, filter, stored, position=tuple(durable.position.items()))

    def begin_moving(self, durable: Durable, home: str, then: Callable[[], None]) -> None:
        """Hands a subscription over to another home: from now on nothing happens to it here.

        `then` is called once that is on disk. What was asked of the store before is there by then, too, so what
        is handed over is what would be found after a crash.
        """
        self._takers.tell_taken(durable)
        self._changes.give_up(durable)
        durable.go("asked for")
        durable.stop()
        durable.moving_to = home
        if not durable.unconfirmed:
            durable.generation += GENERATIONS - 1  # the next home adds 1; all letters to it say the same

        def stored() -> None:
            if durable.state is HomeState.ENDED:
                return
            durable.moving_stored = True
            self._tick.set()
            then()

        self._writing.subscription(durable, durable.filter, stored, moving_to=home)

    def adopt(self, durable: Durable, then: Callable[[], None]) -> None:
        """Adopts a subscription that was handed over; `then` is called once it is on disk."""
        self._homes.add(durable)
        places = durable.places(durable.position.items())
        durable.unwritten = set(durable.lineages)
        if durable.paused:  # which is there when the subscription is
            self._desk.save(FactKind.PAUSED.of(durable.identity), 1)

        def stored() -> None:
            if durable.state is HomeState.ENDED:
                return
            durable.stored_position = places
            self._stored(durable)
            then()

        self._writing.subscription(
            durable,
            durable.filter,
            stored,
            next_delivery=durable.next_delivery,
            add=tuple([(one.number, one.attempts, one.envelope) for one in durable.outbox.deliveries.values()]),
            dead=tuple(durable.dead),
            failures=failures_of(durable),
            position=tuple(durable.position.items()),
            gaps=durable.gaps or None,
        )

    def finish(self, durable: Durable, event: str = "finished", then: Callable[[], None] | None = None) -> None:
        """Ends a subscription here: for good, or because it is at another home now."""
        self._changes.let_go(durable)
        durable.go(event)
        self._homes.remove(durable)
        durable.catching_up.clear()
        self._spooling.drop(durable)
        self._endings.note(durable, None if event == "finished" else durable.moving_to)
        self._desk.effects.append(Remove(self._desk.token(then), durable.name))
        if durable.paused:
            self._desk.save(FactKind.PAUSED.of(durable.identity), None)
        if event == "finished":
            self._letters.reader_ended(durable)

    def finish_for(self, session: str, message: Finish) -> None:
        """Ends a subscription for good, for its taker. Raises `NotTaker`."""
        answer = Ended((message.name,), number=message.number)
        durable = self._homes.of(session, message.name)
        self.finish(durable, then=lambda: self._desk.answer(session, answer))

    def retire(self, durable: Durable) -> None:
        """Ends one because another of its name was created later, while this one could not be reached."""
        self._takers.tell_taken(durable)
        self.finish(durable)

    def give_way(self, durable: Durable, home: str) -> None:
        """Ends one that a disk has brought back: it had gone on from here, and comes from that home now."""
        self._takers.tell_taken(durable)
        self._changes.give_up(durable)
        durable.go("asked for")
        durable.moving_to = home
        self.finish(durable, "handed over")

    def abandon(self) -> None:
        """Ends subscriptions that have had no taker for longer than they linger."""
        for durable in self._takers.abandoned():
            self.finish(durable)

    def restored(self, kept: Subscribed | MoveIn, *, delivered: int = 0) -> Durable:
        """A subscription as it was on disk, or is handed over; what waits was `delivered` so often more."""
        outbox = Outbox(self._desk.settings.patience)
        failures = dict(kept.failures)
        for number, attempts, envelope in kept.spool:
            outbox.add(number, attempts + delivered, envelope, failures.get(number, ()))
        durable = Durable(kept.name, kept.filter, kept.since, kept.identity, kept.generation, outbox)
        durable.position = dict(kept.position)
        durable.lineages, durable.gaps = dict(kept.lineages), kept.gaps
        durable.dead = DeadLetters(kept.dead, kept.failures)
        durable.linger, durable.retry = kept.linger, kept.retry
        durable.look_for_reread()
        return durable

    def _stored(self, durable: Durable, *, created: bool = False) -> None:
        durable.go("stored")
        self._changes.hold(durable, durable.filter, durable.name)
        self._settling.set()
        self._takers.welcome(durable, created=created)
