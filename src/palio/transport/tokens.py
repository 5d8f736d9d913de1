"""Files that hold the token by which a program shows who it is."""

from __future__ import annotations

from dataclasses import InitVar
from pathlib import Path

from palio.model.errors import PalioError


class NoToken(PalioError):
    """A file that has no token to read."""

    file: str
    reason: InitVar[str]
    sentence = "There is no token in {file}: {reason}."


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
