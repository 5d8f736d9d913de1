"""Takers: the consumers of durable subscriptions, who get deliveries and acknowledge or reject them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from msgspec.structs import astuple

from palio.model.errors import FilterDiffers, HistoryUnavailable
from palio.protocol.durable import subscriptions
from palio.protocol.durable.attempts import Failure, FailuresOf, Kind
from palio.protocol.durable.letters import Page
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.durable.wishes import require_delay
from palio.protocol.requests import Refused
from palio.routing.durable.alarm import ABANDON
from palio.routing.durable.desk import ANSWER_WITHIN, Desk
from palio.routing.durable.home.handing import HandingOut
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.subscription import Durable, HomeState
from palio.routing.durable.home.writing import Writing
from palio.routing.effects import SetTimer


class Takers:
    """The takers (consumers) of the subscriptions here, and how long each has had none."""

    def __init__(self, desk: Desk, homes: Homes, writing: Writing, handing: HandingOut) -> None:
        self._desk = desk
        self._homes = homes
        self._writing = writing
        self._handing = handing
        self._abandon_at = inf  # when those without a taker are looked at

    # Coming and going

    def give_to(self, durable: Durable, session: str, attach: subscriptions.Attach) -> None:
        """Make a session the taker, as it wishes; unless it expects another filter."""
        present, expected = self._homes.filter_of(durable), attach.expected
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
            self._writing.subscription(durable, self._homes.filter_to_write(durable), None)
        self.treat(durable, attach)
        if durable.state is not HomeState.STORING:
            self.welcome(durable)

    def treat(self, durable: Durable, attach: subscriptions.Attach) -> None:
        """Applies the retry policy and the bound in flight: the subscription's, its taker's or the broker's."""
        durable.asked = attach.number
        patience = attach.patience or self._desk.settings.patience
        durable.outbox.patience = patience if durable.retry is None else durable.retry.applied(patience)
        durable.outbox.in_flight = attach.in_flight or durable.outbox.patience.in_flight

    def welcome(self, durable: Durable, *, created: bool = False) -> None:
        """Tell the taker, if there is one, that it is the taker of what is on disk, and let it have that."""
        if durable.taker is not None:
            attached = subscriptions.Attached(
                durable.name, self._desk.broker, created, durable.filter, durable.paused, number=durable.asked
            )
            self._desk.answer(durable.taker, attached)
            if durable.ready_told:
                self._desk.answer(durable.taker, subscriptions.DurableReady(durable.name))
            self.tell_gaps(durable, durable.gaps)
            self._handing.pump(durable)

    def tell_gaps(self, durable: Durable, gaps: Iterable[JournalGap]) -> None:
        """Tell the taker, if there is one, what may be missing for ever."""
        if durable.taker is not None:
            for gap in gaps:
                self._desk.answer(durable.taker, subscriptions.GapNoticed(durable.name, *astuple(gap)))

    def tell_taken(self, durable: Durable) -> None:
        """Fencing: tell the taker, if there is one, that another one has taken its place."""
        if durable.taker is not None:
            self._desk.answer(durable.taker, subscriptions.Taken(durable.name))
            self.detach(durable)

    def detach(self, durable: Durable) -> None:
        """Detach the taker: the subscription has none any more."""
        durable.outbox.recall(self._failure(durable, "taker left"))
        durable.taker = None
        change = self._homes.changes.get(durable.name)
        if change is not None:
            change.asker = ""  # who comes next may have the same name, and the same number for another request
        self.leave_alone(durable)

    def session_closed(self, session: str) -> None:
        """Detach a session that is gone from all that it takes; the subscriptions stay."""
        for durable in self._homes.subscriptions.values():
            if durable.taker == session:
                self.detach(durable)

    def history_missing(self, durable: Durable, origin: str, page: Page) -> None:
        """Handles that an origin cannot read what comes next. It is asked again, and nothing is passed over.

        After a while the taker is told, and is the taker no more: it may come back at any time.
        """
        catching_up = durable.catching_up.get(origin)
        if catching_up is None or page.after != durable.position[origin]:
            return
        now = self._desk.now
        catching_up.failing_since = min(now, catching_up.failing_since or now)
        patience = ANSWER_WITHIN * self._desk.settings.tick
        if durable.taker is not None and now >= catching_up.failing_since + patience:
            problem = HistoryUnavailable(origin, page.problem or "")
            self._desk.answer(durable.taker, Refused.of(f"attach {durable.name}", problem, durable.asked))
            self.detach(durable)

    # Without a taker

    def leave_alone(self, durable: Durable) -> None:
        """Starts the time for which a subscription may linger without a taker."""
        durable.detached_at = self._desk.now
        self._watch(durable)

    def abandoned(self) -> Iterator[Durable]:
        """The subscriptions without a taker for too long; the timer is set for when the next one is due."""
        self._abandon_at = inf
        for durable in list(self._homes.subscriptions.values()):
            if durable.state is not HomeState.MOVING:
                if self._abandoned_at(durable) <= self._desk.now:
                    yield durable
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

    # What becomes of deliveries

    def acknowledge(self, session: str, message: subscriptions.Acknowledged) -> None:
        """Acknowledges deliveries; the client is told when that is on disk (invariant 3)."""
        durable = self._homes.of(session, message.name)
        done = tuple([number for number in message.deliveries if durable.outbox.remove(number) is not None])
        durable.outbox.done += len(done)
        answer = subscriptions.Done(durable.name, message.deliveries, number=message.number)
        self._writing.deliveries(durable, remove=done, then=lambda: self._desk.answer(session, answer))
        self._handing.pump(durable)  # what goes out next is on disk already, and need not wait for this to be

    def reject(self, session: str, message: subscriptions.Rejected) -> None:
        """Rejects deliveries: they are redelivered, or become dead letters. Raises `WrongAttachment`."""
        durable = self._homes.of(session, message.name)
        require_delay(message.delay)
        known = [number for number in message.deliveries if number in durable.outbox.deliveries]
        failure = self._failure(durable, "rejected", message.reason)
        self._back(durable, known, failure, message.delay, last=message.dead_letter)

    def on_timer(self, name: str) -> None:
        """Handles a timer: an acknowledgement is overdue, or the pause before a retry has ended."""
        durable = self._homes.subscriptions.get(name)
        if durable is not None:
            durable.timer = None
            if not durable.paused:
                self.go_on(durable)

    def go_on(self, durable: Durable) -> None:
        """Redelivers what is overdue, and delivers what may go out."""
        overdue = durable.outbox.overdue(self._desk.now)
        self._back(durable, overdue, self._failure(durable, "not acknowledged in time"))

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
        several = durable.siblings.count
        most = min(settings.dead_letters, max(1, settings.outboxes // several))
        most_bytes = min(settings.dead_letters_bytes, settings.outboxes_bytes // several)
        letters = []
        for number in numbers:
            room = len(dead) < most and dead.bytes < most_bytes
            if durable.outbox.back(number, failure, may_give_up=room, delay=delay, last=last):
                continue
            delivery = durable.outbox.remove(number)
            assert delivery is not None
            letters.append((number, delivery.attempts, delivery.envelope))
            dead.add(*letters[-1], delivery.failures)
        if letters:
            gone = tuple([number for number, *_ in letters])
            failures = tuple([(number, dead.failures_of(number)) for number in gone])
            self._writing.deliveries(durable, remove=gone, dead=tuple(letters), failures=failures)
        self._handing.pump(durable)


def failures_of(durable: Durable) -> FailuresOf:
    """Why attempts have failed, of all that waits and of all that is dead."""
    waiting = [(one.number, one.failures) for one in durable.outbox.deliveries.values() if one.failures]
    return (*waiting, *durable.dead.failures)
