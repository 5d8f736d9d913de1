"""`Host`: what is around a broker: time, timers, the disk. In use it is a machine, in a test it need not be."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from palio.broker.clock import MonotonicClock
from palio.broker.settings import Settings
from palio.broker.storing import StoreBridge
from palio.broker.timers import Cancellable
from palio.model.errors import PalioError

if TYPE_CHECKING:
    from palio.broker.gateway.definitions import Keeper
    from palio.broker.standby import Standby
    from palio.store import SqlStore, Store


# Lives of brokers are numbered by the clock from 2026 on, in eighths of a second: none begins and ends in less.
# So there is room for some 17 years (versions have 62 bits on the wire, of which lives have 32); from then on
# they are only counted.
_FIRST_LIFE = 1_767_225_600.0
_LIVES_A_SECOND = 8
_LAST_LIFE = 2**32 - 2**20


def life_at(now: float) -> int:
    """A number for a life of a broker that begins now: larger than those before, by the clock.

    The disk counts them, too, and what is larger is taken. But a disk may come back older than it was.
    """
    return min(max(0, int((now - _FIRST_LIFE) * _LIVES_A_SECOND)), _LAST_LIFE)


async def all_addresses(name: str) -> list[str]:
    """All machines that a name leads to, as the system says. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return sorted({str(address[0]).partition("%")[0] for *_, address in found})


class StandbyEnded(PalioError):
    """A standby that was told to end before it has taken over."""


class Host(Protocol):
    """Where a broker is."""

    @property
    def now(self) -> MonotonicClock:
        """The broker's time."""

    @property
    def changed(self) -> Callable[[], None] | None:
        """What is called after each turn of the broker, if anything."""

    def call_at(self, name: str, at: float, callback: Callable[[], None]) -> Cancellable:
        """Call something when the broker's time has come to a moment; `name` says what it is about."""

    async def open_store(self, settings: Settings, bridge: StoreBridge) -> Store:
        """The store that the settings ask for, which tells the bridge. Raises what it does."""

    async def addresses(self, name: str) -> list[str]:
        """All machines that a name leads to, by their addresses. Raises OSError."""

    def keeper(self, settings: Settings) -> Keeper:
        """Where the gateway keeps its subscriptions."""

    def spool_folder(self, settings: Settings) -> Path:
        """Where large requests lie while they come."""


class MachineHost:
    """A machine with a clock and a disk. With a `standby`, its broker waits for a store that another has."""

    def __init__(self, clock: Callable[[], float], standby: Standby | None = None) -> None:
        self.now = MonotonicClock(clock)
        self.changed = None
        self._standby = standby

    def call_at(self, name: str, at: float, callback: Callable[[], None]) -> Cancellable:
        return asyncio.get_running_loop().call_later(max(0.0, at - self.now.last), callback)

    async def open_store(self, settings: Settings, bridge: StoreBridge) -> Store:
        from palio.store import SqlStore  # noqa: PLC0415 (not needed without a journal)

        standby = self._standby

        def open_store() -> SqlStore:
            return SqlStore.open(
                settings.store_url,
                broker=settings.name,
                completed=bridge.completed,
                broken=bridge.broken,
                sync=settings.sync,
                retention=settings.durable.retention,
                remembered=settings.durable.remembered,
                lake=settings.lake or None,
                at_least=life_at(self.now()),
                log_bounds=settings.operations.bounds,
                present=standby is not None,
            )

        if standby is not None:
            await standby.look(settings.store_url, settings.name)
        Path(settings.data).mkdir(mode=0o700, parents=True, exist_ok=True)  # it is what rights are about
        if standby is None:
            store = await asyncio.to_thread(open_store)
        else:
            store = await standby.open(settings.name, open_store)
        settings.keep_name()
        return store

    async def addresses(self, name: str) -> list[str]:
        return await all_addresses(name)

    def keeper(self, settings: Settings) -> Keeper:
        from palio.broker.gateway.definitions import FileKeeper, MemoryKeeper  # noqa: PLC0415 (only with HTTP)

        return FileKeeper(Path(settings.data)) if settings.journal else MemoryKeeper()

    def spool_folder(self, settings: Settings) -> Path:
        """The data folder, which is on a disk; if there is none, that of temporary files."""
        return Path(settings.data) if settings.journal else Path(tempfile.gettempdir())
