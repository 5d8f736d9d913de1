"""An event as far as a pattern has to remember it."""

from __future__ import annotations

from typing import Any

import msgspec

# Times are microseconds since 1970. Before the first event nothing is late; after the last everything is known.
NEVER = -(2**62)
FOREVER = 2**62


def watermark_for(newest: int, delay: int) -> int:
    """The watermark where events may be so much older than the newest; others of its time may come, too."""
    return newest - delay - 1


class Hit(msgspec.Struct, array_like=True, gc=False):
    """One event that some steps of a pattern select.

    `steps` has a bit for each such step, `values` the attributes that are compared with those of other events.
    `spent` says that it cannot begin a match, or be part of one, any more: which of both, the policy knows.
    `told` says that what it began has been told, as a match or as what came of it.
    """

    time: int
    position: int
    steps: int
    id: str
    values: dict[str, Any] | None = None
    spent: bool = False
    told: bool = False

    def restore(self) -> None:
        """After it was read: lists are tuples, as everywhere else."""
        if self.values is not None:
            for name, value in self.values.items():
                if type(value) is list:
                    self.values[name] = tuple(value)
