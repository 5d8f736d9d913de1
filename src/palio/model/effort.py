"""A bound on work: whoever decides something spends effort, and gives up when none is left.

Filters come from strangers. Each question about them has an answer, but some would take days to find; every
search therefore gets a fixed amount of effort, and its caller a safe answer for the case that it ran out.
"""

from __future__ import annotations


class Undecided(Exception):
    """The effort ran out before the answer was found."""


class Effort:
    """How many units of work may still be done; what a unit is, the spender says."""

    __slots__ = ("left",)

    def __init__(self, units: int) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Raises `Undecided` once more was spent than there was."""
        self.left -= units
        if self.left < 0:
            raise Undecided
