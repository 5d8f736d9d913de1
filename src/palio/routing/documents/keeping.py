"""`KeptDocuments`: what a broker keeps of the documents of others, and how far it has heard of them.

1. A keeper is told of all versions of every document that may be selected, also of those that are not: what a
   document is called never changes, so only conditions on that are asked for (`widened`). A version that the
   filter does not select takes the place of one that it does, without its content.
2. What comes again changes nothing (`current`, 2), so all brokers with the same filter that have heard the same
   keep the same.
3. How far a journal was heard of (`heard`) is what the durable subscription here knows: all up to there is on
   disk, or was not selected. For what was handed out is acknowledged once it is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from palio.documents.reserved import FAMILY, KEY
from palio.model.conjunction import Conjunction
from palio.model.filter import Filter
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import Attach
from palio.protocol.durable.wishes import LONGEST_WAIT, MAX_ATTEMPTS
from palio.protocol.envelope import Envelope
from palio.routing.documents.current import KEPT, Versions, document_name, record_key
from palio.routing.durable.effects import KeyedRecord

if TYPE_CHECKING:
    from palio.routing.durable.home.subscription import Durable

IN_FLIGHT: Final = 64
_VERSIONS_OF_DOCUMENTS = Filter.parse(f"exists(string {FAMILY}) and exists(string {KEY})")
# It is no attempt that failed if the disk is full, and nothing is a dead letter.
_TAKER = Patience(in_flight=IN_FLIGHT, acknowledge_within=LONGEST_WAIT, attempts=MAX_ATTEMPTS)


def widened(keep: Filter) -> Filter:
    """All versions of documents that a filter may select one version of (1)."""
    boxes = [
        Conjunction.of({name: box.sides[name] for name in (FAMILY, KEY) if name in box.sides})
        for box in keep.conjunctions
    ]
    return Filter(tuple(boxes)).intersect(_VERSIONS_OF_DOCUMENTS)


class KeptDocuments:
    """What a filter selects of the documents of others, at a broker of this name."""

    def __init__(
        self, keep: Filter, own: str, tell: Callable[[Envelope, str], None] = lambda envelope, record: None
    ) -> None:
        """`tell` hears of each version that is kept, and what its record is called."""
        self.filter = keep
        self._tell = tell
        self._own = own
        self._wanted = widened(keep)

    def attach(self, name: str) -> Attach:
        """What the durable subscription is asked for by which documents come; it begins with all there is."""
        return Attach(name, self._wanted, since="all", in_flight=IN_FLIGHT, patience=_TAKER, as_is=True)

    def changes(
        self, record: Callable[[str, str], bytes | None], envelopes: Iterable[Envelope]
    ) -> list[KeyedRecord]:
        """The records that change by what was heard; `record` looks one up, by its kind and key."""
        changed: dict[str, Versions] = {}
        before: dict[str, Versions] = {}
        for envelope in envelopes:
            name = document_name(envelope.notification)
            if name is None or envelope.origin == self._own:  # what was published here has its own record
                continue
            key = record_key(*name)
            if key not in changed:
                before[key] = changed[key] = Versions.of(record(KEPT, key))
            versions = changed[key].with_version(envelope, self.filter)
            if versions is not changed[key] and self.filter.matches(envelope.notification):
                self._tell(envelope, key)
            changed[key] = versions
        return [
            KeyedRecord(KEPT, key, versions.encoded)
            for key, versions in changed.items()
            if versions is not before[key]
        ]

    def heard(self, durable: Durable | None, origin: str) -> int | None:
        """Up to which sequence all is kept that is to be kept of a broker; None if it is not heard of (3)."""
        if durable is None or origin not in durable.stored_position:
            return None
        waiting = [
            one.envelope.sequence for one in durable.outbox.deliveries.values() if one.envelope.origin == origin
        ]
        return min([durable.stored_position[origin][0], *[sequence - 1 for sequence in waiting]])
