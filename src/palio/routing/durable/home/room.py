"""Backpressure of a home: what it keeps for one subscription; the rest stays in the journals.

All subscriptions of an owner share what is kept for it: who has many of them keeps less for each, and the
broker no more for all of them.
"""

from __future__ import annotations

from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.home.subscription import Durable

# What each subscription may keep however many there are: it could not be read at all with less.
LEAST = 32
LEAST_BYTES = 1 << 16


class Room:
    """The limits of outboxes, by number and by bytes. What is being written counts as if it were there."""

    def __init__(self, settings: DurableSettings) -> None:
        self._settings = settings
        self._known: dict[int, tuple[int, int]] = {}  # by how many there are: it is asked for every event

    def _most(self, several: int) -> tuple[int, int]:
        """How many deliveries, and how many bytes of them, may be kept for one of so many subscriptions."""
        settings = self._settings
        known = self._known[several] = (
            min(settings.outbox, max(LEAST, settings.outboxes // several)),
            min(settings.outbox_bytes, max(LEAST_BYTES, settings.outboxes_bytes // several)),
        )
        return known

    def is_full(self, durable: Durable, taken: int = 0, taken_bytes: int = 0) -> bool:
        """Whether nothing more fits beside what there is, and what was just taken."""
        outbox, several = durable.outbox, durable.siblings.count
        most, most_bytes = self._known.get(several) or self._most(several)
        return (
            len(outbox.deliveries) + durable.spooling + taken >= most
            or outbox.bytes + durable.spooling_bytes + taken_bytes >= most_bytes
        )

    def left(self, durable: Durable, taken: int = 0, taken_bytes: int = 0) -> int:
        """How many deliveries more may be kept, beside what was just taken and what journals were asked for."""
        if self.is_full(durable, taken, taken_bytes):
            return 0
        asked_for = sum([one.limit for one in durable.catching_up.values()])
        most, _ = self._most(durable.siblings.count)
        return max(0, most - len(durable.outbox) - durable.spooling - taken - asked_for)

    def is_half_empty(self, durable: Durable) -> bool:
        """Whether it is worth while to fetch what did not fit."""
        outbox, several = durable.outbox, durable.siblings.count
        most, most_bytes = self._known.get(several) or self._most(several)
        return (
            2 * (len(outbox) + durable.spooling) < most
            and 2 * (outbox.bytes + durable.spooling_bytes) < most_bytes
        )
