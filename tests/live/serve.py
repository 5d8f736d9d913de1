"""`palio up` with a clock that can be set: `main`, with the arguments SETTINGS, READY and CLOCK.

The file CLOCK has the seconds by which the clock is wrong, and is read again on SIGUSR1; a copy of it,
CLOCK.read, tells that. READY is written when the broker is up.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

import uvloop

from palio.broker import logs
from palio.broker.broker import BrokerServer
from palio.broker.settings import load
from palio.cli.brokers.up import write_ports


class WrongClock:
    """The time of this machine, but for so many seconds."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0.0
        self.read()

    def read(self) -> None:
        text = self._file.read_text()
        self._offset = float(text)
        self._file.with_suffix(".read").write_text(text)

    def __call__(self) -> float:
        return time.time() + self._offset


async def serve(settings: Path, ready: Path, clock_file: Path) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    clock = WrongClock(clock_file)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, clock.read)
    given = load(str(settings))
    logs.set_up(given.log_level, given.log_format)
    broker = BrokerServer(given, clock=clock)
    await broker.start()
    write_ports(ready, broker)
    await stop.wait()
    await broker.stop()


def main() -> None:
    uvloop.run(serve(*map(Path, sys.argv[1:])))
