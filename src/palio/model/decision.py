"""Sets that order alone cannot describe: decision trees over questions about a value.

"Ends with", "contains" and "matches" on texts, and "has" on lists, are no intervals. A set that involves them
is a tree: an inner node asks one question (an *atom*), and the leaves are ordinary sets of flips. Atoms are
asked in one fixed order on every path, none twice, and a node whose two branches are equal is left out; so
a tree is canonical as far as its atoms are independent of each other, and all three operations stay simple:
complement goes to the leaves, intersection and union walk two trees side by side.

What atoms imply about each other ("ends with `ing`" implies "contains `in`") is not known here; deciding
that is the business of `automaton` for texts and of `lists` for lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, Protocol, TypeAlias

import msgspec

from palio.model import flips
from palio.model.effort import spend
from palio.model.errors import FilterTooLarge
from palio.model.flips import Flips
from palio.model.values import Kind

# All kinds that trees are made of begin with the empty text: strings, bytes, and lists, which have no order.
_EVERYTHING: Flips = flips.EVERYTHING[Kind.STRING]
assert flips.EVERYTHING[Kind.STRING] == flips.EVERYTHING[Kind.BYTES] == flips.EVERYTHING[Kind.LIST]

# Trees of people's filters have a handful of nodes; the limit is there for the others. No tree has more, so
# that whatever reads one (`form`) can go by it.
MAX_NODES = 256
# Steps of effort of each node that is made.
NODE_STEPS = 20


class Atom(Protocol):
    """A question about a value; `order` decides which of two is asked first."""

    @property
    def order(self) -> tuple[Any, ...]: ...

    def holds(self, value: Any) -> bool: ...


class DecisionNode(msgspec.Struct, frozen=True):
    """Ask the atom, then go on in one of two trees."""

    atom: Any
    yes: Tree
    no: Tree


Tree: TypeAlias = "Flips | DecisionNode"


def leaf_for(tree: Tree, value: Any) -> Flips:
    """The leaf to which the answers for a value lead."""
    while isinstance(tree, DecisionNode):
        tree = tree.yes if tree.atom.holds(value) else tree.no
    return tree


def complement(kind: int, tree: Tree) -> Tree:
    if isinstance(tree, DecisionNode):
        return _node(tree.atom, complement(kind, tree.yes), complement(kind, tree.no))
    return flips.complement(kind, tree)


def combine(left: Tree, right: Tree, needed: int) -> Tree:
    """Union (`needed` = 1) or intersection (2) of two trees."""
    if type(left) is tuple and type(right) is tuple:
        return flips.combine(left, right, needed)
    both = _combine(left, right, needed, [MAX_NODES])
    if _size(both) > MAX_NODES:
        _too_large()
    return both


def _combine(left: Tree, right: Tree, needed: int, budget: list[int]) -> Tree:
    if left is right:
        return left
    # What decides by itself, and what makes no difference, is not asked about: nothing and everything.
    decides, neutral = (_EVERYTHING, flips.NOTHING) if needed == 1 else (flips.NOTHING, _EVERYTHING)
    if decides in (left, right):
        return decides
    if left == neutral:
        return right
    if right == neutral:
        return left
    if not isinstance(left, DecisionNode) and not isinstance(right, DecisionNode):
        return flips.combine(left, right, needed)
    budget[0] -= 1
    if budget[0] < 0:
        _too_large()
    spend(NODE_STEPS)
    if not isinstance(right, DecisionNode) or (
        isinstance(left, DecisionNode) and left.atom.order < right.atom.order
    ):
        assert isinstance(left, DecisionNode)
        atom, yes, no = left.atom, (left.yes, right), (left.no, right)
    elif not isinstance(left, DecisionNode) or right.atom.order < left.atom.order:
        atom, yes, no = right.atom, (left, right.yes), (left, right.no)
    else:
        atom, yes, no = left.atom, (left.yes, right.yes), (left.no, right.no)
    return _node(atom, _combine(*yes, needed, budget), _combine(*no, needed, budget))


def _size(tree: Tree) -> int:
    """How many nodes a tree has."""
    return 1 + _size(tree.yes) + _size(tree.no) if isinstance(tree, DecisionNode) else 0


def _too_large() -> NoReturn:
    raise FilterTooLarge(limit=MAX_NODES, got=MAX_NODES + 1, what="combined text and list conditions")


def _node(atom: Atom, yes: Tree, no: Tree) -> Tree:
    return yes if yes == no else DecisionNode(atom, yes, no)


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree and all that is below, leaves included."""
    stack = [tree]
    while stack:
        yield (current := stack.pop())
        if isinstance(current, DecisionNode):
            stack += (current.no, current.yes)


def atoms(tree: Tree) -> list[Any]:
    """The atoms of a tree, in their order."""
    found = {node.atom for node in walk(tree) if isinstance(node, DecisionNode)}
    return sorted(found, key=lambda atom: atom.order)


def assume(tree: Tree, atom: Atom, answer: bool) -> Tree:
    """The tree that is left once an atom's answer is taken for granted."""
    if not isinstance(tree, DecisionNode):
        return tree
    if tree.atom == atom:
        return tree.yes if answer else tree.no
    return _node(tree.atom, assume(tree.yes, atom, answer), assume(tree.no, atom, answer))


def paths(tree: Tree, taken: tuple[tuple[Any, bool], ...] = ()) -> Iterator[tuple[Any, Flips]]:
    """Each way to a leaf that is not empty: the answers on the way, and the leaf."""
    if isinstance(tree, DecisionNode):
        yield from paths(tree.yes, (*taken, (tree.atom, True)))
        yield from paths(tree.no, (*taken, (tree.atom, False)))
    elif tree:
        yield taken, tree
