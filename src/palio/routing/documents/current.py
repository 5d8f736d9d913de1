"""Current documents: which version of a document is the current one, as keyed records.

A document is known by its family and its key; whatever is published with both is a version of it, also that it
was withdrawn.

1. What is published here has a record of the kind `document`, which is written with its event, or not at all
   (`with_documents`): so of many that publish one document at the same time, exactly one is current, and it is
   the one with the highest sequence.
2. Elsewhere the later time counts, then the name of the broker, then the sequence: also of one origin, whose
   journal may have come back older and given sequences again. As for each origin the latest version is
   remembered (`Versions`), the order in which versions are heard of makes no difference.
3. A version that says that the document was withdrawn is one like any other: what is older does not come back.
4. The key of a record is as long as any store takes, however long that of the document is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final

import msgspec

from palio.documents.reserved import FAMILY, KEY, WITHDRAWN
from palio.model.body import Body
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import MAX_KEY, Append, KeyedRecord

PUBLISHED: Final = "document"  # kinds of records: what was published here,
KEPT: Final = "document.kept"  # and what was published elsewhere
# Bytes of a key that stay as they are; of a longer one a digest stands for the rest. No key that comes from
# reading has this mark, since in those two digits follow each `%`.
_PLAIN = 512
_DIGEST = "%~"

_encode = msgspec.msgpack.Encoder(enc_hook=attrgetter("body")).encode


class _Written(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An envelope, field by field, as msgspec reads it in one go."""

    origin: str
    sequence: int
    time: float
    hops: int
    entry: str
    body: Body
    epoch: int = 0


_read = msgspec.msgpack.Decoder(_Written).decode


class CurrentDocument(msgspec.Struct, frozen=True):
    """A version of a document: as it was published, and as bytes."""

    envelope: Envelope
    encoded: bytes

    @classmethod
    def of(cls, encoded: bytes) -> CurrentDocument:
        """The version that these bytes are."""
        one = _read(encoded)
        notification = Notification.of_body(one.body)
        return cls(Envelope(one.origin, one.sequence, one.time, one.hops, one.entry, notification), encoded)

    def completed(self, complete: Callable[[Envelope], Envelope]) -> CurrentDocument:
        """The same with more attributes, if there are any."""
        envelope = complete(self.envelope)
        return self if envelope is self.envelope else CurrentDocument(envelope, _encode(envelope))

    @property
    def attributes(self) -> dict[str, Any]:
        return self.envelope.notification.attributes  # type: ignore[return-value]

    @property
    def name(self) -> tuple[str, str]:
        """The family and the key."""
        return self.attributes[FAMILY], self.attributes[KEY]

    @property
    def is_withdrawn(self) -> bool:
        return self.attributes.get(WITHDRAWN) is True

    @property
    def withdrawal(self) -> dict[str, Any]:
        """The attributes of the version that withdraws it: so whoever asked for it hears of its end."""
        return {**self.attributes, WITHDRAWN: True}

    @property
    def order(self) -> tuple[float, str, int]:
        """Between versions of different origins, the one for which this is larger is the current one."""
        return self.envelope.time, self.envelope.origin, self.envelope.sequence


def record_key(family: str, key: str) -> str:
    """What the record of a document is called. Those of a family begin with its name and a slash (4)."""
    if len(key.encode()) > _PLAIN:
        beginning = key.encode()[: _PLAIN // 2].decode(errors="ignore")
        key = f"{beginning}{_DIGEST}{hashlib.sha256(key.encode()).hexdigest()}"
    return f"{family}/{key}"


def document_name(notification: Notification) -> tuple[str, str] | None:
    """The family and the key of what is a version of a document; None for everything else."""
    family, key = notification.attributes.get(FAMILY), notification.attributes.get(KEY)
    return (family, key) if isinstance(family, str) and isinstance(key, str) and family and key else None


def record_of(envelope: Envelope) -> KeyedRecord | None:
    """The record that an event makes with its append, if it is a version of a document."""
    name = document_name(envelope.notification)
    if name is None or len(name[0].encode()) + _PLAIN >= MAX_KEY:
        return None
    return KeyedRecord(PUBLISHED, record_key(*name), None, envelope.sequence)


def with_documents(effect: Append, tell: Callable[[Envelope, str], None] | None = None) -> Append:
    """The same append, with the records of the documents in it (1). `tell` hears of each version, and what its
    record is called.
    """
    records = []
    for one in effect.envelopes:
        record = record_of(one)
        if record is not None:
            records.append(record)
            if tell is not None:
                tell(one, record.key)
    if not records:
        return effect
    return msgspec.structs.replace(effect, records=(*effect.records, *records))


class KeptVersion(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The latest version of an origin; without its bytes, if it is not among what is kept here."""

    origin: str
    sequence: int
    time: float
    encoded: bytes | None = None

    @property
    def order(self) -> tuple[float, str]:
        return self.time, self.origin


class Versions(msgspec.Struct, frozen=True, array_like=True):
    """The latest versions of a document that were published elsewhere: one of each origin."""

    latest: tuple[KeptVersion, ...] = ()

    @classmethod
    def of(cls, encoded: bytes | None) -> Versions:
        return cls() if encoded is None else _read_versions(encoded)

    def with_version(self, envelope: Envelope, keep: Filter | None) -> Versions:
        """With one more; nothing changes unless it is later than what is known of its origin (2)."""
        origin = envelope.origin
        known = next((one for one in self.latest if one.origin == origin), None)
        if known is not None and (known.time, known.sequence) >= (envelope.time, envelope.sequence):
            return self
        kept = keep is None or keep.matches(envelope.notification)
        encoded = _encode(envelope) if kept else None
        version = KeptVersion(origin, envelope.sequence, envelope.time, encoded)
        others = [one for one in self.latest if one.origin != origin]
        return Versions(tuple(sorted([*others, version], key=attrgetter("origin"))))

    @property
    def encoded(self) -> bytes:
        return _encode(self)


_read_versions = msgspec.msgpack.Decoder(Versions).decode


def current_of(published: bytes | None, kept: bytes | None) -> CurrentDocument | None:
    """The current one of what was published here and what was elsewhere, if there is one, withdrawn or not."""
    own = None if published is None else CurrentDocument.of(published)
    latest: Iterable[KeptVersion] = Versions.of(kept).latest
    elsewhere = max(latest, key=attrgetter("order"), default=None)
    if elsewhere is None or (own is not None and own.order[:2] > elsewhere.order):
        return own
    return None if elsewhere.encoded is None else CurrentDocument.of(elsewhere.encoded)
