"""The durable subscriptions that have their home at this broker: how they begin and end, and their takers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from palio.model.filter import Filter
from palio.routing.durable.catching import FROM_NOW, CatchingUp
from palio.routing.durable.desk import NotHome
from palio.routing.durable.effects import Recovered, Remove, SaveCursor, Spool
from palio.routing.durable.messages import (
    Acknowledged,
    Attach,
    Attached,
    Discard,
    Discarded,
    Done,
    DurableReady,
    Rejected,
    Requeue,
    Requeued,
    Taken,
)
from palio.routing.durable.subscription import Durable, State
from palio.routing.effects import SetTimer
from palio.routing.messages import Ended

# Cursors of the store under this prefix are generations that ended here, not readers of the journal.
ENDED = "ended: "


def _known(numbers: Iterable[int], durable: Durable) -> list[int]:
    """Those numbers that are dead letters, each once."""
    return [number for number in dict.fromkeys(numbers) if number in durable.dead]


class Homes(CatchingUp):
    """All durable subscriptions here."""

    # Beginning and end

    def recover(self, recovered: Recovered) -> None:
        """Take up what is on disk."""
        self.ended = {
            name.removeprefix(ENDED): generation
            for name, generation in recovered.readers
            if name.startswith(ENDED)
        }
        for stored in recovered.subscriptions:
            durable = self._new(stored.name, stored.filter, stored.since, stored.identity, stored.generation)
            durable.position = dict(stored.position)
            durable.stored_position = dict(stored.position)
            durable.written_position = dict(stored.position)
            durable.next_delivery = stored.next_delivery
            durable.dead = {number: (attempts, envelope) for number, attempts, envelope in stored.dead}
            for number, attempts, envelope in stored.spool:
                # Attempts are not written one by one: whatever is on disk may have been delivered before.
                durable.outbox.add(number, attempts + 1, envelope)
            durable.linger = stored.linger
            self.leave_alone(durable)
            if stored.moving_to is None:
                self._stored(durable)
            else:
                durable.moving_to = stored.moving_to
                durable.moving_stored = True
                durable.go("moving")

    def create(self, session: str, attach: Attach) -> None:
        """A subscription that is nowhere yet."""
        since = {"now": FROM_NOW, "all": 0.0}.get(attach.since, attach.since)  # type: ignore[arg-type]
        identity = self._desk.identity()
        durable = self._new(attach.name, attach.filter, float(since), identity, 1)
        durable.taker = session
        durable.linger = attach.linger
        durable.outbox.in_flight = attach.in_flight or self._desk.settings.patience.in_flight
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
            self._stored(durable)
            if durable.taker is not None:
                self._desk.answer(durable.taker, Attached(durable.name, self._desk.broker))

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                attach.filter,
                identity,
                durable.generation,
                durable.since,
                position=tuple(durable.position.items()),
                linger=durable.linger,
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
            )
        )

    def adopt(self, durable: Durable, then: Callable[[], None]) -> None:
        """A subscription that was handed over; `then` is called once it is on disk."""
        self.subscriptions[durable.name] = durable

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
                dead=tuple([(number, attempts, what) for number, (attempts, what) in durable.dead.items()]),
                position=tuple(durable.position.items()),
                linger=durable.linger,
            )
        )

    def finish(self, durable: Durable, event: str = "finished", then: Callable[[], None] | None = None) -> None:
        """End a subscription here: for good, or because it is at another home now."""
        if durable.entry is not None:
            self._filters.let_go(durable.entry, durable)
        self._end_change(durable)
        durable.go(event)
        del self.subscriptions[durable.name]
        self._taken.pop(durable, None)
        # No letter that comes late shall bring it back.
        self.ended[durable.identity] = durable.generation
        cursor = SaveCursor(self._desk.token(), ENDED + durable.identity, durable.generation)
        self._desk.effects.append(cursor)
        self._desk.effects.append(Remove(self._desk.token(then), durable.name))
        if event == "finished":
            self._ended(durable)

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

    def _stored(self, durable: Durable) -> None:
        durable.go("stored")
        durable.entry = self._filters.hold(durable.filter, durable)
        self._wake()

    # Takers

    def give_to(self, durable: Durable, session: str, attach: Attach) -> None:
        """Make a session the taker, as it wishes."""
        if durable.taker != session:
            self.tell_taken(durable)
        durable.taker = session
        durable.detached_at = None
        durable.outbox.in_flight = attach.in_flight or self._desk.settings.patience.in_flight
        if attach.linger is not None and attach.linger != durable.linger:
            durable.linger = attach.linger
            self.save_filter(durable)
        if durable.state is not State.STORING:
            self._desk.answer(session, Attached(durable.name, self._desk.broker))
            if durable.ready_told:
                self._desk.answer(session, DurableReady(durable.name))
        self._pump(durable)

    def tell_taken(self, durable: Durable) -> None:
        """The taker, if there is one, is the taker no more."""
        if durable.taker is not None:
            self._desk.answer(durable.taker, Taken(durable.name))
            self.detach(durable)

    def detach(self, durable: Durable) -> None:
        """There is no taker any more."""
        durable.taker = None
        durable.outbox.recall()
        self.leave_alone(durable)

    def leave_alone(self, durable: Durable) -> None:
        """From now on it has no taker; where it does not linger for long, that is watched."""
        durable.detached_at = self._desk.now
        if durable.linger is not None:
            self._desk.effects.append(SetTimer(f"linger {durable.name}", self._desk.now + durable.linger))

    def acknowledge(self, session: str, message: Acknowledged) -> None:
        """Deliveries are done with; the client is told when that is on disk."""
        durable = self.of(session, message.name)
        done = tuple([number for number in message.deliveries if durable.outbox.remove(number) is not None])
        durable.outbox.done += len(done)
        answer = Done(durable.name, message.deliveries)
        self._write(durable, remove=done, then=lambda: self._desk.answer(session, answer))
        self._pump(durable)  # what goes out next is on disk already, and need not wait for this to be

    def reject(self, session: str, message: Rejected) -> None:
        """Deliveries come again, or become dead letters."""
        durable = self.of(session, message.name)
        self._back(durable, [number for number in message.deliveries if number in durable.outbox.deliveries])

    def _back(self, durable: Durable, numbers: Iterable[int]) -> None:
        dead = [number for number in numbers if not durable.outbox.back(number, self._desk.now)]
        letters = []
        for number in dead:
            delivery = durable.outbox.remove(number)
            assert delivery is not None
            letters.append((number, delivery.attempts, delivery.envelope))
            durable.dead[number] = (delivery.attempts, delivery.envelope)
        if letters:
            self._write(durable, remove=tuple(dead), dead=tuple(letters))
        self._pump(durable)

    def on_timer(self, name: str) -> None:
        """A delivery is overdue, or a pause has ended."""
        durable = self.subscriptions.get(name)
        if durable is not None:
            durable.timer = None
            self._back(durable, durable.outbox.overdue(self._desk.now))

    # Dead letters

    def requeue(self, session: str, message: Requeue) -> None:
        """Dead letters are delivered after all. Anybody may ask for that. Raises `NotHome`."""
        durable = self._home_of(message.name)
        letters = [(number, 0, durable.dead.pop(number)[1]) for number in _known(message.deliveries, durable)]

        def stored() -> None:
            for letter in letters:
                durable.outbox.add(*letter)
            self._desk.answer(session, Requeued(durable.name, tuple([number for number, *_ in letters])))
            self._pump(durable)

        self._write(durable, add=tuple(letters), then=stored)

    def discard(self, session: str, message: Discard) -> None:
        """Dead letters are forgotten. Anybody may ask for that. Raises `NotHome`."""
        durable = self._home_of(message.name)
        numbers = tuple(_known(message.deliveries, durable))
        for number in numbers:
            del durable.dead[number]
        answer = Discarded(durable.name, numbers)
        self._write(durable, remove=numbers, then=lambda: self._desk.answer(session, answer))

    def _home_of(self, name: str) -> Durable:
        durable = self.subscriptions.get(name)
        if durable is None or durable.state is State.MOVING:
            raise NotHome(name)
        return durable

    # Time

    def abandon(self) -> None:
        """End what has had no taker for too long."""
        for durable in list(self.subscriptions.values()):
            if durable.detached_at is not None and durable.state is not State.MOVING:
                linger = durable.linger if durable.linger is not None else self._desk.settings.abandon_after
                if durable.detached_at + linger <= self._desk.now:
                    self.finish(durable)

    def lingered(self, name: str) -> None:
        """The time that a subscription outlives its taker may be over; or it has had another one meanwhile."""
        self.abandon()
        durable = self.subscriptions.get(name)
        if durable is not None and durable.detached_at is not None and durable.linger is not None:
            due = durable.detached_at + durable.linger
            if due > self._desk.now:
                self._desk.effects.append(SetTimer(f"linger {name}", due))

    def finish_for(self, session: str, name: str) -> None:
        """The taker ends a subscription for good."""
        self.finish(self.of(session, name), then=lambda: self._desk.answer(session, Ended((name,))))
