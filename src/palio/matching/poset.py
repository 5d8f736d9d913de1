"""`Poset`: filters ordered by covering (see `order`), found without comparing with every filter.

The candidates for what covers a new filter, and for what it covers, come from `candidates`. Of these, most are
settled without a comparison too: what lies below a filter that is covered is covered, what lies above a
filter that covers does cover. So they are taken in an order in which that helps: from the top for what is
covered, from the bottom for what covers.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from palio.matching import order
from palio.matching.candidates import Candidates
from palio.matching.filter_blocks import CandidateEntry
from palio.matching.order import Nodes, Order
from palio.matching.outline import Outline
from palio.model.filter import Filter
from palio.model.notification import Notification

Node = order.OrderNode[Filter]


class PosetStatistics(msgspec.Struct, frozen=True):
    """What a poset holds and has done. `comparisons` counts how often filters were asked about covering."""

    filters: int
    roots: int
    relations: int
    candidates: int
    comparisons: int
    blocks: int


class Poset(Order[Filter]):
    """Filters ordered by covering. Equal filters are one node, however they were written.

    `insert` raises `ContradictoryFilter`: what selects nothing would be below everything.
    """

    def __init__(self, filters: Iterable[Filter] = ()) -> None:
        self._candidates = Candidates()
        self._candidates_found = 0
        self._outline: Outline | None = None
        super().__init__(filters)

    def insert(self, filter: Filter) -> Node:
        filter.require_satisfiable()
        return super().insert(filter)

    def consider(self, filter: Filter) -> None:
        if filter.contradiction is None:
            super().consider(filter)

    def find(self, filter: Filter) -> Node | None:
        return super().find(filter) if filter.contradiction is None else None

    def covering(self, filter: Filter, *, immediate: bool = False) -> list[Node]:
        if filter.contradiction is not None:
            return [node for node in self if not immediate or not node._children]
        return super().covering(filter, immediate=immediate)

    def covered(self, filter: Filter, *, immediate: bool = False) -> list[Node]:
        return super().covered(filter, immediate=immediate) if filter.contradiction is None else []

    def match(self, notification: Notification) -> list[Node]:
        """The nodes whose filters the notification satisfies, each once.

        Breadth first from the roots, and only below nodes that match. Cannot fail. It takes time for each root;
        where there are many roots, a `MatchIndex` beside the poset is faster.
        """
        found: Nodes[Filter] = {}
        refused: Nodes[Filter] = {}
        level: Nodes[Filter] = self._roots
        while level:
            following: Nodes[Filter] = {}
            for node in level:
                if node.item.matches(notification):
                    found[node] = None
                    following |= node._children
                else:
                    refused[node] = None
            level = {node: None for node in following if node not in found and node not in refused}
        return list(found)

    def statistics(self) -> PosetStatistics:
        return PosetStatistics(
            filters=len(self._nodes),
            roots=len(self._roots),
            relations=sum(len(node._children) for node in self),
            candidates=self._candidates_found,
            comparisons=self._comparisons,
            blocks=self._candidates.blocks,
        )

    # The search

    def _enter(self, node: Node) -> None:
        node._entry = self._candidates.add(self._outline_of(node.item), node)
        self._outline = None

    def _leave(self, node: Node) -> None:
        self._candidates.remove(node._entry)
        node._entry = None

    def _covering(self, filter: Filter, found: Nodes[Filter]) -> Nodes[Filter]:
        entries = self._candidates.covering(self._outline_of(filter))
        self._candidates_found += len(entries)
        for entry in reversed(_general_first(entries)):
            node: Node = entry.owner
            if not found.keys().isdisjoint(node._children) or self._compare(node.item, filter):
                found[node] = None
        return found

    def _covered(self, filter: Filter, found: Nodes[Filter]) -> Nodes[Filter]:
        entries = self._candidates.covered(self._outline_of(filter))
        self._candidates_found += len(entries)
        for entry in _general_first(entries):
            node: Node = entry.owner
            if not found.keys().isdisjoint(node._parents) or self._compare(filter, node.item):
                found[node] = None
        return found

    def _outline_of(self, filter: Filter) -> Outline:
        """One outline serves all searches of an insertion."""
        if self._outline is None or self._outline.filter is not filter:
            self._outline = Outline(filter)
        return self._outline

    def check(self) -> None:
        super().check()
        assert {entry.owner for entry in self._candidates} == set(self), "The candidates are not the nodes."
        for node in self:
            for child in node._children:
                assert node.item.counterexample(child.item) is None, f"{node} does not cover {child}."


def _general_first(entries: list[CandidateEntry]) -> list[CandidateEntry]:
    """In an order in which filters come behind those that cover them; rough ones may be out of order."""
    if len(entries) > 1:
        entries.sort(key=lambda entry: entry.outline.ends, reverse=True)
        entries.sort(key=lambda entry: entry.outline.begins)
    return entries
