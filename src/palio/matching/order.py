"""`Order`: things ordered by covering, immediate relations only. What brokers reason with.

Each thing, a filter or an advertisement, is a node. Its *parents* are immediately above it, more general; its
*children* immediately below. Only immediate relations are stored: where a covers b and b covers c, nothing is
kept between a and c. Nodes without parents are the *roots*; only they need to be known further up a network.
(Carzaniga, Rosenblum and Wolf call this P_S and P_A.)

Insertion finds all that cover the new item and all that it covers, takes the minimal ones of the former as
parents and the maximal ones of the latter as children, and drops the relations between the two groups.
Removal connects each parent with each child of the node unless another path does.

The search here compares with every node: slow and obviously right, and good enough for advertisements, of
which there are few. `Poset` has the fast one for filters.

What if covering is undecided. `covers` says yes only if that is proven; between a few filters with hard
combinations of text conditions it says no although it is so. Then it may say yes for (a, b) and for (b, c)
and no for (a, c). As each yes is true, so is every chain of them, and the order that counts here is the one by
chains: a is above c iff a path leads from a down to c. Three things follow, and keep the structure sound:

- A chain around a circle means that all on it select the same. So an insertion that would close a circle
  (something that covers the new item is reached from something that it covers) has found an equal one, and
  the new one is that node. There never is a cycle.
- When a node goes, its parents and children are connected without asking again; what the chain through it
  proved stays true.
- A relation that is not proven is missing, no more. Routing then sends what it need not have sent.

Invariants, all verified by `check()`: parents and children mirror each other; no cycle; no relation that a
longer path implies; whatever covers another item provably is above it; a relation is never contradicted by
an example; the roots are the nodes without parents.

Costs: insertion takes the search, comparisons with what it finds and does not settle by others, and some
microseconds for each node above and below, immediate or not: a long chain (`price < 1`, `price < 2` and so on)
costs in proportion to its length. Removal takes time for each pair of a parent and a child; only where a child
has other parents it walks up from them. What lies above and below a node is remembered once it was asked for:
brokers that share an order ask the same again and again. A node that comes or goes makes those above it forget
what is below them, and those below it what is above; nobody else can be concerned.

Comparing may take long, and inserting cannot be interrupted. So an item may be *considered* before: what covers
it and what it covers is found, and remembered for it, while the order may change. What was found stays true;
what has come meanwhile is compared when it is inserted. If that would be too hard, what was not compared
counts as not proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView
from itertools import takewhile
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from palio.model.effort import COMPARISON, spend
from palio.model.errors import TooHard, UnknownId

# Items that were considered and have not come: whoever wanted to insert them may be gone.
MAX_CONSIDERED = 1_024


class Coverable(Protocol):
    """What can be ordered: hashable, and able to say whether it provably covers another of its kind."""

    def covers(self, other: Any, /) -> bool: ...


Item = TypeVar("Item", bound=Coverable)


# Sets of nodes are dicts without values: they keep their order, so that the same calls give the same answers.
Nodes: TypeAlias = dict["OrderNode[Item]", None]


class OrderNode(Generic[Item]):
    """An item in an order. `value` belongs to the user, for instance for the subscribers of a filter."""

    __slots__ = ("_above", "_below", "_children", "_entry", "_number", "_parents", "item", "value")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.value: Any = None
        self._parents: Nodes[Item] = {}
        self._children: Nodes[Item] = {}
        self._above: tuple[OrderNode[Item], ...] | None = None
        self._below: tuple[OrderNode[Item], ...] | None = None
        self._entry: Any = None
        self._number = 0  # by the order in which nodes have come

    @property
    def parents(self) -> KeysView[OrderNode[Item]]:
        """The nodes immediately above: more general."""
        return self._parents.keys()

    @property
    def children(self) -> KeysView[OrderNode[Item]]:
        """The nodes immediately below: more specific."""
        return self._children.keys()

    def ancestors(self) -> tuple[OrderNode[Item], ...]:
        """All nodes above, each once, the nearest first."""
        if self._above is None:
            self._above = tuple(above([self])) if self._parents else ()
        return self._above

    def descendants(self) -> tuple[OrderNode[Item], ...]:
        """All nodes below, each once, the nearest first."""
        if self._below is None:
            self._below = tuple(below([self])) if self._children else ()
        return self._below

    def _be_noticed(self) -> None:
        """The node is part of the order, or about to leave it: what others remember is not true any more."""
        for upper in above([self]):
            upper._below = None
        for lower in below([self]):
            lower._above = None

    def __repr__(self) -> str:
        return f"<Node {str(self.item)!r}>"


class Considered(Generic[Item]):
    """What was found for the insertion of an item, among all nodes up to a number.

    Once `closed`, nothing else is compared for it.
    """

    __slots__ = ("closed", "covered", "covering", "upto")

    def __init__(self, upto: int) -> None:
        self.covering: Nodes[Item] = {}
        self.covered: Nodes[Item] = {}
        self.upto = upto
        self.closed = False


class Order(Generic[Item]):
    """Items ordered by covering. Equal ones are one node, however they were written."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._nodes: dict[Item, OrderNode[Item]] = {}
        self._roots: Nodes[Item] = {}
        self._comparisons = 0
        self._considered: dict[Item, Considered[Item]] = {}
        self._last_number = 0
        for item in items:
            self.insert(item)

    # Changes

    def consider(self, item: Item) -> None:
        """Ask all that inserting an item will ask, and remember it for then. Nothing else changes.

        May be interrupted wherever effort is spent, and the order be changed meanwhile.
        """
        if item in self._nodes or item in self._considered:
            return
        considered: Considered[Item] = Considered(self._last_number)
        try:
            self._covering(item, considered.covering)
            self._covered(item, considered.covered)
            while considered.upto < self._last_number:
                self._catch_up(item, considered)
        except TooHard:
            considered.closed = True
        while len(self._considered) >= MAX_CONSIDERED:
            del self._considered[next(iter(self._considered))]
        self._considered[item] = considered

    def _catch_up(self, item: Item, considered: Considered[Item]) -> None:
        """Compare an item with what has come since it was considered."""
        fresh = [*takewhile(lambda node: node._number > considered.upto, reversed(self._nodes.values()))]
        considered.upto = self._last_number
        for node in reversed(fresh):
            if self._compare(node.item, item):
                considered.covering[node] = None
            if self._compare(item, node.item):
                considered.covered[node] = None

    def insert(self, item: Item) -> OrderNode[Item]:
        """The node of the item, which is new unless an equal one is there."""
        if (known := self._nodes.get(item)) is not None:
            return known
        considered = self._considered.pop(item, None) if self._considered else None
        if considered is None:
            parents, children = self._neighbours(item)
        else:
            if not considered.closed:
                self._catch_up(item, considered)
            parents = self._minimal(self._present(considered.covering))
            children = self._maximal(self._present(considered.covered))
        higher: Nodes[Item] = {}
        lower: Nodes[Item] = {}
        if parents and children:
            higher = parents | above(parents)
            lower = children | below(children)
            if equal := next((node for node in children if node in higher), None):
                return equal
        node = OrderNode(item)
        self._last_number += 1
        node._number = self._last_number
        self._enter(node)
        self._nodes[item] = node
        for one in lower:
            for upper in [upper for upper in one._parents if upper in higher]:
                _disconnect(upper, one)
        for parent in parents:
            _connect(parent, node)
        for child in children:
            _connect(node, child)
            self._roots.pop(child, None)
        if not parents:
            self._roots[node] = None
        node._be_noticed()
        return node

    def remove(self, item: Item | OrderNode[Item]) -> list[OrderNode[Item]]:
        """Take an item out. Returns the nodes that have become roots by that. Raises `UnknownId`."""
        node = item if isinstance(item, OrderNode) else self.find(item)
        if node is None or self._nodes.get(node.item) is not node:
            raise UnknownId(item)
        self._leave(node)
        node._be_noticed()
        del self._nodes[node.item]
        self._roots.pop(node, None)
        parents, children = list(node._parents), list(node._children)
        for parent in parents:
            _disconnect(parent, node)
        for child in children:
            _disconnect(node, child)
        for child in children:
            reached = above([child]) if parents and child._parents else {}
            for parent in parents:
                if parent not in reached:
                    _connect(parent, child)
        orphans = [child for child in children if not child._parents]
        self._roots.update(dict.fromkeys(orphans))
        return orphans

    # Questions

    def get(self, item: Item) -> OrderNode[Item] | None:
        """The node that was inserted for just this item, without a search for an equal one."""
        return self._nodes.get(item)

    def find(self, item: Item) -> OrderNode[Item] | None:
        """The node of the item or of an equal one."""
        if (known := self._nodes.get(item)) is not None:
            return known
        parents, children = self._neighbours(item)
        if not parents or not children:
            return None
        higher = parents | above(parents)
        return next((node for node in children if node in higher), None)

    def roots(self) -> list[OrderNode[Item]]:
        """The nodes that no other one covers."""
        return list(self._roots)

    def covering(self, item: Item, *, immediate: bool = False) -> list[OrderNode[Item]]:
        """The nodes that cover the item, an equal one included; or only the minimal ones of them."""
        if (known := self._nodes.get(item)) is not None:
            return [known] if immediate else [known, *above([known])]
        parents = self._minimal(self._covering(item, {}))
        return list(parents if immediate else parents | above(parents))

    def covered(self, item: Item, *, immediate: bool = False) -> list[OrderNode[Item]]:
        """The nodes that the item covers, an equal one included; or only the maximal ones of them."""
        if (known := self._nodes.get(item)) is not None:
            return [known] if immediate else [known, *below([known])]
        children = self._maximal(self._covered(item, {}))
        return list(children if immediate else children | below(children))

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[OrderNode[Item]]:
        return iter(self._nodes.values())

    def __contains__(self, item: Item) -> bool:
        return self.find(item) is not None

    # The search, which a faster one may replace

    def _enter(self, node: OrderNode[Item]) -> None:
        """Told before a node becomes part of the order."""

    def _leave(self, node: OrderNode[Item]) -> None:
        """Told before a node ceases to be part of the order."""

    def _covering(self, item: Item, found: Nodes[Item]) -> Nodes[Item]:
        """Find the nodes that provably cover the item; some that do so by a chain only may be missing."""
        for node in list(self):
            if self._compare(node.item, item):
                found[node] = None
        return found

    def _covered(self, item: Item, found: Nodes[Item]) -> Nodes[Item]:
        """Find the nodes that the item provably covers; some that it covers by a chain only may be missing."""
        for node in list(self):
            if self._compare(item, node.item):
                found[node] = None
        return found

    def _compare(self, upper: Item, lower: Item) -> bool:
        self._comparisons += 1
        spend(COMPARISON)
        return upper.covers(lower)

    def _neighbours(self, item: Item) -> tuple[Nodes[Item], Nodes[Item]]:
        """The minimal nodes that cover an item, and the maximal ones that it covers."""
        return self._minimal(self._covering(item, {})), self._maximal(self._covered(item, {}))

    def _present(self, nodes: Nodes[Item]) -> Nodes[Item]:
        """Those of the nodes that have not left."""
        return {node: None for node in nodes if self._nodes.get(node.item) is node}

    def _minimal(self, nodes: Nodes[Item]) -> Nodes[Item]:
        low = {node: None for node in nodes if nodes.keys().isdisjoint(node._children)}
        if len(low) > 1:
            higher = above(low)
            return {node: None for node in low if node not in higher}
        return low

    def _maximal(self, nodes: Nodes[Item]) -> Nodes[Item]:
        high = {node: None for node in nodes if nodes.keys().isdisjoint(node._parents)}
        if len(high) > 1:
            lower = below(high)
            return {node: None for node in high if node not in lower}
        return high

    # Verification

    def check(self) -> None:
        """Verify every invariant, comparing each item with each; raises AssertionError. Meant for tests."""
        nodes = list(self)
        assert set(self._roots) == {node for node in nodes if not node._parents}, "The roots are wrong."
        for node in nodes:
            assert self._nodes[node.item] is node, f"{node} is filed under another item."
            assert all(node in child._parents for child in node._children), (
                f"{node} has a child without parent."
            )
            assert all(node in parent._children for parent in node._parents), f"{node} has a strange parent."
            lower = below([node])
            assert node not in lower, f"{node} lies below itself."
            implied = below(node._children)
            for child in node._children:
                assert child not in implied, f"The relation of {node} and {child} is implied by others."
            assert node._above is None or set(node._above) == set(above([node])), f"{node} remembers wrongly."
            assert node._below is None or set(node._below) == set(lower), f"{node} remembers wrongly."
            for other in nodes:
                if other is not node and other not in lower:
                    assert not node.item.covers(other.item), f"{node} covers {other} but is not above it."


def _connect(parent: OrderNode[Item], child: OrderNode[Item]) -> None:
    parent._children[child] = None
    child._parents[parent] = None


def _disconnect(parent: OrderNode[Item], child: OrderNode[Item]) -> None:
    del parent._children[child]
    del child._parents[parent]


def above(nodes: Iterable[OrderNode[Item]]) -> Nodes[Item]:
    """All that lies above at least one of the nodes, breadth first; a node only if it is above another."""
    found: Nodes[Item] = {}
    level = list(nodes)
    while level:
        fresh = {parent: None for node in level for parent in node._parents if parent not in found}
        found |= fresh
        level = list(fresh)
    return found


def below(nodes: Iterable[OrderNode[Item]]) -> Nodes[Item]:
    """All that lies below at least one of the nodes, breadth first; a node only if it is below another."""
    found: Nodes[Item] = {}
    level = list(nodes)
    while level:
        fresh = {child: None for node in level for child in node._children if child not in found}
        found |= fresh
        level = list(fresh)
    return found
