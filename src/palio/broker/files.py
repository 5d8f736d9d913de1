"""Files that others may change while a broker runs."""

from __future__ import annotations

from pathlib import Path


class Watched:
    """A file that may change at any time. `changed` says whether it has since it was last asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: object = ...  # nothing that a file can be: it has not been looked at

    def changed(self) -> bool:
        """Whether the file is another one than the last time; True the first time."""
        try:
            status = self.path.stat()
            seen = (status.st_mtime_ns, status.st_ino, status.st_size)
        except OSError:
            seen = None
        before, self._seen = self._seen, seen
        return seen != before
