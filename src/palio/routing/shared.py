"""`SharedRecords`: what every broker of a network knows, as a map from (kind, key) to bytes.

A broker that changes a record gives it a version: a counter, one more than that of the version it knew, and its
own name. Of two versions the later counts: that with the higher counter, then that of the greater name. What
was removed stays as a version without a value, so that nobody brings it back who has not heard of it.

1. What a broker has depends on which versions it has heard of, and not on the order: the later one is found by
   a total order. (A broker whose disk came back older may give a version twice; then the greater value counts.)
2. A version is later than any that its broker knew when it made it. So who has seen a record and changes it is
   never overruled by what it has seen.
3. Nothing grows without bound. A broker takes nothing new from its own clients beyond `MOST_BYTES`. Networks
   that join may have more between them, up to `MOST_HEARD`; then it is the link that is refused, as otherwise
   they would never agree.
4. Equal sets of versions have equal digests, bucket by bucket; so neighbours that meet again tell each other
   only what is in buckets that differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from palio.model.errors import PalioError
from palio.protocol.sharing import MAX_KEY, MAX_VALUE, SharedRecord

Name: TypeAlias = tuple[str, str]

# Bytes of all records together that clients of a broker can make it share, and what it hears from others at the
# most: two networks, both full, can still join.
MOST_BYTES = 64 * 1024 * 1024
MOST_HEARD = 2 * MOST_BYTES
# What a record needs beside its key and its value, about; also one without a value.
OVERHEAD = 200
# A counter beyond this is none that came by counting, and leaves no room for what comes after it.
LAST_COUNTER = 2**61
BUCKETS = 32
_DIGEST = 8  # bytes

_encode = msgspec.msgpack.Encoder().encode


class TooMuchShared(PalioError):
    """A record that is too large, or one more where there is no room."""

    kind: str
    key: str
    limit: int
    whole: bool

    def sentence(self) -> str:
        if self.whole:
            return (
                f"The record {self.key!r} ({self.kind}) cannot be shared: together with the others it has more "
                f"than {self.limit:,} bytes, as many as all brokers keep; remove some first."
            )
        return (
            f"The record {self.key!r} ({self.kind}) cannot be shared: its value may have {self.limit:,} bytes, "
            f"and its key {MAX_KEY} characters."
        )


class SharedStatistics(msgspec.Struct, frozen=True):
    """Records that are there, those that were removed, and bytes of both."""

    records: int
    removed: int
    bytes: int


class SharedRecords:
    """The records that one broker knows of, whoever has put them."""

    def __init__(self, broker: str, known: Iterable[SharedRecord] = ()) -> None:
        self._broker = broker
        self._records: dict[Name, SharedRecord] = {}
        self._digests = [0] * BUCKETS
        self.bytes = 0
        for record in known:
            self._set(record)

    def __len__(self) -> int:
        """How many there are, also of those that were removed."""
        return len(self._records)

    def __iter__(self) -> Iterator[SharedRecord]:
        return iter(self._records.values())

    def get(self, kind: str, key: str) -> bytes | None:
        record = self._records.get((kind, key))
        return None if record is None else record.value

    def of(self, kind: str) -> dict[str, bytes]:
        """The values of a kind, by key."""
        return {
            key: record.value
            for (found, key), record in self._records.items()
            if found == kind and record.value is not None
        }

    def version(self, kind: str, key: str) -> SharedRecord | None:
        """The latest version that is known, which may be without a value."""
        return self._records.get((kind, key))

    def statistics(self) -> SharedStatistics:
        removed = sum([record.value is None for record in self])
        return SharedStatistics(len(self) - removed, removed, self.bytes)

    # Changes

    def changed(self, changes: Iterable[tuple[str, str, bytes | None]]) -> tuple[SharedRecord, ...]:
        """New versions by this broker, of what differs from what is there; they are not taken yet.

        Raises `TooMuchShared`.
        """
        made: dict[Name, SharedRecord] = {}
        more = 0
        for kind, key, value in changes:
            if len(key) > MAX_KEY or len(value or b"") > MAX_VALUE:
                raise TooMuchShared(kind, key, MAX_VALUE, whole=False)
            known = self._records.get((kind, key))
            if value == (None if known is None else known.value):
                continue
            counter = 1 if known is None else known.counter + 1
            record = made[kind, key] = SharedRecord(kind, key, counter, self._broker, value)
            more += _size(record) - (0 if known is None else _size(known))
            if more > 0 and value is not None and self.bytes + more > MOST_BYTES:
                raise TooMuchShared(kind, key, MOST_BYTES, whole=True)
        return tuple(made.values())

    def take(self, records: Iterable[SharedRecord]) -> tuple[SharedRecord, ...]:
        """Take versions, of this broker or of others. Returns those that are later than what was known."""
        return tuple([record for record in records if self._is_news(record) and self._set(record)])

    def room_for(self, records: Iterable[SharedRecord]) -> bool:
        """Whether what is news of these can be taken."""
        more = 0
        for record in records:
            if self._is_news(record):
                known = self._records.get((record.kind, record.key))
                more += _size(record) - (0 if known is None else _size(known))
        return self.bytes + more <= MOST_HEARD

    def _is_news(self, record: SharedRecord) -> bool:
        if record.counter > LAST_COUNTER:
            return False
        known = self._records.get((record.kind, record.key))
        return known is None or _order(record) > _order(known)

    def _set(self, record: SharedRecord) -> bool:
        name = record.kind, record.key
        known = self._records.get(name)
        bucket, digest = _digest(record)
        if known is not None:
            self.bytes -= _size(known)
            self._digests[bucket] ^= _digest(known)[1]
        self._records[name] = record
        self._digests[bucket] ^= digest
        self.bytes += _size(record)
        return True

    # What others have

    def digests(self) -> bytes:
        """What tells whether somebody else has the same; empty if there is nothing."""
        if not self._records:
            return b""
        return b"".join([digest.to_bytes(_DIGEST) for digest in self._digests])

    def unlike(self, digests: bytes) -> list[SharedRecord]:
        """What somebody with these digests may not have."""
        if len(digests) != BUCKETS * _DIGEST:
            return list(self)
        theirs = [int.from_bytes(digests[at : at + _DIGEST]) for at in range(0, len(digests), _DIGEST)]
        differs = [one != other for one, other in zip(self._digests, theirs, strict=True)]
        return [record for record in self if differs[_bucket(record)]]


def _order(record: SharedRecord) -> tuple[int, str, bool, bytes]:
    """Of two versions of a record, the one with the greater order counts."""
    return record.counter, record.broker, record.value is not None, record.value or b""


def _size(record: SharedRecord) -> int:
    return OVERHEAD + len(record.kind) + len(record.key) + len(record.value or b"")


def _bucket(record: SharedRecord) -> int:
    return blake2b(f"{record.kind} {record.key}".encode(), digest_size=1).digest()[0] % BUCKETS


def _digest(record: SharedRecord) -> tuple[int, int]:
    """The bucket of a record, and what it adds to the digest there."""
    return _bucket(record), int.from_bytes(blake2b(_encode(record), digest_size=_DIGEST).digest())
