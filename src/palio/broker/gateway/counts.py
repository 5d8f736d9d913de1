"""Counters of the gateway."""

from __future__ import annotations

import msgspec


class GatewayStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What was done over HTTP since the broker started."""

    requests: dict[tuple[str, int], int] = {}  # by route and status
    pushes: dict[str, int] = {}  # "taken", or why a webhook did not take an event
    streams: int = 0
    streams_cut_off: int = 0
    subscriptions: int = 0
    held_bytes: int = 0  # of bodies that are being read, in memory
    filed_bytes: int = 0  # and in files
