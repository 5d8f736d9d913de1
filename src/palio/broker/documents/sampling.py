"""Current documents of a family, to hold against what it is changed to: all that are here, or the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from palio.routing.documents.pulling import CurrentDocuments

if TYPE_CHECKING:
    from palio.store import Store

# As many as are read and validated in some seconds, and as much as fits beside what else a broker holds.
MOST_SAMPLED: Final = 1_000
SAMPLED_BYTES: Final = 32 * 1_048_576


class DocumentSample(msgspec.Struct, frozen=True):
    """Some documents; `whole` if there are no more here."""

    documents: tuple[bytes, ...] = ()
    whole: bool = True


class DocumentSampling:
    """Takes samples from a broker's store. It waits for the disk, so it is not for event loops."""

    def __init__(self, store: Callable[[], Store | None]) -> None:
        self._store = store

    def take(self, family: str) -> DocumentSample:
        """The current documents of a family, in the order of their keys; the first ones if there are many."""
        store = self._store()
        if store is None:
            return DocumentSample()
        found: list[bytes] = []
        size = 0
        for _, one in CurrentDocuments(store).walk(f"{family}/", None):
            if one is None or one.is_withdrawn or one.name[0] != family:
                continue
            if len(found) >= MOST_SAMPLED or size >= SAMPLED_BYTES:
                return DocumentSample(tuple(found), whole=False)
            content = one.envelope.notification.payload
            if content is not None:
                found.append(content)
                size += len(content)
        return DocumentSample(tuple(found))
