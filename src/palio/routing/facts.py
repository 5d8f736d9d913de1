"""`Facts`: what is true of filters and advertisements, whoever asks.

Which filter covers which, what an advertisement overlaps, what a merged filter would let through: none of that
depends on the broker that wants to know, and finding it out is most of the work of routing. The routers of one
process may share their facts. They then tell their neighbours exactly the same as without: nothing about who
subscribed what is in here, and nodes that no router uses any more are removed.
"""

from __future__ import annotations

from functools import lru_cache

from palio.matching.order import Order
from palio.matching.poset import Poset
from palio.model.advertisement import Advertisement
from palio.model.conjunction import Conjunction
from palio.model.filter import Filter
from palio.model.merging import excess

# How many answers are remembered; each takes a few hundred bytes beside what it is about.
MAX_OVERLAPS = 262_144
MAX_EXCESSES = 16_384


class Facts:
    """The order of filters, that of advertisements, and answers to questions about several of them."""

    def __init__(self) -> None:
        self.filters = Poset()
        self.advertisements: Order[Advertisement] = Order()
        self.overlap = lru_cache(MAX_OVERLAPS)(_overlap)
        self.excess = lru_cache(MAX_EXCESSES)(_excess)


def _overlap(advertisement: Advertisement, filter: Filter) -> bool:
    """Whether something may be both advertised and selected."""
    return advertisement.overlaps(filter)


def _excess(box: Conjunction, parts: tuple[Conjunction, ...]) -> tuple[bool, float]:
    """Whether a box holds more than its parts, and the share of it that does. Raises `FilterTooLarge`."""
    pieces, share = excess(box, parts)
    return bool(pieces), share
