"""The outbox of a durable subscription: what is on disk for its taker, in which order, and what became of it.

Deliveries go out by priority, and within one in the order in which they came, at most so many at a time. A
delivery that is not acknowledged in time, or rejected, comes again after a pause that doubles each time; after
the last attempt it becomes a dead letter. What has outlived its lifetime is dropped.
"""

from __future__ import annotations

from heapq import heappop, heappush

import msgspec

from palio.routing.messages import Envelope


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How a taker is treated. Times are in seconds."""

    in_flight: int = 64
    acknowledge_within: float = 30.0
    first_pause: float = 0.5
    longest_pause: float = 60.0
    attempts: int = 5


class Delivery:
    """A notification for the taker. `due` is when it may go out (again), or must be acknowledged."""

    __slots__ = ("attempts", "due", "envelope", "number", "out")

    def __init__(self, number: int, attempts: int, envelope: Envelope) -> None:
        self.number = number
        self.attempts = attempts
        self.envelope = envelope
        self.out = False
        self.due = 0.0


class Outbox:
    """Deliveries that are on disk and not acknowledged."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience  # the broker's, or what the taker has asked for
        self.in_flight = patience.in_flight  # how many may be out; the taker may have asked for another number
        self.deliveries: dict[int, Delivery] = {}
        self._ready: list[tuple[int, int]] = []  # (9 - priority, number): a heap
        self._waiting: list[tuple[float, int]] = []  # (due, number): a heap of pauses and deadlines
        self._out: dict[int, Delivery] = {}
        self.done = 0  # how many were acknowledged
        self.lapsed: list[int] = []  # found to have outlived their lifetime; for the owner to remove

    def __len__(self) -> int:
        return len(self.deliveries)

    def add(self, number: int, attempts: int, envelope: Envelope) -> None:
        delivery = self.deliveries[number] = Delivery(number, attempts, envelope)
        self._make_ready(delivery)

    def next(self, now: float) -> list[tuple[int, int, Envelope]]:
        """The deliveries that go out now, each with the number of this attempt."""
        self._wake(now)
        going: list[tuple[int, int, Envelope]] = []
        while self._ready and len(self._out) < self.in_flight:
            _, number = heappop(self._ready)
            delivery = self.deliveries.get(number)
            if delivery is None or delivery.out:
                continue
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

    def remove(self, number: int) -> Delivery | None:
        """Done with, by acknowledgement or otherwise."""
        self._out.pop(number, None)
        return self.deliveries.pop(number, None)

    def back(self, number: int, now: float) -> bool:
        """Rejected or overdue: it comes again after a pause. Returns False if it had its last attempt."""
        delivery = self.deliveries[number]
        delivery.out = False
        self._out.pop(number, None)
        if delivery.attempts >= self.patience.attempts:
            return False
        pause = min(self.patience.first_pause * 2 ** (delivery.attempts - 1), self.patience.longest_pause)
        delivery.due = now + pause
        heappush(self._waiting, (delivery.due, number))
        return True

    def overdue(self, now: float) -> list[int]:
        """The deliveries that are out and should have been acknowledged by now."""
        return [number for number, delivery in self._out.items() if delivery.due <= now]

    def recall(self) -> None:
        """The taker is gone: what is out was perhaps not received, and goes out again to the next one."""
        for delivery in self._out.values():
            delivery.out = False
            delivery.due = 0.0
            self._make_ready(delivery)
        self._out = {}

    def wake_at(self) -> float | None:
        """When something becomes due next."""
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

    def _make_ready(self, delivery: Delivery) -> None:
        heappush(self._ready, (9 - delivery.envelope.notification.priority, delivery.number))


def has_expired(envelope: Envelope, now: float) -> bool:
    """Whether a notification has outlived its lifetime, counted from its publication."""
    lifetime = envelope.notification.lifetime
    return lifetime is not None and envelope.time + lifetime.total_seconds() <= now
