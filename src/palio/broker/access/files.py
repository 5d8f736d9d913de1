"""How the files of the access folder are written: whole, one writer at a time, for their owner's eyes only."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Put a text into a file that nobody else may read; who reads it finds the old one or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Two programs that change the folder do so one after the other."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(folder / ".lock", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
