"""Shared records: what all brokers of a network know, such as the families of XML documents.

They travel between brokers only that have said in their `Hello` that they know them.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from palio.protocol.base import Number, WireMessage

# Bytes of one value: a record travels, and is written, as a whole.
MAX_VALUE = 4 * 1024 * 1024
# Characters of a kind and of a key: together they are the key of a record in a store.
MAX_KIND = 32
MAX_KEY = 200

SharedKind: TypeAlias = Annotated[str, msgspec.Meta(pattern=f"^[a-z][a-z0-9.]{{0,{MAX_KIND - 1}}}$")]
SharedKey: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_KEY)]
SharedValue: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=MAX_VALUE)]


class SharedRecord(msgspec.Struct, frozen=True, array_like=True):
    """The value of something, as a broker has put it; None if that has removed it. See `routing.shared`."""

    kind: SharedKind
    key: SharedKey
    counter: Number
    broker: str
    value: SharedValue | None


class Share(WireMessage, frozen=True):
    """Records that the receiver may not have."""

    records: tuple[SharedRecord, ...]


class Verify(WireMessage, frozen=True):
    """Do all behind the receiver have what was shared before this? The origin numbers its questions."""

    origin: str
    number: Number


class Verified(WireMessage, frozen=True):
    """Answers `Verify`: they do, on disk; unless (not `whole`) a link was lost on which that was asked."""

    origin: str
    number: Number
    whole: bool
