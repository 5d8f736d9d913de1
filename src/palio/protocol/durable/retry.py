"""Retry policies, of a taker and of a subscription: how often, and after which pauses."""

from __future__ import annotations

import msgspec

from palio.protocol.base import Moment, Number


class Patience(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The retry policy for a taker. Times are in seconds."""

    in_flight: int = 64
    acknowledge_within: float = 30.0
    first_pause: float = 0.5
    longest_pause: float = 60.0
    attempts: int = 5


class Retry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The retry policy of a subscription: how often, and after which pauses; None: as otherwise.

    It belongs to the subscription, whoever its taker is, while `Patience` is for a taker.
    """

    attempts: Number | None = None
    first_pause: Moment | None = None
    longest_pause: Moment | None = None

    def applied(self, patience: Patience) -> Patience:
        """The patience of a broker or a taker, with what the subscription wants."""
        first = patience.first_pause if self.first_pause is None else self.first_pause
        # Whoever asks for a long first pause and nothing else means it.
        longest = max(first, patience.longest_pause) if self.longest_pause is None else self.longest_pause
        attempts = patience.attempts if self.attempts is None else self.attempts
        return msgspec.structs.replace(patience, first_pause=first, longest_pause=longest, attempts=attempts)
