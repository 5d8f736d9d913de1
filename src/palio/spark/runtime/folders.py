"""Folders that driver and executors share: ordinary paths, which Python itself can write to."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from palio.spark.errors import WrongOption


def shared_folder(option: str, place: str | os.PathLike[str]) -> Path:
    """The folder that an option names. Raises `WrongOption` for `s3a://…` and its like.

    What Spark reaches by a URL, Python does not: it would make a folder of that name on this machine.
    """
    text = os.fspath(place)
    if "://" not in text and not text.startswith("file:"):
        return Path(text).absolute()
    parts = urlsplit(text)
    if parts.scheme != "file" or parts.netloc:
        raise WrongOption(
            option,
            f"{text} is no folder of this machine. Name one that driver and executors reach under the same "
            "path, such as one of NFS.",
        )
    return Path(unquote(parts.path))
