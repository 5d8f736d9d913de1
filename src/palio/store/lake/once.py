"""Files that are created completely or not at all, and only if there is none: how versions are committed.

What a version names has to be on the disk before it: a loss of power may take what was never synced, even if it
is older. Files that we write are synced by whoever writes them, those of others by `sync_tree`.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def create_once(path: Path, data: bytes) -> None:
    """Create a file that survives a loss of power. Raises `FileExistsError`; of several one succeeds."""
    draft = path.parent / f".{secrets.token_hex(8)}.draft"
    with open(draft, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    finally:
        draft.unlink()
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder, and those above it, where they are not there; they survive a loss of power."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_tree(folder: Path) -> None:
    """What somebody else has written below a folder survives a loss of power, as does the folder."""
    for below, _, names in os.walk(folder):
        for name in names:
            _sync(Path(below, name))
        sync_folder(Path(below))
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """What was created in a folder survives a loss of power."""
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
