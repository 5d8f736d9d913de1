"""`Facts`: what is true of filters and advertisements, whoever asks.

Which filter covers which, what an advertisement overlaps, what a merged filter would let through: none of that
depends on the broker that wants to know, and finding it out is most of the work of routing. The routers of one
process may share their facts. They then tell their neighbours exactly the same as without: nothing about who
subscribed what is in here, and nodes that no router uses any more are removed.

Which filters a notification satisfies is such a fact, too. A broker usually finds that out with an index of the
filters in its own table. Where very many brokers share their facts, as in a large simulation, most of them have
most filters, and a notification comes to hundreds of them: then one index for all (`matches`) is filled once
and asked once for each notification, and a broker only looks which of the filters it has.
"""

from __future__ import annotations

from functools import lru_cache

from palio.matching import MatchIndex
from palio.matching.order import Order
from palio.matching.poset import Node, Poset
from palio.model.advertisement import Advertisement
from palio.model.conjunction import Conjunction
from palio.model.merging import excess
from palio.model.notification import Notification

# How many answers are remembered; each takes a few hundred bytes beside what it is about.
MAX_OVERLAPS = 262_144
MAX_EXCESSES = 16_384
# How many notifications are remembered with what they satisfy: more than are under way at a time.
MAX_MATCHED = 4_096


class SharedMatches(Poset):
    """An order of filters with an index beside it; what a notification satisfies is found once."""

    def __init__(self) -> None:
        super().__init__()
        self._index = MatchIndex()
        # By identity: it is the same object on all its way. Being here keeps it from being another one.
        self._matched: dict[int, tuple[Notification, list[Node]]] = {}

    def match(self, notification: Notification) -> list[Node]:
        known = self._matched.get(id(notification))
        if known is None:
            if len(self._matched) >= MAX_MATCHED:
                del self._matched[next(iter(self._matched))]
            known = self._matched[id(notification)] = notification, self._index.match(notification)
        return known[1]

    def _enter(self, node: Node) -> None:
        super()._enter(node)
        self._index.add(node, node.item)
        self._matched.clear()

    def _leave(self, node: Node) -> None:
        super()._leave(node)
        self._index.remove(node)
        self._matched.clear()


class Facts:
    """The order of filters, that of advertisements, and answers to questions about several of them.

    With `matches`, also which of the filters a notification satisfies.
    """

    def __init__(self, *, matches: bool = False) -> None:
        self.matches = SharedMatches() if matches else None
        self.filters: Poset = Poset() if self.matches is None else self.matches
        self.advertisements: Order[Advertisement] = Order()
        self.overlap = lru_cache(MAX_OVERLAPS)(Advertisement.overlaps)
        self.excess = lru_cache(MAX_EXCESSES)(_excess)


def _excess(box: Conjunction, parts: tuple[Conjunction, ...]) -> tuple[bool, float]:
    """Whether a box holds more than its parts, and the share of it that does. Raises `FilterTooLarge`."""
    pieces, share = excess(box, parts)
    return bool(pieces), share
