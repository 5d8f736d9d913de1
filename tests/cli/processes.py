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

PALIO = [sys.executable, "-m", "palio.cli.main"]
PATIENCE = 60.0  # for what takes a second on a machine with nothing else to do


def await_condition(holds: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> Any:
    """What `holds` gives as soon as it is true; fails when the process ends before, or after a long time."""
    until = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < until, "this takes too long"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)
    return found


@contextmanager
def started(*arguments: str, environment: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, running in a folder; it is killed if it is still there at the end."""
    process = subprocess.Popen(
        [*PALIO, *arguments], cwd=folder, env=environment, encoding="utf-8",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def broker_up(
    *arguments: str, environment: dict[str, str], folder: Path
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`palio up` on free ports, and what it says about itself."""
    ready = folder / "ready.json"
    free = ("--listen", "127.0.0.1:0", "--http", "off", "--ready-file", str(ready))
    with started("up", *free, *arguments, environment=environment, folder=folder) as process:
        await_condition(ready.exists, process)
        yield process, json.loads(ready.read_text())
