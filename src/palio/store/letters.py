"""Shared letters: what lies in the store already, or is waited for by several, lies there once.

An event that was published here is in the journal; one from elsewhere that many durable subscriptions want is
one row of `palio_letters`. What a delivery in a spool keeps is the number of that row instead of the letter
itself, or the sequence of the event and the epoch in which it was forwarded. With the last of these deliveries
a row of `palio_letters` goes, in the same transaction. What is small, or from elsewhere and waited for by one
subscription, is kept in the spool: a row would cost more.

1. A number in a spool is that of a row that is there: both are written together, and the row is deleted with
   the last delivery that names it.
2. A row that no delivery names is not there, but for a crash of an earlier version: recovery deletes it.
3. A dead letter keeps its letter itself, with why it was given up; so does a delivery that has failed before.
4. An event is looked for in the journal by its sequence, time and size, among those that this life of the
   broker has appended: a disk that came back older gives sequences again.
5. An event is not deleted from the journal while a delivery names it: with what is swept (`sweeping`) it
   becomes a row of `palio_letters`, in the same transaction. So no delivery keeps the journal from being swept.
6. Where a subscription is so far behind that events are swept before it has taken them, those that come next
   are not named, for a while: to write them once is cheaper than to move them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec

from palio.protocol.envelope import Envelope
from palio.store.checksums import checksum
from palio.store.records import encode_envelope

# How many bytes it has to save: a row that is shared is written and deleted once more, and an event of the
# journal that a delivery names is looked for when it is swept.
WORTH_SHARING = 1_000
# Events of the journal that a new delivery may name: most are spooled as soon as they are on disk.
_RECENT: Final = 8_192

# So many events that follow one that was moved are not named.
UNNAMED: Final = 8_192

SHARED_LETTER_MISSING = "The letter that it shares with others is not there."
EVENT_MISSING = "The event of the journal that it is about is not there."

# Of a spool: subscription, delivery, attempts, and the envelope, or the bytes of a letter; as it is on disk,
# the bytes of either or of the number of a shared letter, with a checksum.
Unwritten: TypeAlias = tuple[int, int, int, Envelope | bytes]
SpoolRow: TypeAlias = tuple[int, int, int, bytes, int]
LetterRow: TypeAlias = tuple[int, int, bytes, int]  # broker, letter, its bytes, checksum
DeliveryKey: TypeAlias = tuple[int, int]  # subscription, delivery
_Known: TypeAlias = tuple[float, int]  # time and size of an event

_encode_number = _encode_event = msgspec.msgpack.Encoder().encode
_read_number = msgspec.msgpack.Decoder(int).decode
_LETTERS = range(0x90, 0xA0)  # with what a letter begins: it is a short array
_NAMES_EVENT = 0x92  # one of two numbers, and so no letter


class NamedEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a row of a spool has that names an event of the journal."""

    sequence: int
    epoch: int


read_event = msgspec.msgpack.Decoder(NamedEvent).decode


def shared_number(data: bytes) -> int | None:
    """The number of a shared letter, if a spool's row has that; below zero it is the sequence of an event of
    the journal. Raises `msgspec.DecodeError` and TypeError.
    """
    if data and data[0] == _NAMES_EVENT:
        return -read_event(data).sequence
    return None if data and data[0] in _LETTERS else _read_number(data)


class SharedLetters:
    """Which deliveries name which shared letter, as committed."""

    def __init__(self) -> None:
        self.of: dict[DeliveryKey, int] = {}
        self.counts: Counter[int] = Counter()  # how many deliveries name each
        self.last = 0  # the largest number that was given
        self.epochs: dict[int, int] = {}  # of events that are named, by sequence
        self.named_from = 0  # the sequence from which on events are named (6)
        self.named: dict[int, dict[DeliveryKey, None]] = {}  # by whom
        self.appended: dict[int, _Known] = {}  # the large ones among the last, by sequence

    def add(self, key: DeliveryKey, letter: int, epoch: int = 0) -> None:
        """A delivery that was found on disk, of a letter, or of an event that was forwarded in an epoch."""
        if letter < 0:
            self.epochs[-letter] = epoch
        self.name(key, letter)
        self.counts[letter] += 1
        self.last = max(self.last, letter)

    def name(self, key: DeliveryKey, letter: int) -> None:
        """A delivery names this letter or event, and none that it has named before; 0 is none at all."""
        before = self.of.pop(key, 0)
        if before < 0:
            keys = self.named[-before]
            del keys[key]
            if not keys:
                del self.named[-before]
        if letter:
            self.of[key] = letter
        if letter < 0:
            self.named.setdefault(-letter, {})[key] = None


class LetterChanges:
    """What a transaction changes of them: nothing of it counts before it is `committed`."""

    def __init__(self, shared: SharedLetters, broker: int, name: str) -> None:
        self._shared = shared
        self._broker = broker
        self._name = name
        self._epochs: dict[int, int] = {}
        self._moved_upto = -UNNAMED
        self._appended: dict[int, _Known] = {}
        self._of: dict[DeliveryKey, int] = {}  # 0: none any more
        self._counts: dict[int, int] = {}
        self._last = shared.last
        self.bytes = 0  # of what was written

    def appended(self, event: Envelope) -> None:
        """A large event is in the journal."""
        self._appended[event.sequence] = event.time, event.notification.body.size

    def _is_in_journal(self, envelope: Envelope, trimmed: int) -> bool:
        """Whether an event is there, and will be (4); all who name it do so in the same epoch."""
        sequence = envelope.sequence
        known = self._appended.get(sequence) or self._shared.appended.get(sequence)
        if known is None:  # as for all that is small
            return False
        if sequence < self._shared.named_from:
            return False
        if self._count(-sequence) and self.epoch_of(sequence) != envelope.epoch:
            return False
        is_here = envelope.origin == self._name and not envelope.hops and sequence > trimmed
        return is_here and known == (envelope.time, envelope.notification.body.size)

    def written(self, rows: Sequence[Unwritten], trimmed: int) -> tuple[list[SpoolRow], list[LetterRow]]:
        """New deliveries as rows of a spool, and the rows of the letters that they share. Of the journal, what
        was trimmed may go.
        """
        copies = Counter([id(row[3]) for row in rows])
        known: dict[int, tuple[bytes, int]] = {}  # what a row has, and the number if it shares that
        of, spool, letters = self._of, [], []
        may_name = bool(self._appended or self._shared.appended)  # not where all is small: nothing is asked
        for subscription, delivery, attempts, envelope in rows:
            found = known.get(id(envelope))
            if found is None:
                several, letter = copies[id(envelope)], 0
                if isinstance(envelope, bytes):
                    data = envelope
                elif may_name and self._is_in_journal(envelope, trimmed):
                    sequence, letter = envelope.sequence, -envelope.sequence
                    self._counts[letter] = self._count(letter) + several
                    self._epochs[sequence] = envelope.epoch
                    data = _encode_event(NamedEvent(sequence, envelope.epoch))
                else:
                    data = encode_envelope(envelope)
                self.bytes += len(data)
                if not letter and (several - 1) * len(data) >= WORTH_SHARING:
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
        gone, of, shared = [], self._of, self._shared
        if not of and not shared.of:
            return []
        for key in keys:
            letter = of.get(key)
            if letter is None:
                letter = shared.of.get(key)
            if letter:
                of[key] = 0
                left = self._counts[letter] = self._count(letter) - 1
                if not left and letter > 0:
                    gone.append(letter)
        return gone

    def _count(self, letter: int) -> int:
        left = self._counts.get(letter)
        return self._shared.counts[letter] if left is None else left

    def epoch_of(self, sequence: int) -> int:
        """The epoch in which an event was forwarded that deliveries name."""
        known = self._epochs.get(sequence)
        return self._shared.epochs.get(sequence, 0) if known is None else known

    def waited_for(self, swept: int, upto: int) -> Mapping[int, list[DeliveryKey]]:
        """The events of the journal behind `swept`, up to a sequence, that deliveries name, by sequence."""
        found: dict[int, list[DeliveryKey]] = defaultdict(list)
        of, named = self._of, self._shared.named
        if named:
            for sequence in range(swept + 1, upto + 1):
                if sequence in named:
                    found[sequence] += [key for key in named[sequence] if key not in of]
        for key, letter in of.items():
            if -upto <= letter < -swept:
                found[-letter].append(key)
        return {sequence: keys for sequence, keys in found.items() if keys}

    def moved(
        self, sequence: int, keys: Sequence[DeliveryKey], data: bytes
    ) -> tuple[LetterRow, list[dict[str, Any]]]:
        """An event of the journal as the row of a letter, and those of the deliveries that named it (5)."""
        letter = self._last = self._last + 1
        self._moved_upto = max(self._moved_upto, sequence)
        self._counts[letter], self._counts[-sequence] = len(keys), 0
        self._of |= dict.fromkeys(keys, letter)
        self.bytes += len(data)
        number = _encode_number(letter)
        named = [
            {"subscription": one, "delivery": place, "envelope": number, "checksum": checksum(number, place)}
            for one, place in keys
        ]
        return (self._broker, letter, data, checksum(data, letter)), named

    def committed(self) -> None:
        """It is on disk."""
        shared = self._shared
        for key, letter in self._of.items():
            shared.name(key, letter)
        shared.epochs |= self._epochs
        for letter, count in self._counts.items():
            if count:
                shared.counts[letter] = count
            else:
                shared.counts.pop(letter, None)
                shared.epochs.pop(-letter, None)
        shared.last = self._last
        shared.named_from = max(shared.named_from, self._moved_upto + UNNAMED)
        if self._appended:
            shared.appended |= self._appended
            for sequence in list(islice(shared.appended, max(0, len(shared.appended) - _RECENT))):
                del shared.appended[sequence]
