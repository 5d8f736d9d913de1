"""Files that are created completely or not at all, and only if there is none: how versions are committed."""

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


def sync_folder(folder: Path) -> None:
    """What was created in a folder survives a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
