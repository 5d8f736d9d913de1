"""The outbox of a durable subscription: deliveries for its taker, acknowledgements, retries and dead letters.

Deliveries go out by priority, and within one in the order in which they came, at most so many at a time. A
delivery that is not acknowledged in time, or rejected, comes again after a pause that doubles each time, or as
long as the taker says; after the last attempt, or if the taker wants it so, it becomes a dead letter. What has
outlived its lifetime is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from palio.protocol.durable.attempts import Failure, Failures, FailuresOf, one_more, weight
from palio.protocol.durable.retry import Patience
from palio.protocol.envelope import Envelope

MOST_DOUBLED = 64  # how often a pause is doubled at the most: by then it is the longest


class OutboxDelivery:
    """A notification for the taker. `due` is when it may go out (again), or must be acknowledged."""

    __slots__ = ("attempts", "due", "envelope", "failures", "number", "out", "size")

    def __init__(self, number: int, attempts: int, envelope: Envelope, failures: Failures = ()) -> None:
        self.number = number
        self.attempts = attempts
        self.envelope = envelope
        self.failures = failures
        self.size = envelope.notification.body.size + weight(failures)
        self.out = False
        self.due = 0.0


class Outbox:
    """Deliveries that are on disk and not acknowledged."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience  # the broker's, or what the taker has asked for
        self.in_flight = patience.in_flight  # how many may be out; the taker may have asked for another number
        self.deliveries: dict[int, OutboxDelivery] = {}
        self.bytes = 0  # of all of them, about
        self._ready: list[tuple[int, int]] = []  # (9 - priority, number): a heap
        self._waiting: list[tuple[float, int]] = []  # (due, number): a heap of pauses and deadlines
        self._out: dict[int, OutboxDelivery] = {}
        self.done = 0  # how many were acknowledged
        self.lapsed: list[int] = []  # found to have outlived their lifetime; for the owner to remove

    def __len__(self) -> int:
        return len(self.deliveries)

    def add(self, number: int, attempts: int, envelope: Envelope, failures: Failures = ()) -> None:
        delivery = self.deliveries[number] = OutboxDelivery(number, attempts, envelope, failures)
        self.bytes += delivery.size
        self._make_ready(delivery)

    def next(self, now: float) -> list[tuple[int, int, Envelope]]:
        """The deliveries that go out now, each with the number of this attempt."""
        self._wake(now)
        going: list[tuple[int, int, Envelope]] = []
        while self._ready and len(self._out) < self.in_flight:
            _, number = heappop(self._ready)
            delivery = self.deliveries.get(number)
            if delivery is None or delivery.out or delivery.due > now:
                continue  # gone, or out, or in a pause, after which it is ready once more
            if has_expired(delivery.envelope, now):
                self.lapsed.append(number)
                continue
            delivery.out = True
            self._out[number] = delivery
            delivery.attempts += 1
            delivery.due = now + self.patience.acknowledge_within
            heappush(self._waiting, (delivery.due, number))
            going.append((number, delivery.attempts, delivery.envelope))
        return going

    def remove(self, number: int) -> OutboxDelivery | None:
        """Remove a delivery that is done with, by acknowledgement or otherwise."""
        self._out.pop(number, None)
        delivery = self.deliveries.pop(number, None)
        if delivery is not None:
            self.bytes -= delivery.size
        return delivery

    def back(
        self, number: int, failure: Failure, *, may_give_up: bool, delay: float | None, last: bool
    ) -> bool:
        """Redelivers what has failed, after a pause or the delay. Returns False after its last attempt.

        What may not be given up comes again and again, after the longest pause.
        """
        delivery = self.deliveries[number]
        delivery.out = False
        self._out.pop(number, None)
        self._note(delivery, failure)
        if may_give_up and (last or delivery.attempts >= self.patience.attempts):
            return False
        doubled = self.patience.first_pause * 2.0 ** min(max(delivery.attempts - 1, 0), MOST_DOUBLED)
        pause = self.patience.longest_pause if last else min(doubled, self.patience.longest_pause)
        delivery.due = failure.time + (pause if delay is None else delay)
        heappush(self._waiting, (delivery.due, number))
        return True

    def _note(self, delivery: OutboxDelivery, failure: Failure) -> None:
        before = weight(delivery.failures)
        delivery.failures = one_more(delivery.failures, failure)
        more = weight(delivery.failures) - before
        delivery.size += more
        self.bytes += more

    def overdue(self, now: float) -> list[int]:
        """The deliveries in flight whose acknowledgement is overdue."""
        return [number for number, delivery in self._out.items() if delivery.due <= now]

    def recall(self, failure: Failure) -> None:
        """Take back what is in flight: the taker is gone, perhaps before it came, so the next one gets it."""
        for delivery in self._out.values():
            self._note(delivery, failure)
            delivery.out = False
            delivery.due = 0.0
            self._make_ready(delivery)
        self._out = {}

    def wake_at(self) -> float | None:
        """When the next retry or acknowledgement timeout is due."""
        while self._waiting and self._stale(*self._waiting[0]):
            heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def _wake(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            due, number = heappop(self._waiting)
            delivery = self.deliveries.get(number)
            if delivery is not None and not delivery.out and delivery.due == due:
                self._make_ready(delivery)

    def _stale(self, due: float, number: int) -> bool:
        delivery = self.deliveries.get(number)
        return delivery is None or delivery.due != due

    def _make_ready(self, delivery: OutboxDelivery) -> None:
        heappush(self._ready, (9 - delivery.envelope.notification.body.priority, delivery.number))


class DeadLetters:
    """Dead letters, given up after the last attempt: by number, how often each was tried, what, and why."""

    def __init__(self, letters: Iterable[tuple[int, int, Envelope]] = (), failures: FailuresOf = ()) -> None:
        self._letters: dict[int, tuple[int, Envelope]] = {}
        self._failures: dict[int, Failures] = {}
        self.bytes = 0  # of all of them, about
        known = dict(failures)
        for number, attempts, envelope in letters:
            self.add(number, attempts, envelope, known.get(number, ()))

    def __len__(self) -> int:
        return len(self._letters)

    def __contains__(self, number: int) -> bool:
        return number in self._letters

    def __iter__(self) -> Iterator[tuple[int, int, Envelope]]:
        """In the order of their numbers: number, attempts, what."""
        return ((number, *self._letters[number]) for number in sorted(self._letters))

    @property
    def failures(self) -> FailuresOf:
        """Why each became a dead letter, by number, where that is known."""
        return tuple(self._failures.items())

    def failures_of(self, number: int) -> Failures:
        """The last attempts of one, and why each has failed."""
        return self._failures.get(number, ())

    def add(self, number: int, attempts: int, envelope: Envelope, failures: Failures = ()) -> None:
        self._letters[number] = attempts, envelope
        if failures:
            self._failures[number] = failures
        self.bytes += envelope.notification.body.size + weight(failures)

    def take(self, number: int) -> Envelope:
        """Take one dead letter out."""
        _, envelope = self._letters.pop(number)
        self.bytes -= envelope.notification.body.size + weight(self._failures.pop(number, ()))
        return envelope


def has_expired(envelope: Envelope, now: float) -> bool:
    """Whether a notification has outlived its lifetime, counted from its publication."""
    lifetime = envelope.notification.body.lifetime
    return lifetime is not None and envelope.time + lifetime.total_seconds() <= now
