"""`NewestVersions`: of each family, the version of a document that was published last.

1. What is published or kept while this broker runs is told as it comes (`tell`); what is older is looked for
   once a family, when somebody first asks.
2. Of one broker the higher sequence is newer, of several the later time; a withdrawal is a version, too.
3. What was told may not be on disk yet, or never come there: what is answered was read from there. If that is
   not what was told, the family is looked through again.
4. Who may not see the newest version gets the newest of those that it may see, as far as there are not too many
   to look through."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

import msgspec

from palio.broker.documents.errors import TooManyDocuments
from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.routing.documents.current import CurrentDocument, document_name, record_key
from palio.routing.documents.pulling import LOOKED_AT, CurrentDocuments

_WRITTEN_WITHIN: Final = 5.0  # seconds until what was told is on disk, or is not believed any more
_LOOK_EVERY = 0.01


class NewestVersion(msgspec.Struct, frozen=True):
    """When a version was published, where, and what the record of its document is called."""

    origin: str
    sequence: int
    time: float
    record: str

    def is_before(self, other: NewestVersion) -> bool:
        """Whether another one is newer (2)."""
        if self.origin == other.origin:
            return self.sequence < other.sequence
        return (self.time, self.origin) < (other.time, other.origin)


class NewestVersions:
    """Knows the newest version of each family, once it was asked for."""

    def __init__(self) -> None:
        self._newest: dict[str, NewestVersion] = {}  # by family
        self._whole: set[str] = set()  # families of which older ones have been looked for
        self._looking = asyncio.Lock()

    def tell(self, envelope: Envelope, record: str) -> None:
        """A version was published, or is kept; in any thread."""
        name = document_name(envelope.notification)
        if name is None:
            return
        told = _said_of(envelope, record)
        known = self._newest.get(name[0])
        if known is None or known.is_before(told):
            self._newest[name[0]] = told

    async def find(self, family: str, documents: CurrentDocuments, allowed: Filter) -> CurrentDocument | None:
        """The newest version that somebody may see. Raises `TooManyDocuments`, `StoreUnavailable`."""
        found = await self._found(family, documents)
        if found is None or allowed.matches(found.envelope.notification):
            return found
        return await asyncio.to_thread(_newest, documents, family, allowed, LOOKED_AT)

    async def _found(self, family: str, documents: CurrentDocuments) -> CurrentDocument | None:
        while True:
            async with self._looking:
                if family not in self._whole:
                    oldest = await asyncio.to_thread(_newest, documents, family)
                    if oldest is not None:
                        self.tell(oldest.envelope, record_key(*oldest.name))
                    self._whole.add(family)
            told = self._newest.get(family)
            found = None if told is None else await _read(documents, told)
            if told is None or found is not None:
                return found
            if self._newest.get(family) is told:
                del self._newest[family]
            self._whole.discard(family)


async def _read(documents: CurrentDocuments, told: NewestVersion) -> CurrentDocument | None:
    """What was told, or what is newer, once it is on disk; None if it does not come there."""
    until = monotonic() + _WRITTEN_WITHIN
    while True:
        found = await asyncio.to_thread(documents.at, told.record)
        if found is not None and not _said_of(found.envelope, told.record).is_before(told):
            return found
        if monotonic() >= until:
            return None
        await asyncio.sleep(_LOOK_EVERY)


def _said_of(envelope: Envelope, record: str) -> NewestVersion:
    return NewestVersion(envelope.origin, envelope.sequence, envelope.time, record)


def _newest(
    documents: CurrentDocuments, family: str, allowed: Filter | None = None, most: int | None = None
) -> CurrentDocument | None:
    """What was published last of a family, as far as a filter allows it; in a thread.

    Raises `TooManyDocuments` if there are more than `most` to look at.
    """
    newest: CurrentDocument | None = None
    for looked, (_, one) in enumerate(documents.published(f"{family}/", None), 1):
        if most is not None and looked > most:
            raise TooManyDocuments(family, most)
        if one is not None and (newest is None or newest.order < one.order):
            whole = documents.completed(one)
            if allowed is None or allowed.matches(whole.envelope.notification):
                newest = whole
    return newest
