"""Folders of this machine for as long as a process lives, however it ends.

A process that ends in order removes its folders. One that is killed cannot; but it holds a lock in each, which
ends with it. Whoever makes the next folder removes those that are not locked. A folder that is quite new may
not be locked yet, so it is left alone.
"""

from __future__ import annotations

import atexit
import fcntl
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO

_PREFIX = "palio-shards-"
_LOCK = ".lock"
_NEW = 60.0  # seconds
_held: list[IO[str]] = []


def scratch_folder() -> str:
    """A folder that goes with this process."""
    for other in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _remove_if_left(other)
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    lock = open(Path(folder, _LOCK), "w")  # noqa: SIM115 - it is to be held to the end
    fcntl.flock(lock, fcntl.LOCK_EX)
    _held.append(lock)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_if_left(folder: Path) -> None:
    try:
        if time.time() - folder.stat().st_mtime < _NEW:
            return
        with open(folder / _LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # it is locked, or somebody else's, or gone meanwhile
        return
