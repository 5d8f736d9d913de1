"""Counters of what a broker has dropped and refused since it started, by reason, whichever of its parts has."""

from __future__ import annotations

from collections import Counter

import msgspec


class BrokerCounts(msgspec.Struct, eq=False):
    """Events that were dropped; connections and requests that were refused, by the name of the error."""

    dropped: Counter[str] = msgspec.field(default_factory=Counter)
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    refused_requests: Counter[str] = msgspec.field(default_factory=Counter)
