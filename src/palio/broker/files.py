"""Files that others may change while a broker runs, and files that hold a secret."""

from __future__ import annotations

from pathlib import Path

from palio.model.errors import PalioError


class NoToken(PalioError):
    """A file that has no token to read."""

    file: str

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"There is no token in {file}: {reason}.", file=file)


class Watched:
    """A file that may change at any time. `changed` says whether it has since it was last asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._asked = False

    def changed(self) -> bool:
        """Whether the file is another one than the last time; True the first time."""
        try:
            status = self.path.stat()
            seen = (status.st_mtime_ns, status.st_ino, status.st_size)
        except OSError:
            seen = None
        news = seen != self._seen or not self._asked
        self._seen, self._asked = seen, True
        return news


def read_token(file: str) -> str:
    """The token that a file holds, and nothing else. Raises `NoToken`."""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except OSError as problem:
        raise NoToken(file, problem.strerror or str(problem)) from None
    except UnicodeDecodeError:
        raise NoToken(file, "it is not UTF-8") from None
    if not text:
        raise NoToken(file, "it is empty")
    return text
