"""`Inbox`: what has come on a connection and waits for its turn, message by message, in their order.

1. What is light is handled at once; all else is a thought (`thinking`), and goes on for several turns.
2. A message may be worked on elsewhere, as documents are that threads read. What has come behind it waits until
   its owner goes on with it (`hold`, `go_on`), and so is everything that is said on a connection in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import msgspec

from palio.broker.thinking import Stacks, Thought
from palio.model.effort import Meter

Work: TypeAlias = Callable[[Meter | None], None]
Hear: TypeAlias = Callable[[bytes, float, Meter | None], None]

# Messages of these kinds, of so many bytes at the most, ask nothing about filters, and are handled at once: to
# let each be interrupted would take some tens of microseconds. Where it is crowded, they bring some hundred
# events at the most; where nobody waits, it may be more.
_LIGHT_KINDS = ("publish", "publishdocuments", "forward", "acknowledged")
_LIGHT = tuple([b"\xa4type" + msgspec.msgpack.encode(kind) for kind in _LIGHT_KINDS])
LIGHT_BYTES = 8 * 1024
LIGHT_BYTES_ALONE = 64 * 1024


class Inbox:
    """Messages of one connection."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._messages: deque[tuple[bytes, float]] = deque()  # and when they came
        self.bytes = 0  # of them
        self.held = 0  # bytes of one that is worked on elsewhere
        self._due: Work | None = None  # how it goes on with that one
        self._due_bytes = 0  # of what that handles
        self._thought: Thought | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, and nothing is being handled here."""
        return not self._messages and self._thought is None

    @property
    def has_next(self) -> bool:
        """Whether there is something that can be handled now."""
        if self._thought is not None or self._due is not None:
            return True
        return bool(self._messages) and not self.held

    @property
    def begins(self) -> bool:
        """Whether the next thing is a message that nobody has looked at."""
        return self._thought is None and self._due is None

    def add(self, payload: bytes, came: float) -> None:
        self._messages.append((payload, came))
        self.bytes += len(payload)

    def take(self, hear: Hear, until: float, *, light: int, steps: int) -> bool:
        """Handle what is next until about that moment, in so many steps at most. Returns whether it is over.

        A message is given to `hear`, with when it came; without a meter, if it has so few bytes and is `light`.
        Raises what handling it does.
        """
        if self._thought is None:
            work: Work
            if self._due is not None:
                work, self._due, self.held = self._due, None, 0
                if self._due_bytes <= light:
                    work(None)
                    return True
            else:
                payload, came = self._messages.popleft()
                self.bytes -= len(payload)
                if len(payload) <= light and payload.startswith(_LIGHT, 1):
                    hear(payload, came, None)
                    return True
                work = partial(hear, payload, came)
            self._thought = Thought(work, steps, self._stacks)
        is_over = True
        try:
            is_over = self._thought.go_on(until)
        finally:
            if is_over:
                self._thought = None
        return is_over

    def hold(self, size: int) -> None:
        """Nothing more is handled until `go_on`: a message of so many bytes is worked on elsewhere."""
        self.held = max(size, 1)

    def go_on(self, work: Work, size: int) -> bool:
        """This is next, and handles so many bytes. Returns False if nobody is interested in it any more."""
        if self.held:
            self._due, self._due_bytes = work, size
        return self.held > 0

    def clear(self) -> None:
        """What nobody has looked at is not handled."""
        self._messages.clear()
        self.bytes = 0

    def give_up(self) -> None:
        """Nothing more is handled."""
        self.clear()
        self.held = 0
        self._due = None
        if self._thought is not None and not self._thought.is_current:
            self._thought.give_up()
            self._thought = None
