"""A store with somebody who waits for its answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Append, Recovered, StoreEffect
from palio.routing.occurrences import StoreMessage
from palio.store import SqlStore, Store, StoreError
from palio.store.memory import MemoryPlace, MemoryStore

KINDS_OF_RECORDS = ["document", "chan\0nel"]
PATIENCE = 30.0  # seconds after which a test gives up


Place = str | MemoryPlace  # where a store is: a URL, or one in memory


class Driven:
    """Opens a store and collects what it says."""

    def __init__(self, place: Place, broker: str = "b", **options: Any) -> None:
        self.answers: list[StoreMessage] = []
        self.errors: list[StoreError] = []
        self._changed = threading.Condition()
        self.waiting: list[tuple[int, int]] = []  # whenever there was an answer: bytes and effects that wait
        self.store: Store = self._open(place, broker, options)
        self.recovered: Recovered
        self.recovered, self.incarnation = self.store.recovered()
        self._token = 0

    def _open(self, place: Place, broker: str, options: dict[str, Any]) -> Store:
        if isinstance(place, str):
            options |= {"broken": self._broken}
            return SqlStore.open(place, broker=broker, completed=self._completed, **options)
        soon = ThreadPoolExecutor(1).submit  # ends with this, when nobody has it any more
        options.pop("sync", None)
        return MemoryStore.open(place, broker=broker, completed=self._completed, soon=soon, **options)

    def _completed(self, answers: list[StoreMessage]) -> None:
        with self._changed:
            self.waiting.append((self.store.queued_bytes, self.store.statistics().queued))
            self.answers += answers
            self._changed.notify_all()

    def _broken(self, error: StoreError) -> None:
        with self._changed:
            self.errors.append(error)
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Most conditions change with an answer; what does not is looked at now and then."""
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while not condition():
                assert time.monotonic() < deadline, (self.answers[-10:], self.store.statistics())
                self._changed.wait(0.02)

    def wait_for_answers(self, count: int) -> list[StoreMessage]:
        self.wait_for(lambda: len(self.answers) >= count)
        return self.answers

    def do(self, *effects: StoreEffect) -> list[StoreMessage]:
        """Submit, and wait for the answers. Trims have none."""
        expected = len(self.answers) + sum(hasattr(effect, "token") for effect in effects)
        before = len(self.answers)
        self.store.submit(effects)
        return self.wait_for_answers(expected)[before:]

    def all_records(self) -> dict[tuple[str, str], bytes | None]:
        """All keyed records of the kinds that are drawn."""
        return {(one.kind, one.key): one.value for kind in KINDS_OF_RECORDS for one in self.store.records(kind)}

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()


def envelope(sequence: int, broker: str = "b", at: float | None = None, **properties: Any) -> Envelope:
    """Something that is published at a broker."""
    attributes = properties.pop("attributes", {"x": sequence, "s": "text"})
    when = 1_000.0 + sequence if at is None else at
    return Envelope(broker, sequence, when, 0, broker, Notification(attributes, **properties))


def append(token: int, first: int, last: int | None = None, **options: Any) -> Append:
    """Appends everything from one sequence up to another."""
    last = first if last is None else last
    return Append(token, tuple(envelope(number, **options) for number in range(first, last + 1)), "publisher")
