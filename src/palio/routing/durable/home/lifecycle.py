"""The durable subscriptions that have their home at this broker: how they begin and end, and their takers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

from palio.model.errors import FilterDiffers, HistoryUnavailable
from palio.model.filter import Filter
from palio.protocol.durable.attempts import Failure, FailuresOf, Kind
from palio.protocol.durable.letters import Page
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Attached,
    Discard,
    Discarded,
    Done,
    DurableReady,
    Finish,
    Rejected,
    Requeue,
    Requeued,
    Taken,
)
from palio.protocol.durable.wishes import NotHome, require_delay
from palio.protocol.requests import Ended, Refused
from palio.routing.durable.desk import ANSWER_WITHIN
from palio.routing.durable.effects import Recovered, Remove, SaveFact, Spool
from palio.routing.durable.facts import Fact, FactKind, values_of
from palio.routing.durable.home.catch_up import FROM_NOW, CatchingUp
from palio.routing.durable.home.subscription import Durable, State
from palio.routing.durable.outbox import DeadLetters
from palio.routing.effects import SetTimer

# The timer for the first subscription that has been without a taker for too long.
ABANDON = "durable abandon"
# The generation of what has ended for good: no other one will follow.
FOR_GOOD = 2**62


def _known(numbers: Iterable[int], durable: Durable) -> list[int]:
    """Those numbers that are dead letters, each once."""
    return [number for number in dict.fromkeys(numbers) if number in durable.dead]


class Homes(CatchingUp):
    """All durable subscriptions here."""

    # Beginning and end

    def recover(self, recovered: Recovered) -> None:
        """Take up what is on disk."""
        for fact, generation in recovered.facts:
            if fact.kind is FactKind.ENDED:
                self._recover_end(fact, generation)
        paused = set(values_of(FactKind.PAUSED, recovered.facts))
        for identity in paused - {stored.identity for stored in recovered.subscriptions}:
            self._desk.effects.append(SaveFact(self._desk.token(), FactKind.PAUSED.of(identity), None))
        for stored in recovered.subscriptions:
            durable = self._new(stored.name, stored.filter, stored.since, stored.identity, stored.generation)
            durable.position = dict(stored.position)
            durable.stored_position = dict(stored.position)
            durable.written_position = dict(stored.position)
            durable.next_delivery = stored.next_delivery
            durable.dead = DeadLetters(stored.dead, stored.failures)
            failures = dict(stored.failures)
            for number, attempts, envelope in stored.spool:
                # Attempts are not written one by one: whatever is on disk may have been delivered before.
                durable.outbox.add(number, attempts + 1, envelope, failures.get(number, ()))
            durable.look_for_reread()
            durable.paused = stored.identity in paused
            durable.linger = stored.linger
            durable.retry = stored.retry
            self.leave_alone(durable)
            if stored.moving_to is None:
                self._stored(durable)
            else:
                durable.moving_to = stored.moving_to
                durable.moving_stored = True
                durable.go("moving")

    def create(self, session: str, attach: Attach, filter: Filter) -> None:
        """A subscription that is nowhere yet."""
        since = {"now": FROM_NOW, "all": 0.0}.get(attach.since, attach.since)  # type: ignore[arg-type]
        identity = self._desk.identity()
        durable = self._new(attach.name, filter, float(since), identity, 1)
        durable.taker = session
        durable.linger = attach.linger
        durable.retry = attach.retry
        self._treat(durable, attach)
        beginning = dict(attach.after or {})
        if since == FROM_NOW:
            # What is published here from now on is meant, whenever the rest of the network knows of it.
            beginning.setdefault(self._desk.broker, self.register_here(identity))
        durable.position = dict(beginning)
        durable.written_position = dict(beginning)

        def stored() -> None:
            if durable.state is State.ENDED:
                return  # it retired meanwhile
            durable.stored_position = dict(beginning)
            self._stored(durable, created=True)

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                filter,
                identity,
                durable.generation,
                durable.since,
                position=tuple(durable.position.items()),
                linger=durable.linger,
                retry=durable.retry,
            )
        )

    def begin_moving(self, durable: Durable, home: str, then: Callable[[], None]) -> None:
        """Hand a subscription over to another home: from now on nothing happens to it here.

        `then` is called once that is on disk. What was asked of the store before is there by then, too, so what
        is handed over is what would be found after a crash.
        """
        self.tell_taken(durable)
        self._end_change(durable)
        durable.go("asked for")
        durable.moving_to = home

        def stored() -> None:
            if durable.state is State.ENDED:
                return
            durable.moving_stored = True
            self._tick()
            then()

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                durable.filter,
                durable.identity,
                durable.generation,
                durable.since,
                moving_to=home,
                linger=durable.linger,
                retry=durable.retry,
            )
        )

    def adopt(self, durable: Durable, then: Callable[[], None]) -> None:
        """A subscription that was handed over; `then` is called once it is on disk."""
        self.subscriptions[durable.name] = durable
        if durable.paused:  # which is there when the subscription is
            self._desk.effects.append(SaveFact(self._desk.token(), FactKind.PAUSED.of(durable.identity), 1))

        def stored() -> None:
            if durable.state is State.ENDED:
                return
            durable.stored_position = dict(durable.position)
            self._stored(durable)
            then()

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                durable.filter,
                durable.identity,
                durable.generation,
                durable.since,
                next_delivery=durable.next_delivery,
                add=tuple(
                    [(one.number, one.attempts, one.envelope) for one in durable.outbox.deliveries.values()]
                ),
                dead=tuple(durable.dead),
                failures=self.failures_of(durable),
                position=tuple(durable.position.items()),
                linger=durable.linger,
                retry=durable.retry,
            )
        )

    def finish(self, durable: Durable, event: str = "finished", then: Callable[[], None] | None = None) -> None:
        """End a subscription here: for good, or because it is at another home now."""
        if durable.entry is not None:
            self._filters.let_go(durable.entry, durable)
        self._end_change(durable)
        durable.go(event)
        del self.subscriptions[durable.name]
        self._fetching.pop(durable.identity, None)
        self._taken.pop(durable, None)
        self._note_end(durable, None if event == "finished" else durable.moving_to)
        self._desk.effects.append(Remove(self._desk.token(then), durable.name))
        if durable.paused:
            self._desk.effects.append(SaveFact(self._desk.token(), FactKind.PAUSED.of(durable.identity), None))
        if event == "finished":
            self._ended(durable)

    def _note_end(self, durable: Durable, next_home: str | None) -> None:
        """No letter that comes late shall bring it back; and journals that are new shall hear of it."""
        identity = durable.identity
        former = self._handed_over.pop(identity, None)
        generation = FOR_GOOD
        if next_home is not None:
            self._handed_over[identity] = next_home
            generation = durable.generation
        self.ended[identity] = generation
        fact = FactKind.ENDED.of(identity, next_home or "")
        self._desk.effects.append(SaveFact(self._desk.token(), fact, generation))
        if former is not None and former != next_home:
            fact = FactKind.ENDED.of(identity, former)
            self._desk.effects.append(SaveFact(self._desk.token(), fact, None))

    def _recover_end(self, fact: Fact, generation: int) -> None:
        if generation > self.ended.get(fact.subject, 0):
            self.ended[fact.subject] = generation
            self._handed_over.pop(fact.subject, None)
            if fact.home:
                self._handed_over[fact.subject] = fact.home

    def has_ended(self, identity: str) -> bool:
        """Whether a subscription has ended here for good, or was created here and never came to be on disk."""
        if identity in self.ended:
            return self.ended[identity] == FOR_GOOD
        here = any(durable.identity == identity for durable in self.subscriptions.values())
        return not here and self._desk.gave_before(identity)

    def introduced(self) -> tuple[tuple[str, str], ...]:
        """What is on disk here, or was handed over: identities, and where they are or go."""
        here = {
            durable.identity: durable.moving_to or self._desk.broker
            for durable in self.subscriptions.values()
            if durable.state is not State.STORING
        }
        return tuple({**self._handed_over, **here}.items())

    def retire(self, durable: Durable) -> None:
        """Another one of that name was created later, while this one could not be reached."""
        self.tell_taken(durable)
        self.finish(durable)

    def _new(self, name: str, filter: Filter, since: float, identity: str, generation: int) -> Durable:
        durable = Durable(
            name,
            filter,
            since=since,
            identity=identity,
            generation=generation,
            patience=self._desk.settings.patience,
        )
        self.subscriptions[name] = durable
        return durable

    def _stored(self, durable: Durable, *, created: bool = False) -> None:
        durable.go("stored")
        self._hold(durable, durable.filter, durable.name)
        self._wake()
        self._welcome(durable, created=created)

    # Takers

    def give_to(self, durable: Durable, session: str, attach: Attach) -> None:
        """Make a session the taker, as it wishes; unless it expects another filter."""
        present, expected = self.filter_of(durable), attach.expected
        if expected is not None and expected != present:
            problem = FilterDiffers(self._desk.called(durable.name), str(present), str(expected))
            self._desk.answer(session, Refused.of(f"attach {durable.name}", problem, attach.number))
            return
        if durable.taker != session:
            self.tell_taken(durable)
        durable.taker = session
        durable.detached_at = None
        former = durable.linger, durable.retry
        if attach.linger is not None:
            durable.linger = attach.linger
        if attach.retry is not None:
            durable.retry = attach.retry
        if (durable.linger, durable.retry) != former:
            self.save_filter(durable)
        self._treat(durable, attach)
        if durable.state is not State.STORING:
            self._welcome(durable)

    def _welcome(self, durable: Durable, *, created: bool = False) -> None:
        """Tell the taker, if there is one, that it is the taker of what is on disk, and let it have that."""
        if durable.taker is not None:
            attached = Attached(
                durable.name,
                self._desk.broker,
                created,
                durable.filter,
                durable.paused,
                number=durable.asked,
            )
            self._desk.answer(durable.taker, attached)
            if durable.ready_told:
                self._desk.answer(durable.taker, DurableReady(durable.name))
            self._pump(durable)

    def _treat(self, durable: Durable, attach: Attach) -> None:
        """Its taker is treated as it wishes, or else as the broker says; and as the subscription wants it."""
        durable.asked = attach.number
        patience = attach.patience or self._desk.settings.patience
        durable.outbox.patience = patience if durable.retry is None else durable.retry.applied(patience)
        durable.outbox.in_flight = attach.in_flight or durable.outbox.patience.in_flight

    def tell_taken(self, durable: Durable) -> None:
        """The taker, if there is one, is the taker no more."""
        if durable.taker is not None:
            self._desk.answer(durable.taker, Taken(durable.name))
            self.detach(durable)

    def detach(self, durable: Durable) -> None:
        """There is no taker any more."""
        durable.outbox.recall(self._failure(durable, "taker left"))
        durable.taker = None
        change = self._changes.get(durable.name)
        if change is not None:
            change.asker = ""  # who comes next may have the same name, and the same number for another request
        self.leave_alone(durable)

    def leave_alone(self, durable: Durable) -> None:
        """From now on it has no taker, and that is watched."""
        durable.detached_at = self._desk.now
        self._watch(durable)

    def not_fetched(self, origin: str, page: Page) -> None:
        """An origin cannot read what comes next. It is asked again, and nothing is passed over.

        After a while the taker is told, and is the taker no more: it may come back at any time.
        """
        durable = self._fetcher(page)
        catching_up = None if durable is None else durable.catching_up.get(origin)
        if durable is None or catching_up is None or page.after != durable.position[origin]:
            return
        now = self._desk.now
        catching_up.failing_since = min(now, catching_up.failing_since or now)
        patience = ANSWER_WITHIN * self._desk.settings.tick
        if durable.taker is not None and now >= catching_up.failing_since + patience:
            problem = HistoryUnavailable(origin, page.problem or "")
            self._desk.answer(durable.taker, Refused.of(f"attach {durable.name}", problem, durable.asked))
            self.detach(durable)

    def acknowledge(self, session: str, message: Acknowledged) -> None:
        """Deliveries are done with; the client is told when that is on disk."""
        durable = self.of(session, message.name)
        done = tuple([number for number in message.deliveries if durable.outbox.remove(number) is not None])
        durable.outbox.done += len(done)
        answer = Done(durable.name, message.deliveries, number=message.number)
        self._write(durable, remove=done, then=lambda: self._desk.answer(session, answer))
        self._pump(durable)  # what goes out next is on disk already, and need not wait for this to be

    def reject(self, session: str, message: Rejected) -> None:
        """Deliveries come again, or become dead letters. Raises `WrongAttachment`."""
        durable = self.of(session, message.name)
        require_delay(message.delay)
        known = [number for number in message.deliveries if number in durable.outbox.deliveries]
        failure = self._failure(durable, "rejected", message.reason)
        self._back(durable, known, failure, message.delay, last=message.dead_letter)

    def _failure(self, durable: Durable, kind: Kind, reason: str = "") -> Failure:
        return Failure(self._desk.now, durable.taker or "", kind, reason)

    def _back(
        self,
        durable: Durable,
        numbers: Iterable[int],
        failure: Failure,
        delay: float | None = None,
        *,
        last: bool = False,
    ) -> None:
        settings, dead = self._desk.settings, durable.dead
        letters = []
        for number in numbers:
            room = len(dead) < settings.dead_letters and dead.bytes < settings.dead_letters_bytes
            if durable.outbox.back(number, failure, may_give_up=room, delay=delay, last=last):
                continue
            delivery = durable.outbox.remove(number)
            assert delivery is not None
            letters.append((number, delivery.attempts, delivery.envelope))
            dead.add(*letters[-1], delivery.failures)
        if letters:
            gone = tuple([number for number, *_ in letters])
            failures = tuple([(number, dead.failures_of(number)) for number in gone])
            self._write(durable, remove=gone, dead=tuple(letters), failures=failures)
        self._pump(durable)

    def failures_of(self, durable: Durable) -> FailuresOf:
        """Why attempts have failed, of all that waits and of all that is dead."""
        waiting = [(one.number, one.failures) for one in durable.outbox.deliveries.values() if one.failures]
        return (*waiting, *durable.dead.failures)

    def on_timer(self, name: str) -> None:
        """A delivery is overdue, or a pause has ended."""
        durable = self.subscriptions.get(name)
        if durable is not None:
            durable.timer = None
            if not durable.paused:
                self.go_on(durable)

    def go_on(self, durable: Durable) -> None:
        """What is overdue comes again, and what may go out does."""
        overdue = durable.outbox.overdue(self._desk.now)
        self._back(durable, overdue, self._failure(durable, "not acknowledged in time"))

    # Dead letters

    def requeue(self, session: str, message: Requeue) -> None:
        """Dead letters are delivered after all. Anybody may ask for that. Raises `NotHome`."""
        durable = self.home_of(message.name)
        letters = [(number, 0, durable.dead.take(number)) for number in _known(message.deliveries, durable)]

        def stored() -> None:
            for letter in letters:
                durable.outbox.add(*letter)
            requeued = tuple([number for number, *_ in letters])
            self._desk.answer(session, Requeued(durable.name, requeued, number=message.number))
            self._pump(durable)

        self._write(durable, add=tuple(letters), then=stored)

    def discard(self, session: str, message: Discard) -> None:
        """Dead letters are forgotten. Anybody may ask for that. Raises `NotHome`."""
        durable = self.home_of(message.name)
        numbers = tuple(_known(message.deliveries, durable))
        for number in numbers:
            durable.dead.take(number)
        answer = Discarded(durable.name, numbers, number=message.number)
        self._write(durable, remove=numbers, then=lambda: self._desk.answer(session, answer))

    def home_of(self, name: str) -> Durable:
        """The subscription of that name, if this is its home. Raises `NotHome`."""
        durable = self.subscriptions.get(name)
        if durable is None or durable.state is State.MOVING:
            raise NotHome(name)
        return durable

    # Time

    def abandon(self) -> None:
        """End what has had no taker for too long, and look again when the next one is due."""
        self._abandon_at = inf
        for durable in list(self.subscriptions.values()):
            if durable.state is not State.MOVING:
                if self._abandoned_at(durable) <= self._desk.now:
                    self.finish(durable)
                else:
                    self._watch(durable)

    def _abandoned_at(self, durable: Durable) -> float:
        if durable.detached_at is None:
            return inf
        linger = durable.linger if durable.linger is not None else self._desk.settings.abandon_after
        return durable.detached_at + linger

    def _watch(self, durable: Durable) -> None:
        """One timer is set for the first that is due; it may have had another taker by then."""
        due = self._abandoned_at(durable)
        if due < self._abandon_at:
            self._abandon_at = due
            self._desk.effects.append(SetTimer(ABANDON, due))

    def finish_for(self, session: str, message: Finish) -> None:
        """The taker ends a subscription for good."""
        ended = Ended((message.name,), number=message.number)
        self.finish(self.of(session, message.name), then=lambda: self._desk.answer(session, ended))
