"""Another disk: the same measurement again, with syncs that take as long as they are said to, on both sides.

The journal writes what has come while the disk synced, however much, so what it gains depends on how long that
takes. Disks of the source's time took some five milliseconds; those of today take a twentieth of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.counting import compiled

_SOURCE = Path(__file__).parents[1] / "slow_sync.c"
_MILLISECONDS = "PALIO_BENCH_SYNC_MS"


def is_set() -> bool:
    """Whether this program, and so what it starts, is one whose syncs take longer."""
    return _MILLISECONDS in os.environ


def run_again(module: str, words: Sequence[str], milliseconds: float) -> int:
    """Runs a module again, with syncs of so many milliseconds. Returns how it has ended.

    Raises FileNotFoundError where there is no C compiler.
    """
    with tempfile.TemporaryDirectory(prefix="palio-sync-") as folder:
        library = compiled(_SOURCE, Path(folder))
        more = {"LD_PRELOAD": str(library), _MILLISECONDS: str(milliseconds)}
        words = [sys.executable, "-m", module, *words]
        return subprocess.run(words, env=os.environ | more, check=False).returncode
