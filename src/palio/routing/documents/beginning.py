"""`RetroactivePosition`: up to where a subscription is given current documents, and from where on what comes.

    attach ──> position ──> current documents up to it, page by page ──> what is published after it

1. The subscription is there before the position is taken: what is published after the position comes by it, and
   is not trimmed. What came by it before belongs to the position, and is passed over by whoever reads (`has`).
2. All that was published up to the position has been heard of when it is taken: of the own journal all that is
   on disk, of others what is kept here, once that is as far as the subscription (`missing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.routing.documents.current import document_name
from palio.routing.durable.home.subscription import HomeState

if TYPE_CHECKING:
    from palio.routing.durable.home.subscription import Durable


class RetroactivePosition(msgspec.Struct, frozen=True):
    """Up to where documents are given: by origin, and of others than this broker what `keep` selects."""

    broker: str
    position: dict[str, int]
    keep: str | None

    def has(self, envelope: Envelope) -> bool:
        """Whether something is a version of a document that is not newer (1)."""
        if envelope.sequence > self.position.get(envelope.origin, -1):
            return False
        if document_name(envelope.notification) is None:
            return False
        kept = self.keep is not None and Filter.parse(self.keep).matches(envelope.notification)
        return envelope.origin == self.broker or kept


def needed(durable: Durable | None, own: str) -> dict[str, int] | None:
    """How far other journals have to be heard of, for a position after a subscription's beginning; None as long
    as that is not live.
    """
    if durable is None or durable.state is not HomeState.LIVE:
        return None
    return {origin: sequence for origin, sequence in durable.position.items() if origin != own}


def missing(wanted: Mapping[str, int], heard: Mapping[str, int | None]) -> str | None:
    """An origin that was not heard of so far, if there is one (2)."""
    return next((origin for origin, sequence in wanted.items() if (heard[origin] or 0) < sequence), None)
