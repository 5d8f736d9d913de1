"""How fast a journal becomes a lake."""

from __future__ import annotations
from pathlib import Path
from typing import Any
from rich.console import Console


def run(console: Console, spark: Any, folder: Path, count: int) -> None:
    raise NotImplementedError
