"""The rooms of a folder: what else is kept in it, beside the files that are meant for others.

All of it is in the same file system as the folder itself, because a rename is atomic only there; so a link or a
mount in the place of a room is refused."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from stat import S_ISDIR

from palio.folders.errors import FolderInUse, FolderUnusable

OWN = ".palio"


def room(folder: Path, *path: str) -> Path:
    """A folder within a folder, made if it is not there. Raises `FolderUnusable`."""
    place = folder.joinpath(*path)
    try:
        place.mkdir(parents=True, exist_ok=True)
        whole = folder.stat()
        for depth in range(1, len(path) + 1):
            part = folder.joinpath(*path[:depth])
            found = part.lstat()
            if not S_ISDIR(found.st_mode) or found.st_dev != whole.st_dev:
                raise FolderUnusable(str(part), "it has to be a folder, in the same file system")
    except OSError as problem:
        raise FolderUnusable(str(place), problem.strerror or str(problem)) from None
    return place


class FolderLock:
    """Whoever has it is the only watcher of a folder; it ends with the process at the latest."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise FolderUnusable(str(folder), "it is no folder, or not there")
        place = room(folder, OWN) / "lock"
        try:
            self._descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise FolderUnusable(str(folder), problem.strerror or str(problem)) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise FolderInUse(str(folder)) from None

    def release(self) -> None:
        os.close(self._descriptor)


def make_durable(folder: Path) -> None:
    """Have the names in a folder written to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shown(name: str) -> str:
    """A file name as it can be told: whatever bytes it has, it becomes a text."""
    return os.fsencode(name).decode(errors="replace")
