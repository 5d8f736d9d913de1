"""Things that lie by slot, the small numbers that the core gives out."""

from collections.abc import Sequence
from typing import Any


def by_slot(items: Sequence[Any], slots: Sequence[int]) -> list[Any]:
    """These items, each at its slot; the slots are all numbers from 0 on."""
    ordered = [None] * len(items)
    for item, slot in zip(items, slots, strict=True):
        ordered[slot] = item
    return ordered
