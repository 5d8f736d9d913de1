"""The write queue: effects that wait to be written, in order, counted, and taken in groups."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Append, Spool, StoreEffect

# The most that one commit takes. A larger group is hardly faster, but the first of it waits for the last.
MAX_GROUP_EFFECTS = 4_096
MAX_GROUP_BYTES = 8 << 20

_EACH = 64  # bytes for an effect, whatever is in it
EACH_COPY = 64  # bytes for a delivery, beside those of what it delivers, which count once (`letters`)


class QueuedEffects(msgspec.Struct, eq=False):
    """Effects that were submitted together."""

    effects: Sequence[StoreEffect]
    bytes: int
    when: float = msgspec.field(default_factory=time.monotonic)


class Queue:
    """Filled by the broker's thread, which never waits; emptied by the writer's."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[QueuedEffects] = deque()
        self._taken: QueuedEffects | None = None  # what the writer is at, until it is done
        self._taken_effects = self._taken_bytes = 0
        self.closed = False
        self.effects = 0  # submitted and not completed
        self.bytes = 0

    def put(self, effects: Sequence[StoreEffect]) -> int:
        """Effects, to be taken later. Returns about how many bytes they have."""
        one = QueuedEffects(effects, _size(effects))
        with self._condition:
            self._waiting.append(one)
            self.effects += len(effects)
            self.bytes += one.bytes
            self._condition.notify()
        return one.bytes

    def take(self, timeout: float | None) -> list[StoreEffect]:
        """The next group; nothing if there is none in time, or the queue was closed."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self.closed, timeout)
            group: list[StoreEffect] = []
            size = 0
            while self._waiting and (
                not group or len(group) + len(self._waiting[0].effects) <= MAX_GROUP_EFFECTS
            ):
                if group and size + self._waiting[0].bytes > MAX_GROUP_BYTES:
                    break
                one = self._waiting.popleft()
                self._taken = self._taken or one
                group.extend(one.effects)
                size += one.bytes
            self._taken_effects, self._taken_bytes = len(group), size
            return group

    def finish(self) -> None:
        """Count a group as completed, or lost."""
        with self._condition:
            self.effects -= self._taken_effects
            self.bytes -= self._taken_bytes
            self._taken_effects = self._taken_bytes = 0
            self._taken = None

    def take_appends(self) -> list[Append]:
        """Take all appends out, wherever they are in the queue."""
        taken: list[Append] = []
        with self._condition:
            for one in self._waiting:
                if appends := appends_of(one.effects):
                    taken += appends
                    size = _size(appends)
                    one.effects = [effect for effect in one.effects if not isinstance(effect, Append)]
                    one.bytes -= size
                    self.bytes -= size
            self.effects -= len(taken)
        return taken

    def wait(self, seconds: float) -> None:
        """Wait for so long, but not beyond the next effects that are submitted, nor the end."""
        with self._condition:
            if not self.closed:
                self._condition.wait(seconds)

    def close(self) -> None:
        """Close the queue: nothing more is submitted."""
        with self._condition:
            self.closed = True
            self._condition.notify_all()

    def oldest(self) -> float:
        """For how many seconds the first of what is not completed has been waiting."""
        with self._condition:
            first = self._taken or (self._waiting[0] if self._waiting else None)
        return 0.0 if first is None else time.monotonic() - first.when


def appends_of(effects: Iterable[StoreEffect]) -> list[Append]:
    return [effect for effect in effects if isinstance(effect, Append)]


def payload(effect: StoreEffect) -> int:
    """About how many bytes of notifications, letters and records are in an effect."""
    if isinstance(effect, Append):
        size = sum([envelope.notification.body.size for envelope in effect.envelopes]) + _EACH * len(effect.log)
        return size + sum([record.size for record in effect.records]) if effect.records else size
    if isinstance(effect, Spool):
        return sum([envelope.notification.body.size for _, _, envelope in (*effect.add, *effect.dead)])
    return 0


def _size(effects: Sequence[StoreEffect]) -> int:
    size = _EACH * len(effects)
    if len(effects) == 1 and type(effects[0]) is Append:  # what is published singly
        return size + payload(effects[0])
    deliveries: list[Envelope] = []
    for effect in effects:
        if isinstance(effect, Spool):
            deliveries += [envelope for _, _, envelope in (*effect.add, *effect.dead)]
        else:
            size += payload(effect)
    each = {id(envelope): envelope for envelope in deliveries}
    bodies = sum([envelope.notification.body.size for envelope in each.values()])
    return size + EACH_COPY * len(deliveries) + bodies
