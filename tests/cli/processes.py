"""Brokers as processes, for tests: started by the program, awaited, ended."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.forks import Forked, forks

PALIO = [sys.executable, "-m", "palio.cli.main"]
PATIENCE = 60.0  # for what takes a second on a machine with nothing else to do


Process = Forked | subprocess.Popen[str]


# A process that is started in the background ignores Ctrl-C, and so does what it starts. Who begins with these
# words is in the foreground, as if a shell had started it there.
IN_FOREGROUND = [
    sys.executable, "-S", "-E", "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])",
]  # fmt: skip


def await_condition(holds: Callable[[], Any], process: Process | None = None) -> Any:
    """What `holds` gives as soon as it is true; fails when the process ends before, or after a long time."""
    until = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < until, "this takes too long"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)
    return found


@contextmanager
def started(
    *arguments: str, environment: dict[str, str], folder: Path, anew: bool = False
) -> Iterator[Process]:
    """The program, running in a folder; it is killed if it is still there at the end.

    It is forked from a process that has loaded it, or with `anew` started as a shell does that.
    """
    process: Process
    if anew:
        process = subprocess.Popen(
            [*IN_FOREGROUND, *PALIO, *arguments], cwd=folder, env=environment, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    else:
        process = forks().start(*arguments, environment=environment, folder=folder)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def broker_up(
    *arguments: str, environment: dict[str, str], folder: Path, anew: bool = False
) -> Iterator[tuple[Process, dict[str, Any]]]:
    """`palio up` on free ports, and what it says about itself."""
    ready = folder / "ready.json"
    free = ("--listen", "127.0.0.1:0", "--http", "off", "--ready-file", str(ready))
    with started("up", *free, *arguments, environment=environment, folder=folder, anew=anew) as process:
        await_condition(ready.exists, process)
        yield process, json.loads(ready.read_text())
