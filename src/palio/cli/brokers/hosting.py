"""A broker in this process, from its start to its end: for `palio up` and for `palio network up`."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from palio.broker.settings import Settings
from palio.cli.program.extras import missing_of
from palio.cli.program.terminal import ExitCode
from palio.model.errors import PalioError

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.extension import Installer
    from palio.broker.standby import Standby

# How many objects may come into being between two looks for garbage: some batches of events.
_GARBAGE_EVERY = 50_000
# Seconds after which the thread of the store gets its turn beside a busy event loop, and the other way round:
# where one client is busy, and where others wait for what the thread writes. It needs some turns for each group
# of writes.
_SWITCH_EVERY = 0.0005
_SWITCH_CROWDED = 0.0001
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class CannotStart(PalioError):
    """A broker that could not be started, for a reason of the machine."""


class BrokerFailed(PalioError):
    """A broker that could not go on."""

    reason: str
    sentence = "The broker cannot go on and has stopped: {reason}"


# What rooms above the broker add to every broker that is started here.
EXTENSIONS: tuple[Installer, ...] = ()


def host(
    settings: Settings,
    started: Callable[[BrokerServer], None],
    *,
    life: int | None = None,
    standby: bool = False,
) -> None:
    """Run a broker, with all extensions, until a signal, or the end of the pipe `life`, stops it in order.

    A second signal ends it at once. `started` is called when it is up. A `standby` waits until nobody else has
    its store, and then begins. Raises `CannotStart`, `BrokerFailed` and what stores raise; `MissingDependency`
    where only the client is installed.
    """
    if standby and not settings.journal:
        raise CannotStart(
            "A standby waits for the store of a broker, and this one is to keep nothing: leave out --standby, "
            "or --no-journal, --relay, and the settings journal and relay."
        )
    if (missing := missing_of("broker")) is not None:
        raise missing
    import uvloop  # noqa: PLC0415 (only who runs a broker has it)

    from palio.broker import logs  # noqa: PLC0415
    from palio.broker.broker import BrokerServer  # noqa: PLC0415
    from palio.broker.host import MachineHost  # noqa: PLC0415
    from palio.broker.memory import keep_little  # noqa: PLC0415

    logs.set_up(settings.log_level, settings.log_format)
    stop = asyncio.Event()
    machine = MachineHost(time.time, _standby(stop) if standby else None)
    try:
        broker = BrokerServer(settings, host=machine, extensions=EXTENSIONS)
    except OSError as problem:
        raise _no_data(settings, problem) from None
    # Filters stay and events pass: looking through all that stays, again and again, finds nothing.
    gc.set_threshold(_GARBAGE_EVERY, 20, 50)
    sys.setswitchinterval(_SWITCH_EVERY)
    broker.scheduler.crowding = _let_threads_in
    keep_little()
    uvloop.run(_serve(broker, started, stop, life))


def _standby(stop: asyncio.Event) -> Standby:
    from palio.broker.standby import Standby  # noqa: PLC0415 (only where it is wanted: it loads the store)

    return Standby(stop)


def _let_threads_in(crowded: bool) -> None:
    sys.setswitchinterval(_SWITCH_CROWDED if crowded else _SWITCH_EVERY)


async def _serve(
    broker: BrokerServer, started: Callable[[BrokerServer], None], stop: asyncio.Event, life: int | None
) -> None:
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        if stop.is_set():
            os._exit(ExitCode.INTERRUPTED)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    if life is not None:
        loop.add_reader(life, _watch, life, stop)
    if not await _start(broker):
        return
    try:
        started(broker)
        assert broker.failed is not None
        stopped = loop.create_task(stop.wait())
        awaited: list[asyncio.Future[Any]] = [stopped, broker.failed, broker.left]
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
    finally:
        stop.set()
        await broker.stop()
    if broker.failed.done():
        raise BrokerFailed(broker.failed.result())


def _watch(life: int, stop: asyncio.Event) -> None:
    """Whoever holds the other end of the pipe says nothing; when it ends, so does this broker."""
    if not os.read(life, 1024):
        asyncio.get_running_loop().remove_reader(life)
        stop.set()


async def _start(broker: BrokerServer) -> bool:
    """Start it. False if it was a standby, and was told to end before it had anything to do."""
    from palio.broker.host import StandbyEnded  # noqa: PLC0415 (only who runs a broker has it)

    try:
        await broker.start()
    except StandbyEnded:
        await broker.stop()
        return False
    except BaseException as problem:
        await broker.stop()
        if isinstance(problem, PalioError) or not isinstance(problem, OSError):
            raise
        raise _reason(broker, problem) from None
    return True


def _reason(broker: BrokerServer, problem: OSError) -> CannotStart:
    """What a failed start comes from: the ports for clients are opened after the data, that for HTTP last."""
    settings = broker.settings
    if problem.errno in _NO_ROOM:  # also for a file without a name; no socket needs any
        return CannotStart(
            f"There is no room for data in {settings.data}: {problem.strerror}. "
            "Make room there, choose another folder with --data, or keep nothing with --no-journal."
        )
    which, flag, address = "clients", "--listen", settings.listen
    if broker.quic_port or (broker.port and settings.quic == "off"):
        which, flag, address = "HTTP", "--http", settings.http
    elif broker.port:
        which, flag, address = "QUIC", "--quic", settings.quic
    elif problem.filename is not None:
        return _no_data(settings, problem)
    if problem.errno == errno.EADDRINUSE:
        instead = f"{address.rpartition(':')[0]}:0 (any free port)"
        return CannotStart(
            f"The address {address} for {which} is in use, perhaps by another broker. "
            f"Stop that one, or choose another address with {flag}, such as {instead}."
        )
    why = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else str(problem)
    return CannotStart(
        f"The broker cannot listen at {address} for {which}: {why}. Choose another address with {flag}."
    )


def _no_data(settings: Settings, problem: OSError) -> CannotStart:
    return CannotStart(
        f"The folder {settings.data} cannot be used for data: {problem.strerror or problem}. "
        "Choose another one with --data, or keep nothing with --no-journal."
    )
