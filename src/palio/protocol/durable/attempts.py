"""Delivery attempts that failed: when, to whom, and why.

So that whoever finds a dead letter need not guess. It is kept beside the delivery in memory, goes with it to
another home, and is written with the dead letter; what is not dead yet has forgotten it after a crash. Of many
attempts the last few are kept, and texts are short, so that nothing grows by failing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from palio.protocol.base import Moment

# Of one delivery. The first attempts fail as the last do, mostly.
MAX_FAILURES = 8
# Characters of a reason: a sentence or two. A taker cuts what is longer.
MAX_REASON = 500
Kind: TypeAlias = Literal["rejected", "not acknowledged in time", "taker left"]


class Failure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An attempt that failed, to a taker (its session); a reason, if the taker gave one."""

    time: Moment
    taker: str
    kind: Kind
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


Failures: TypeAlias = tuple[Failure, ...]
# By the number of the delivery.
FailuresOf: TypeAlias = tuple[tuple[int, Failures], ...]


def one_more(failures: Failures, failure: Failure) -> Failures:
    """The last few failures, with one more."""
    return (*failures[1 - MAX_FAILURES :], failure)


def weight(failures: Failures) -> int:
    """About how many bytes takers' reasons have; what else there is of a few failures is small, and bounded."""
    return sum([len(one.reason) for one in failures]) if failures else 0
