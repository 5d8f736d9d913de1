"""Deciding about sets of lists: decision trees over "has an element in …".

A list is, for all that a filter can ask, the set of its elements, and these are of one kind. So a path of a
tree, "has one in P1, has one in P2, …, none in N", can be satisfied iff there is a kind in which every
Pi without N has a value: take one of each. With no Pi the empty list does it. That is exact, given exact
answers about the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import msgspec

from palio.model import decision
from palio.model.decision import DecisionNode, Tree
from palio.model.effort import Effort
from palio.model.flips import EVERYTHING, NOTHING
from palio.model.values import Kind

if TYPE_CHECKING:
    from palio.model.valueset import ValueSet


# In sets of elements that are looked at, some 20 microseconds each: lists of people's filters take a few.
MAX_EFFORT = 4_096
_STEPS = 200


class Has(msgspec.Struct, frozen=True):
    """Some element satisfies a constraint: its text, by which atoms are told apart, itself, and its set."""

    text: str
    constraint: Any
    elements: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Has) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def order(self) -> tuple[str]:
        return (self.text,)

    def holds(self, value: tuple[Any, ...]) -> bool:
        return any(element in self.elements for element in value)


def example(tree: Tree, scalars: ValueSet) -> tuple[Any, ...] | None:
    """A list in the set, or None if there is none; `scalars` are all the values that elements can have.

    Raises `Undecided`.
    """
    effort = Effort(MAX_EFFORT, _STEPS)
    for answers, _ in decision.paths(tree):
        effort.spend(len(answers))
        wanted = [atom.elements for atom, answer in answers if answer]
        if not wanted:
            return ()
        allowed = scalars
        for atom, answer in answers:
            if not answer:
                allowed -= atom.elements
        possible = [one & allowed for one in wanted]
        for kind in Kind:
            elements = []
            for one in possible:
                effort.spend(1)
                element = one.only(kind).example()
                if element is None:
                    break
                elements.append(element)
            else:
                return tuple(dict.fromkeys(elements))
    return None


def joined_by_or(tree: Tree) -> list[Has]:
    """The questions of which one is to be answered by yes, if that is all that a tree says; else nothing."""
    found: list[Has] = []
    while isinstance(tree, DecisionNode):
        if tree.yes != EVERYTHING[Kind.LIST]:
            return []
        found.append(tree.atom)
        tree = tree.no
    return found if tree == NOTHING else []


def without_needless(questions: list[Has]) -> list[Has]:
    """Those that cannot be spared: whose elements are not all among those of others."""
    kept = questions
    for one in questions:
        others = [other for other in kept if other is not one]
        if others and reduce(or_, [other.elements for other in others]).includes(one.elements):
            kept = others
    return kept


def either(questions: Sequence[Has]) -> Tree:
    """The tree that asks whether one of these holds, in their order."""
    tree: Tree = NOTHING
    for one in reversed(questions):
        tree = DecisionNode(one, EVERYTHING[Kind.LIST], tree)
    return tree


def singles(tree: Tree, scalars: ValueSet) -> ValueSet:
    """The values v for which the list of v alone is in the set: a fingerprint that equal sets share."""
    if isinstance(tree, decision.DecisionNode):
        elements: ValueSet = tree.atom.elements
        return (elements & singles(tree.yes, scalars)) | (singles(tree.no, scalars) - elements)
    return scalars if tree else scalars - scalars
