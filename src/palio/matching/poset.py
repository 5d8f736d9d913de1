"""`Poset`: filters ordered by covering. What brokers reason with when they decide what to send on.

Each filter is a node. Its *parents* are the filters immediately above it, more general; its *children* those
immediately below. Only immediate relations are stored: where a covers b and b covers c, nothing is kept
between a and c. Filters without parents are the *roots*; only they need to be known further up the network.
(Carzaniga, Rosenblum and Wolf call this P_S.)

Insertion finds all filters that cover the new one and all that it covers, takes the minimal ones of the
former as parents and the maximal ones of the latter as children, and drops the relations between the two
groups. Removal connects each parent with each child of the node unless another path does.

The candidates for both come from `candidates`, without comparing with every filter. Of these, most are
settled without a comparison too: what lies below a filter that is covered is covered, what lies above a
filter that covers does cover. So they are taken in an order in which that helps: from the top for what is
covered, from the bottom for what covers.

What if covering is undecided. `Filter.covers` says yes only if that is proven; between a few filters with
hard combinations of text conditions it says no although it is so. Then it may say yes for (a, b) and for (b,
c) and no for (a, c). As each yes is true, so is every chain of them, and the order that counts here is the
one by chains: a is above c iff a path leads from a down to c. Three things follow, and keep the structure
sound:

- A chain around a circle means that all on it select the same. So an insertion that would close a circle
  (something that covers the new filter is reached from something that it covers) has found an equal filter,
  and the new one is that node. There never is a cycle.
- When a node goes, its parents and children are connected without asking again; what the chain through it
  proved stays true.
- A relation that is not proven is missing, no more. Routing then sends a filter that it need not have sent.

Invariants, all verified by `check()`: parents and children mirror each other; no cycle; no relation that a
longer path implies; whatever covers another filter provably is above it; a relation is never contradicted by
an example; the roots are the nodes without parents; the candidates are exactly the nodes.

Costs: insertion takes a search (`candidates`), comparisons with the candidates that are not settled by
others, and some microseconds for each node above and below, immediate or not: a long chain (`price < 1`,
`price < 2` and so on) costs in proportion to its length. Removal takes time for each pair of a parent and a
child; only where a child has other parents it walks up from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView
from typing import Any

import msgspec

from palio.matching.candidates import Candidates, Entry
from palio.matching.outline import Outline
from palio.model.errors import UnknownId
from palio.model.filter import Filter
from palio.model.notification import Notification

# Sets of nodes are dicts without values: they keep their order, so that the same calls give the same answers.
_Nodes = dict["Node", None]


class Node:
    """A filter in a poset. `value` belongs to the user, for instance for the subscribers of the filter."""

    __slots__ = ("_children", "_entry", "_parents", "filter", "value")

    def __init__(self, filter: Filter) -> None:
        self.filter = filter
        self.value: Any = None
        self._parents: _Nodes = {}
        self._children: _Nodes = {}
        self._entry: Entry | None = None

    @property
    def parents(self) -> KeysView[Node]:
        """The nodes immediately above: more general."""
        return self._parents.keys()

    @property
    def children(self) -> KeysView[Node]:
        """The nodes immediately below: more specific."""
        return self._children.keys()

    @property
    def is_root(self) -> bool:
        return not self._parents

    def ancestors(self) -> list[Node]:
        """All nodes above, each once, the nearest first."""
        return list(_above([self]))

    def descendants(self) -> list[Node]:
        """All nodes below, each once, the nearest first."""
        return list(_below([self]))

    def __repr__(self) -> str:
        return f"<Node {str(self.filter)!r}>"


class PosetStatistics(msgspec.Struct, frozen=True):
    """What a poset holds and has done. `comparisons` counts how often filters were asked about covering."""

    filters: int
    roots: int
    relations: int
    candidates: int
    comparisons: int
    blocks: int


class Poset:
    """Filters ordered by covering. Equal filters are one node, however they were written."""

    def __init__(self, filters: Iterable[Filter] = ()) -> None:
        self._nodes: dict[Filter, Node] = {}
        self._roots: _Nodes = {}
        self._candidates = Candidates()
        self._candidates_found = 0
        self._comparisons = 0
        for filter in filters:
            self.insert(filter)

    # Changes

    def insert(self, filter: Filter) -> Node:
        """The node of the filter, which is new unless an equal filter is there.

        Raises `ContradictoryFilter`: what selects nothing would be below everything.
        """
        filter.require_satisfiable()
        if (known := self._nodes.get(filter)) is not None:
            return known
        outline = Outline(filter)
        parents, children = self._neighbours(outline)
        above: _Nodes = {}
        below: _Nodes = {}
        if parents and children:
            above = parents | _above(parents)
            below = children | _below(children)
            if equal := next((node for node in children if node in above), None):
                return equal
        node = Node(filter)
        node._entry = self._candidates.add(outline, node)
        self._nodes[filter] = node
        for lower in below:
            for upper in [upper for upper in lower._parents if upper in above]:
                _disconnect(upper, lower)
        for parent in parents:
            _connect(parent, node)
        for child in children:
            _connect(node, child)
            self._roots.pop(child, None)
        if not parents:
            self._roots[node] = None
        return node

    def remove(self, filter: Filter | Node) -> list[Node]:
        """Take a filter out. Returns the nodes that have become roots by that. Raises `UnknownId`."""
        node = filter if isinstance(filter, Node) else self.find(filter)
        if node is None or self._nodes.get(node.filter) is not node or node._entry is None:
            raise UnknownId(filter)
        self._candidates.remove(node._entry)
        del self._nodes[node.filter]
        self._roots.pop(node, None)
        parents, children = list(node._parents), list(node._children)
        for parent in parents:
            _disconnect(parent, node)
        for child in children:
            _disconnect(node, child)
        for child in children:
            reached = _above([child]) if parents and child._parents else {}
            for parent in parents:
                if parent not in reached:
                    _connect(parent, child)
        orphans = [child for child in children if not child._parents]
        self._roots.update(dict.fromkeys(orphans))
        node._entry = None
        return orphans

    # Questions

    def find(self, filter: Filter) -> Node | None:
        """The node of the filter or of an equal one."""
        if (known := self._nodes.get(filter)) is not None:
            return known
        if filter.contradiction is not None:
            return None
        parents, children = self._neighbours(Outline(filter))
        if not parents or not children:
            return None
        above = parents | _above(parents)
        return next((node for node in children if node in above), None)

    def roots(self) -> list[Node]:
        """The nodes that no other one covers."""
        return list(self._roots)

    def covering(self, filter: Filter, *, immediate: bool = False) -> list[Node]:
        """The nodes that cover the filter, an equal one included; or only the minimal ones of them."""
        if (known := self._nodes.get(filter)) is not None:
            return [known] if immediate else [known, *_above([known])]
        if filter.contradiction is not None:
            return [node for node in self if not immediate or not node._children]
        parents = self._minimal(self._covering(Outline(filter)))
        return list(parents if immediate else parents | _above(parents))

    def covered(self, filter: Filter, *, immediate: bool = False) -> list[Node]:
        """The nodes that the filter covers, an equal one included; or only the maximal ones of them."""
        if (known := self._nodes.get(filter)) is not None:
            return [known] if immediate else [known, *_below([known])]
        if filter.contradiction is not None:
            return []
        children = self._maximal(self._covered(Outline(filter)))
        return list(children if immediate else children | _below(children))

    def is_covered(self, filter: Filter) -> bool:
        """Whether some node covers the filter; an equal one does."""
        if filter in self._nodes:
            return True
        if filter.contradiction is not None:
            return bool(self._nodes)
        found = self._candidates.covering(Outline(filter))
        # Roots are asked first: the widest are the likeliest.
        found.sort(key=lambda entry: bool(entry.owner._parents))
        return any(self._compare(entry.owner.filter, filter) for entry in found)

    def match(self, notification: Notification) -> list[Node]:
        """The nodes whose filters the notification satisfies, each once.

        Breadth first from the roots, and only below nodes that match. Cannot fail. It takes time for each root;
        where there are many roots, a `MatchIndex` beside the poset is faster.
        """
        found: _Nodes = {}
        refused: _Nodes = {}
        level: _Nodes = self._roots
        while level:
            following: _Nodes = {}
            for node in level:
                if node.filter.matches(notification):
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

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __contains__(self, filter: Filter) -> bool:
        return self.find(filter) is not None

    # The search

    def _neighbours(self, outline: Outline) -> tuple[_Nodes, _Nodes]:
        """The minimal nodes that cover a filter, and the maximal ones that it covers."""
        return self._minimal(self._covering(outline)), self._maximal(self._covered(outline))

    def _covering(self, outline: Outline) -> _Nodes:
        """The nodes that provably cover the filter; some that do so by a chain only may be missing."""
        entries = self._candidates.covering(outline)
        self._candidates_found += len(entries)
        found: _Nodes = {}
        for entry in reversed(_general_first(entries)):
            node: Node = entry.owner
            if not found.keys().isdisjoint(node._children) or self._compare(node.filter, outline.filter):
                found[node] = None
        return found

    def _covered(self, outline: Outline) -> _Nodes:
        """The nodes that the filter provably covers; some that it covers by a chain only may be missing."""
        entries = self._candidates.covered(outline)
        self._candidates_found += len(entries)
        found: _Nodes = {}
        for entry in _general_first(entries):
            node: Node = entry.owner
            if not found.keys().isdisjoint(node._parents) or self._compare(outline.filter, node.filter):
                found[node] = None
        return found

    def _minimal(self, nodes: _Nodes) -> _Nodes:
        low = {node: None for node in nodes if nodes.keys().isdisjoint(node._children)}
        if len(low) > 1:
            higher = _above(low)
            return {node: None for node in low if node not in higher}
        return low

    def _maximal(self, nodes: _Nodes) -> _Nodes:
        high = {node: None for node in nodes if nodes.keys().isdisjoint(node._parents)}
        if len(high) > 1:
            lower = _below(high)
            return {node: None for node in high if node not in lower}
        return high

    def _compare(self, upper: Filter, lower: Filter) -> bool:
        self._comparisons += 1
        return upper.covers(lower)

    # Verification

    def check(self) -> None:
        """Verify every invariant, comparing each filter with each; raises AssertionError. Meant for tests."""
        nodes = list(self)
        assert {entry.owner for entry in self._candidates} == set(nodes), "The candidates are not the nodes."
        assert set(self._roots) == {node for node in nodes if not node._parents}, "The roots are wrong."
        for node in nodes:
            assert self._nodes[node.filter] is node, f"{node} is filed under another filter."
            assert all(node in child._parents for child in node._children), (
                f"{node} has a child without parent."
            )
            assert all(node in parent._children for parent in node._parents), f"{node} has a strange parent."
            below = _below([node])
            assert node not in below, f"{node} lies below itself."
            implied = _below(node._children)
            for child in node._children:
                assert child not in implied, f"The relation of {node} and {child} is implied by others."
                assert node.filter.counterexample(child.filter) is None, f"{node} does not cover {child}."
            for other in nodes:
                if other is not node and other not in below:
                    assert not node.filter.covers(other.filter), f"{node} covers {other} but is not above it."


def _general_first(entries: list[Entry]) -> list[Entry]:
    """In an order in which filters come behind those that cover them; rough ones may be out of order."""
    if len(entries) > 1:
        entries.sort(key=lambda entry: entry.outline.ends, reverse=True)
        entries.sort(key=lambda entry: entry.outline.begins)
    return entries


def _connect(parent: Node, child: Node) -> None:
    parent._children[child] = None
    child._parents[parent] = None


def _disconnect(parent: Node, child: Node) -> None:
    del parent._children[child]
    del child._parents[parent]


def _above(nodes: Iterable[Node]) -> _Nodes:
    """All that lies above at least one of the nodes, breadth first; a node only if it is above another."""
    found: _Nodes = {}
    level = list(nodes)
    while level:
        fresh = {parent: None for node in level for parent in node._parents if parent not in found}
        found |= fresh
        level = list(fresh)
    return found


def _below(nodes: Iterable[Node]) -> _Nodes:
    """All that lies below at least one of the nodes, breadth first; a node only if it is below another."""
    found: _Nodes = {}
    level = list(nodes)
    while level:
        fresh = {child: None for node in level for child in node._children if child not in found}
        found |= fresh
        level = list(fresh)
    return found
