"""Brokers in memory whose disks come back older than they were."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from palio.testing import Broker


def disk_of(broker: Broker) -> Any:
    """A copy of the disk of a broker, as it is now."""
    assert broker._host.place is not None
    return deepcopy(broker._host.place.disk)


async def come_back(broker: Broker, disk: Any) -> None:
    """The broker crashes, and begins anew with another disk."""
    await broker.crash()
    broker._host.place.disk = deepcopy(disk)
    await broker.start()
