"""A broker as a process of the live tests: `python -m tests.live.serve SETTINGS READY [CLOCK]`.

Like `palio up`, but its clock can be set: the file CLOCK has the seconds by which it is wrong, and is read again
on SIGUSR1. READY is written, all at once, when the broker is up.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import uvloop

from palio.broker import logs
from palio.broker.broker import Broker
from palio.broker.settings import load


class WrongClock:
    """The time of this machine, but for so many seconds."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0.0
        self.read()

    def read(self) -> None:
        self._offset = float(self._file.read_text())

    def __call__(self) -> float:
        return time.time() + self._offset


async def serve(settings: str, ready: Path, clock_file: Path | None) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    clock = WrongClock(clock_file) if clock_file is not None else None
    if clock is not None:
        loop.add_signal_handler(signal.SIGUSR1, clock.read)
    given = load(settings, environment={})
    logs.set_up(given.log_level, given.log_format)
    broker = Broker(given, clock=clock) if clock is not None else Broker(given)
    await broker.start()
    new = ready.with_suffix(".new")
    new.write_text(json.dumps({"port": broker.port, "http_port": broker.http_port, "pid": os.getpid()}))
    new.replace(ready)
    assert broker.failed is not None
    stopping = loop.create_task(stop.wait())
    await asyncio.wait([stopping, broker.failed], return_when=asyncio.FIRST_COMPLETED)
    await broker.stop()
    return 1 if broker.failed.done() else 0


if __name__ == "__main__":
    paths = [Path(argument) for argument in sys.argv[1:]]
    sys.exit(uvloop.run(serve(str(paths[0]), paths[1], paths[2] if len(paths) > 2 else None)))
