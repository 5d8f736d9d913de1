"""What is worth knowing about Spark's Python workers: one for each core, which live for many tasks.

After each task a worker collects garbage, all of it, before it takes the next one. With pandas, pyarrow and
our own modules that is a hundred thousand objects to look at, 20 to 60 ms, which is more than a
small task takes.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

import pyarrow as pa


def keep() -> None:
    """What is there now stays: garbage collection need not look at it again.

    For what a worker makes once and uses in many tasks. What is no longer used is freed all the same, unless
    it is part of a cycle, so this is called a few times in the life of a worker and not for each task.
    """
    gc.freeze()


def give_back() -> None:
    """Memory that was much and is free goes back to the system, after work that a worker does once."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # only the GNU library has it
        ctypes.CDLL(None).malloc_trim(0)
