"""Bars of blocks in a terminal: lying ones, and a row of standing ones."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def lying(count: int, most: int, cells: int) -> str:
    """A bar as long as its share of the longest; what is more than nothing can be seen."""
    length = cells * count / most
    return "█" * int(length) + ("▌" if length % 1 >= 0.5 or 0 < length < 1 else "")


def standing(counts: Sequence[int], most: int, height: int) -> list[str]:
    """A column for each count, over so many lines, from the top; what is more than nothing can be seen."""
    steps = 8 * height
    columns = [0 if not count else max(1, round(steps * count / most)) for count in counts]
    return [
        "".join(_EIGHTHS[min(8, max(0, column - 8 * line))] for column in columns)
        for line in reversed(range(height))
    ]


def squeezed(counts: Sequence[int], cells: int) -> list[int]:
    """Counts put together with their neighbours, so that there are at most so many."""
    each = -(-len(counts) // cells) if counts else 1
    return [sum(counts[first : first + each]) for first in range(0, len(counts), each)]
