"""Backpressure of a home: what it keeps for one subscription; the rest stays in the journals."""

from __future__ import annotations

from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.home.subscription import Durable


class Room:
    """The limits of outboxes, by number and by bytes. What is being written counts as if it were there."""

    def __init__(self, settings: DurableSettings) -> None:
        self._most = settings.outbox
        self._most_bytes = settings.outbox_bytes

    def is_full(self, durable: Durable, taken: int = 0) -> bool:
        """Whether nothing more fits beside what there is, and what was just taken."""
        outbox = durable.outbox
        return (
            len(outbox.deliveries) + durable.spooling + taken >= self._most
            or outbox.bytes + durable.spooling_bytes >= self._most_bytes
        )

    def left(self, durable: Durable) -> int:
        """How many deliveries more may be kept, beside those that journals were asked for."""
        if self.is_full(durable):
            return 0
        asked_for = sum([one.limit for one in durable.catching_up.values()])
        return max(0, self._most - len(durable.outbox) - durable.spooling - asked_for)

    def is_half_empty(self, durable: Durable) -> bool:
        """Whether it is worth while to fetch what did not fit."""
        outbox = durable.outbox
        return (
            2 * (len(outbox) + durable.spooling) < self._most
            and 2 * (outbox.bytes + durable.spooling_bytes) < self._most_bytes
        )
