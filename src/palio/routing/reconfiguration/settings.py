"""Which protocol reconfigures tables, and its times. Beside each default stands where it comes from."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

import msgspec

from palio.model.amounts import Seconds, SecondsOrNone

# With `auto`: seconds before any repair was seen, as by default; then so many times what the slowest of the
# latest took, within bounds (guesses: what is parked too long costs less than what is told twice).
FIRST_DEFER = 3.0
AMPLE = 2.0
SHORTEST_DEFER, LONGEST_DEFER = 0.5, 60.0

Protocol: TypeAlias = Literal["strawman", "deferred", "notified", "informed"]


class ReconfigurationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Each broker of a network may have its own."""

    protocol: Protocol = "notified"
    # Seconds for which the rows of a lost link are parked; none: they are dropped at once. (The 3 seconds of
    # the protocol's authors; repairs take one to three, see docs/overlay.md.) `auto` follows the repairs seen.
    defer: SecondsOrNone | Literal["auto"] = 3.0
    # Seconds after which is told what was held back from a new link (a guess: when parked rows are gone, and
    # everybody has heard of it).
    hold_back: Seconds = 5.0

    def parks_for(self, repairs: Collection[float]) -> float:
        """Seconds for which rows are parked, where the latest repairs have taken so long."""
        if self.protocol == "strawman":
            return 0.0
        if self.defer != "auto":
            return self.defer
        if not repairs:
            return FIRST_DEFER
        return min(max(AMPLE * max(repairs), SHORTEST_DEFER), LONGEST_DEFER)

    @property
    def notifies(self) -> bool:
        """Whether it is said when the rows of a new link have passed."""
        return self.protocol in ("notified", "informed")

    @property
    def informs(self) -> bool:
        """Whether a new link is not told what only its other end has wanted."""
        return self.protocol == "informed"
