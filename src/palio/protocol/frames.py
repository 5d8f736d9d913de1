"""Frames: a length of four bytes, most significant first, and as many bytes of MessagePack, one message."""

from __future__ import annotations

import struct

from palio.model.body import Body
from palio.model.errors import EventTooLarge, PalioError

# What one frame may have: room for the largest notification with its payload, and for a page of ordinary ones.
MAX_FRAME = 16 * 1024 * 1024
# What is kept free in a frame for whatever goes with an event on its way: the names of brokers, sessions and
# durable subscriptions (each some hundred characters), numbers, and the handles of the subscriptions that want
# it. A room of this size lets even the handles of 200,000 subscriptions, the most that one client may have,
# leave in a few frames (`broker.fitting`).
ENVELOPE_ROOM = 1024 * 1024
# What an event may have, by `Body.size`. Whatever is within it can be delivered by every way.
MAX_EVENT = MAX_FRAME - ENVELOPE_ROOM
# What a frame may have before the greeting is answered: strangers are not given more memory than that.
GREETING_FRAME = 64 * 1024
# Batches are cut near this size, so that nobody waits long for the one before.
BATCH_BYTES = 128 * 1024
_length = struct.Struct(">I")


class FrameTooLarge(PalioError):
    """A frame that announces more bytes than are allowed. `head` is how it begins."""

    limit: int
    got: int
    head: bytes = b""

    def __init__(self, *, limit: int, got: int, head: bytes = b"") -> None:
        super().__init__(f"This frame has {got:,} bytes; the limit is {limit:,}.", limit=limit, got=got)
        if head:
            self.head = head


def require_deliverable(body: Body) -> None:
    """Raises `EventTooLarge` for an event that would not fit into a frame with all that goes with it."""
    if (size := body.size) > MAX_EVENT:
        raise EventTooLarge(limit=MAX_EVENT, got=size)


def frame(payload: bytes) -> bytes:
    """A frame around the bytes of a message."""
    return _length.pack(len(payload)) + payload


class Frames:
    """Cuts a stream of bytes into frames. Holds at most one that is not complete, up to the limit."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self.limit = limit
        self._rest = bytearray()
        self._needed = 4  # so many bytes must be there before it is worth while to look again

    def __len__(self) -> int:
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that are complete now. Raises `FrameTooLarge` when one announces too much."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        found: list[bytes] = []
        at, end = 0, len(data)
        self._needed = 4
        while end - at >= 4:
            size = int.from_bytes(data[at : at + 4])
            if size > self.limit:
                raise FrameTooLarge(limit=self.limit, got=size, head=data[at : at + 8])
            if end - at - 4 < size:
                self._needed = 4 + size
                break
            at += 4 + size
            found.append(data[at - size : at])
        if at < end:
            self._rest += data[at:]
        return found
