"""Shared letters: what several subscriptions wait for lies in the store once, and not in each of their spools.

An event that many durable subscriptions want is one row of `palio_letters`; what a delivery in a spool keeps is
the number of that row instead of the letter itself. With the last of these deliveries the row goes, in the same
transaction. What only one subscription waits for, or is so small that the row would cost more, is kept where it
was: in the spool.

1. A number in a spool is that of a row that is there: both are written together, and the row is deleted with
   the last delivery that names it.
2. A row that no delivery names is not there, but for a crash of an earlier version: recovery deletes it.
3. A dead letter keeps its letter itself, with why it was given up; so does a delivery that has failed before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from palio.protocol.envelope import Envelope
from palio.store.checksums import checksum
from palio.store.records import encode_envelope

# How many bytes it has to save: a row that is shared is written and deleted once more.
WORTH_SHARING = 1_000

SHARED_LETTER_MISSING = "The letter that it shares with others is not there."

# Of a spool: subscription, delivery, attempts, and the envelope, or the bytes of a letter; as it is on disk,
# the bytes of either or of the number of a shared letter, with a checksum.
Unwritten: TypeAlias = tuple[int, int, int, Envelope | bytes]
SpoolRow: TypeAlias = tuple[int, int, int, bytes, int]
LetterRow: TypeAlias = tuple[int, int, bytes, int]  # broker, letter, its bytes, checksum
DeliveryKey: TypeAlias = tuple[int, int]  # subscription, delivery

_encode_number = msgspec.msgpack.Encoder().encode
_read_number = msgspec.msgpack.Decoder(int).decode
_LETTERS = range(0x90, 0xA0)  # with what a letter begins: it is a short array


def shared_number(data: bytes) -> int | None:
    """The number of a shared letter, if a spool's row has that. Raises `msgspec.DecodeError` and TypeError."""
    return None if data and data[0] in _LETTERS else _read_number(data)


class SharedLetters:
    """Which deliveries name which shared letter, as committed."""

    def __init__(self) -> None:
        self.of: dict[DeliveryKey, int] = {}
        self.counts: Counter[int] = Counter()  # how many deliveries name each
        self.last = 0  # the largest number that was given

    def add(self, key: DeliveryKey, letter: int) -> None:
        """A delivery that was found on disk."""
        self.of[key] = letter
        self.counts[letter] += 1
        self.last = max(self.last, letter)


class LetterChanges:
    """What a transaction changes of them: nothing of it counts before it is `committed`."""

    def __init__(self, shared: SharedLetters, broker: int) -> None:
        self._shared = shared
        self._broker = broker
        self._of: dict[DeliveryKey, int] = {}  # 0: none any more
        self._counts: dict[int, int] = {}
        self._last = shared.last
        self.bytes = 0  # of what was written

    def written(self, rows: Sequence[Unwritten]) -> tuple[list[SpoolRow], list[LetterRow]]:
        """New deliveries as rows of a spool, and the rows of the letters that they share."""
        copies = Counter([id(row[3]) for row in rows])
        known: dict[int, tuple[bytes, int]] = {}  # what a row has, and the number if it shares that
        of, spool, letters = self._of, [], []
        for subscription, delivery, attempts, envelope in rows:
            found = known.get(id(envelope))
            if found is None:
                data = envelope if type(envelope) is bytes else encode_envelope(envelope)
                several, letter = copies[id(envelope)], 0
                self.bytes += len(data)
                if (several - 1) * len(data) >= WORTH_SHARING:
                    letter = self._last = self._last + 1
                    letters.append((self._broker, letter, data, checksum(data, letter)))
                    self._counts[letter] = several
                    data = _encode_number(letter)
                found = known[id(envelope)] = data, letter
            data, letter = found
            if letter:
                of[subscription, delivery] = letter
            spool.append((subscription, delivery, attempts, data, checksum(data, delivery)))
        return spool, letters

    def rewritten(self, rows: Sequence[Unwritten]) -> list[SpoolRow]:
        """Deliveries that may have been there before: each keeps its letter itself."""
        found = [(*row[:3], row[3] if type(row[3]) is bytes else encode_envelope(row[3])) for row in rows]
        self.bytes += sum([len(row[3]) for row in found])
        return [(*row, checksum(row[3], row[1])) for row in found]

    def release(self, keys: Sequence[DeliveryKey]) -> list[int]:
        """The shared letters that nobody waits for any more when these deliveries are gone, or written anew."""
        gone, of, shared, counts = [], self._of, self._shared, self._counts
        if not of and not shared.of:
            return []
        for key in keys:
            letter = of.get(key)
            if letter is None:
                letter = shared.of.get(key)
            if letter:
                of[key] = 0
                left = counts.get(letter)
                left = counts[letter] = (shared.counts[letter] if left is None else left) - 1
                if not left:
                    gone.append(letter)
        return gone

    def committed(self) -> None:
        """It is on disk."""
        shared = self._shared
        for key, letter in self._of.items():
            if letter:
                shared.of[key] = letter
            else:
                shared.of.pop(key, None)
        for letter, count in self._counts.items():
            if count:
                shared.counts[letter] = count
            else:
                shared.counts.pop(letter, None)
        shared.last = self._last
