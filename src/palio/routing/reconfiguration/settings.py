"""Which protocol reconfigures tables, and its times. Beside each default stands where it comes from."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from palio.model.amounts import Seconds, SecondsOrNone

Protocol: TypeAlias = Literal["strawman", "deferred", "notified", "informed"]


class ReconfigurationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Each broker of a network may have its own."""

    protocol: Protocol = "notified"
    # Seconds for which the rows of a lost link are parked; none: they are dropped at once. (The 3 seconds of
    # the protocol's authors; repairs take one to three, see docs/overlay.md.)
    defer: SecondsOrNone = 3.0
    # Seconds after which is told what was held back from a new link (a guess: when parked rows are gone, and
    # everybody has heard of it).
    hold_back: Seconds = 5.0

    @property
    def parks_for(self) -> float:
        """Seconds for which rows are parked."""
        return 0.0 if self.protocol == "strawman" else self.defer

    @property
    def notifies(self) -> bool:
        """Whether it is said when the rows of a new link have passed."""
        return self.protocol in ("notified", "informed")

    @property
    def informs(self) -> bool:
        """Whether a new link is not told what only its other end has wanted."""
        return self.protocol == "informed"
