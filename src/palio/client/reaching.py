"""Reaching back: what `since` means."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from palio.model.filter import Filter
from palio.model.values import check_time
from palio.routing.durable.messages import Attach

# A moment, seconds since 1970, "all", "now", or a position: by origin the last sequence that is not wanted.
Since: TypeAlias = datetime | float | str | Mapping[str, int]

# Seconds that a temporary subscription outlives a lost connection, for its client to come back.
LINGER = 60.0


def attach_request(
    name: str,
    filter: Filter,
    since: Since | None,
    *,
    in_flight: int | None,
    anew: bool,
    temporary: bool,
) -> Attach:
    """The request for a durable subscription."""
    more: dict[str, Any] = {}
    if isinstance(since, Mapping):
        more["after"] = dict(since)
    elif isinstance(since, datetime):
        more["since"] = check_time(since, "since").timestamp()
    elif since is not None:
        more["since"] = since if isinstance(since, str) else float(since)
    if temporary:
        more["linger"] = LINGER
    if in_flight is not None:
        more["in_flight"] = in_flight
    # A temporary one has a name that nobody has had: it need not be looked for at brokers that are away.
    return Attach(name, filter, anew=anew or temporary, **more)
