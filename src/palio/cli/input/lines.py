"""Files, line by line: plain or gzip, from a path or from standard input, never more than a bounded line.

A line that cannot be taken (too long, not UTF-8) is handed on with its problem, so that the rest of the file
is still read. Only what stops the reading itself raises.
"""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import IO, cast

import msgspec

from palio.model.errors import PalioError
from palio.model.jsontext import MAX_JSON_BYTES

STANDARD_INPUT = "-"
# A line holds one JSON document, so its limit is that of a document.
MAX_LINE_BYTES = MAX_JSON_BYTES
_SKIPPED_AT_ONCE = 1_048_576
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class UnreadableInput(PalioError):
    """A file that cannot be opened, or not be read to its end."""

    file: str
    reason: str
    sentence = "Cannot read {file}: {reason}."


class InputLine(msgspec.Struct, frozen=True):
    """A line without its end; with a `problem`, there is no text."""

    number: int
    text: str
    problem: str | None = None

    @property
    def is_empty(self) -> bool:
        """Blank, or a comment."""
        return self.problem is None and (not self.text.strip() or self.text.lstrip().startswith("#"))


class LineFile:
    """A file to be read once. `size` and `position()` are in bytes as stored, for a progress bar.

    Raises `UnreadableInput` when it is opened and while it is read.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == STANDARD_INPUT else path
        self._stored = _open(path, self.name)
        self._owned = path != STANDARD_INPUT
        self.size = self._stored_size()

    def __enter__(self) -> LineFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._owned:
            self._stored.close()

    def position(self) -> int:
        """How many stored bytes have been read."""
        return self._stored.tell() if self.size is not None else 0

    def lines(self) -> Iterator[InputLine]:
        """All lines, numbered from 1."""
        try:
            content = self._content()
            number = 0
            while raw := content.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    _skip_line(content)
                    yield InputLine(
                        number, "", f"This line has more than {MAX_LINE_BYTES:,} bytes; it is skipped."
                    )
                    continue
                if number == 1:
                    raw = raw.removeprefix(_BYTE_ORDER_MARK)
                yield _decoded(number, raw)
        except (OSError, EOFError, zlib.error) as problem:
            raise UnreadableInput(self.name, _reason(problem)) from None

    def document(self) -> str:
        """The whole file as one text, bounded like a line."""
        try:
            raw = self._content().read(MAX_LINE_BYTES + 1)
        except (OSError, EOFError, zlib.error) as problem:
            raise UnreadableInput(self.name, _reason(problem)) from None
        if len(raw) > MAX_LINE_BYTES:
            raise UnreadableInput(self.name, f"it has more than {MAX_LINE_BYTES:,} bytes")
        line = _decoded(1, raw.removeprefix(_BYTE_ORDER_MARK))
        if line.problem:
            raise UnreadableInput(self.name, "its bytes are not UTF-8")
        return line.text

    def _content(self) -> IO[bytes]:
        """Unpacked if it is gzip, by its first bytes and not by its name: standard input has none."""
        peek = getattr(self._stored, "peek", None)
        if peek is not None and peek(2)[:2] == _GZIP_MAGIC:
            return cast("IO[bytes]", gzip.GzipFile(fileobj=self._stored))
        return self._stored

    def _stored_size(self) -> int | None:
        try:
            status = os.fstat(self._stored.fileno())
        except (OSError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None


def _open(path: str, name: str) -> IO[bytes]:
    if path == STANDARD_INPUT:
        if sys.stdin is None:  # a shell's `<&-`
            raise UnreadableInput(name, "it is closed")
        return cast("IO[bytes]", sys.stdin.buffer)
    try:
        return open(path, "rb")
    except (OSError, ValueError) as problem:
        raise UnreadableInput(name, _reason(problem)) from None


def _decoded(number: int, raw: bytes) -> InputLine:
    try:
        return InputLine(number, raw.decode().rstrip("\r\n"))
    except UnicodeDecodeError as problem:
        return InputLine(number, "", f"This line is not UTF-8: byte {problem.start + 1} cannot be read.")


def _skip_line(content: IO[bytes]) -> None:
    while (raw := content.readline(_SKIPPED_AT_ONCE)) and not raw.endswith(b"\n"):
        pass


def _reason(problem: Exception) -> str:
    match problem:
        case FileNotFoundError():
            return "there is no such file"
        case IsADirectoryError():
            return "it is a directory"
        case PermissionError():
            return "permission is denied"
        case EOFError() | zlib.error() | gzip.BadGzipFile():
            return "its gzip data is broken or ends too early"
        case OSError(strerror=str(sentence)):
            return sentence.lower()
        case _:
            return str(problem)
