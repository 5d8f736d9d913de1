"""Counters of what a broker has dropped and refused since it started, by reason, whichever of its parts has."""

from __future__ import annotations

from collections import Counter


class BrokerCounts:
    """Events that were dropped; connections and requests that were refused, by the name of the error."""

    __slots__ = ("dropped", "refused", "refused_requests")

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.refused_requests: Counter[str] = Counter()
