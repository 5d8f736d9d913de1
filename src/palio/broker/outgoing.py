"""Outgoing frames of one connection: collected, written together, and bounded for slow consumers.

Frames of one turn of the event loop are written at once. While the transport is full they wait here, in their
order. Answers and durable deliveries always wait (both are bounded by what was asked for, and who does not read
them is not read from); events of transient subscriptions wait up to a limit, and while the client is within its
share of memory. Beyond that the policy decides: the newest or the oldest are dropped, counted, and the client
is told how many it has lost; or the connection ends.
"""

from __future__ import annotations

from asyncio import WriteTransport
from collections import Counter, deque

import msgspec

from palio.broker.settings import WhenSlow
from palio.protocol.deliveries import Lost
from palio.protocol.encoding import encode
from palio.protocol.frames import frame

# What the transport may hold before it counts as full.
HIGH_WATER = 256 * 1024
# Answers that wait for somebody who never reads: so many times the limit for events, and it is over.
ANSWERS_FACTOR = 4


class OutgoingStatistics(msgspec.Struct, frozen=True):
    """What has gone out on a connection, what waits, and what was dropped, by reason."""

    frames: int
    bytes: int
    events: int
    waiting_bytes: int
    waiting_events: int
    dropped: dict[str, int]


class _Waiting(msgspec.Struct, eq=False):
    """A frame that waits, and how many events it brings, which may be dropped."""

    data: bytes
    events: int


class Outgoing:
    """Frames for one connection. `overflowed` says that it should be ended."""

    def __init__(self, limit: int, policy: WhenSlow) -> None:
        self._transport: WriteTransport | None = None
        self._limit = limit
        self._policy = policy
        self._ready: list[bytes] = []
        self._waiting: deque[_Waiting] = deque()
        self._droppable: deque[_Waiting] = deque()  # those of them that bring events
        self._waiting_bytes = 0
        self._waiting_events = 0
        self.waiting_answers = 0  # bytes of what may not be dropped
        self.unsent = 0  # bytes that the transport has not written yet, when it was asked last
        self.tight = False  # nothing that may be dropped waits any more
        self._holes = 0  # how many places of those that wait are left by what was dropped
        self._lost = 0
        self.paused = False
        self.overflowed = False
        self._frames = self._bytes = self._events = 0
        self._dropped: Counter[str] = Counter()

    def connect(self, transport: WriteTransport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)

    def disconnect(self) -> None:
        """Nothing more is written: the other end is gone."""
        self._transport = None
        self._ready.clear()
        self._waiting.clear()
        self._droppable.clear()
        self._waiting_bytes = self._waiting_events = self._holes = self.waiting_answers = self.unsent = 0

    def look(self) -> None:
        """Ask the transport what it has not written yet."""
        if self._transport is not None:
            self.unsent = self._transport.get_write_buffer_size()

    @property
    def held(self) -> int:
        """Bytes that are not sent yet."""
        return self._waiting_bytes + self.unsent

    def statistics(self) -> OutgoingStatistics:
        dropped = dict(self._dropped)
        return OutgoingStatistics(
            self._frames, self._bytes, self._events, self._waiting_bytes, self._waiting_events, dropped
        )

    def put(self, payload: bytes, events: int = 0) -> None:
        """The bytes of a message; `events` is how many transient events it brings, which may be dropped."""
        data = frame(payload)
        if not self.paused:
            self._ready.append(data)
            self._events += events
            return
        waiting = _Waiting(data, events)
        self._waiting.append(waiting)
        if events:
            self._droppable.append(waiting)
        else:
            self.waiting_answers += len(data)
        self._waiting_bytes += len(data)
        self._waiting_events += events
        if self._waiting_bytes > self._limit or self.tight:
            self._make_room()

    def _make_room(self) -> None:
        if self._policy == "disconnect":
            self.overflowed = True
        elif self._policy == "drop-newest":
            if self._waiting[-1].events:
                self._drop(self._droppable.pop())
        else:
            limit = 0 if self.tight else self._limit
            while self._waiting_bytes > limit and self._droppable:
                self._drop(self._droppable.popleft())
        if self._waiting_bytes > self._limit * ANSWERS_FACTOR:
            self.overflowed = True

    def _drop(self, waiting: _Waiting) -> None:
        """Drops a frame: nothing is left of it but its place."""
        self._waiting_bytes -= len(waiting.data)
        self._waiting_events -= waiting.events
        self._lost += waiting.events
        self._dropped[f"slow consumer, {self._policy}"] += waiting.events
        waiting.data, waiting.events = b"", 0
        self._holes += 1
        if self._holes > len(self._waiting) // 2:
            self._waiting = deque(one for one in self._waiting if one.data)
            self._holes = 0

    def flush(self) -> None:
        if self._ready and self._transport is not None:
            data = self._ready[0] if len(self._ready) == 1 else b"".join(self._ready)
            self._frames += len(self._ready)
            self._bytes += len(data)
            self._ready.clear()
            self._transport.write(data)
            self.unsent = self._transport.get_write_buffer_size()

    def pause(self) -> None:
        """Backpressure of the transport: it is full."""
        self.paused = True

    def resume(self) -> None:
        """The transport has room: let what waited go out, and say what was lost."""
        self.paused = False
        while self._waiting and not self.paused:
            waiting = self._waiting.popleft()
            data = waiting.data
            if not data:
                self._holes -= 1
                continue
            if waiting.events:
                self._droppable.popleft()
            else:
                self.waiting_answers -= len(data)
            self._waiting_bytes -= len(data)
            self._waiting_events -= waiting.events
            self._events += waiting.events
            self._ready.append(data)
            if len(data) > HIGH_WATER // 4 or len(self._ready) >= 64:
                self.flush()  # which may pause it again
        if self._lost and not self.paused:
            lost, self._lost = self._lost, 0
            reason = "The client did not read fast enough."
            self._ready.append(frame(encode(Lost(lost, reason))))
        self.flush()
