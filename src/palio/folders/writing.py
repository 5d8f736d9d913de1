"""Writing events into a folder, each as one file that is complete or not there.

A file is written where nobody looks, made durable, and then renamed to its place; only then may the event be
acknowledged. So what a crash interrupts comes again, under the same name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from palio.client.event import Event
from palio.folders.errors import FolderUnusable
from palio.folders.rooms import OWN, FolderLock, make_durable, room

_XML_START = re.compile(rb"\s*(\xef\xbb\xbf)?\s*<")


class OutFolder:
    """A folder in which others find files. Only one writer has it at a time.

    `describe` writes down all that there is to say about an event; with `metadata` that lies beside a document.
    """

    def __init__(self, folder: Path, describe: Callable[[Event], str], *, metadata: bool = False) -> None:
        self._folder = folder
        self._describe = describe
        self._metadata = metadata
        self._lock = FolderLock(folder)
        try:
            self._half = room(folder, OWN, "half")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._lock.release()

    def write(self, event: Event) -> str:
        """Write an event, and return the name of its file. Raises `FolderUnusable`."""
        # As long as numbers are of one length, names are in the order of publication.
        name = f"{quote(event.origin, safe='')}-{event.sequence:012}"
        payload = event.payload
        is_document = payload is not None and _XML_START.match(payload) is not None
        try:
            if not is_document or self._metadata:
                self._put(f"{name}.json", f"{self._describe(event)}\n".encode())
            if is_document and payload is not None:
                self._put(f"{name}.xml", payload)
            make_durable(self._folder)
        except OSError as problem:
            raise FolderUnusable(str(self._folder), problem.strerror or str(problem)) from None
        return f"{name}.xml" if is_document else f"{name}.json"

    def _put(self, name: str, content: bytes) -> None:
        half = self._half / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(half, flags, 0o666), "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        half.rename(self._folder / name)
