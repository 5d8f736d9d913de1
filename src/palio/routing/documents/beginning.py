"""`RetroactivePosition`: up to where a subscription is given current documents, and from where on what comes.

    attach ──> position ──> current documents up to it, page by page ──> what is published after it

1. The subscription is there before the position is taken: what is published after the position comes by it, and
   is not trimmed. What came by it before belongs to the position, and is passed over by whoever reads (`has`).
2. All that was published up to the position has been heard of when it is taken: of the own journal all that is
   on disk, of others what is kept here, once that is as far as the subscription (`RetroactiveSearch`).
3. Where the subscription begins is on disk before the position is taken: after a crash it would begin later,
   and what was published between would be neither among the documents nor after them.
"""

from __future__ import annotations

from collections.abc import Callable
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


class RetroactiveSearch:
    """Looks for a position, as often as it is asked, until there is one."""

    def __init__(self, broker: str, keep: Filter | None) -> None:
        """`keep` is what this broker keeps of others, if it keeps anything."""
        self._broker = broker
        self._keep = keep
        self._wanted: dict[str, int] | None = None

    def look(
        self, subscription: Durable | None, heard: Callable[[str], int | None], head: int
    ) -> RetroactivePosition | None:
        """The position of a subscription, if all has been heard of that it needs (2).

        `heard` says up to which sequence all of a broker is kept; the own journal is on disk up to `head`.
        """
        if subscription is None or self._broker not in subscription.stored_position:
            return None
        if self._keep is None:
            return RetroactivePosition(self._broker, {self._broker: head}, None)
        there = {one: upto for one, upto in subscription.position.items() if one != self._broker}
        if subscription.state is not HomeState.LIVE or not there.keys() <= subscription.stored_position.keys():
            return None
        if self._wanted is None:
            self._wanted = there
        # A position goes back where a journal came back older: nobody will hear of what was there before.
        self._wanted = {one: min(upto, there.get(one, 0)) for one, upto in self._wanted.items()}
        known = {origin: heard(origin) for origin in self._wanted}
        if any((known[origin] or 0) < sequence for origin, sequence in self._wanted.items()):
            return None
        position = {origin: one for origin, one in known.items() if one is not None}
        return RetroactivePosition(self._broker, position | {self._broker: head}, str(self._keep))

    def late(self, heard: Callable[[str], int | None]) -> tuple[str, int]:
        """What was not heard of so far: a broker, and up to where that would have to be."""
        wanted = (self._wanted or {}).items()
        missing = ((origin, upto) for origin, upto in wanted if (heard(origin) or 0) < upto)
        return next(missing, (self._broker, 0))
