"""Few terms for a decision tree: what a person would write of a set with many questions.

The ways through a tree repeat every answer above them: of `a contains "x" or a contains "y" or …` the last way
says "no" to all others first, and the text grows with the square of the questions. Minato and Morreale's
irredundant sum of products (Fast Generation of Irredundant Sum-of-Products Forms from Binary Decision Diagrams,
1992) needs each answer only where it matters. A term covers something between what must be covered and what
may be: at each question first what only one answer leads to, then the rest without asking.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from palio.model import decision
from palio.model.decision import DecisionNode, Tree
from palio.model.flips import EVERYTHING, NOTHING, Flips

Answers: TypeAlias = tuple[tuple[Any, bool], ...]
Term: TypeAlias = tuple[Answers, Flips]


def cover(kind: int, tree: Tree) -> list[Term]:
    """Answers and what is left of the order behind them; their union is the tree. Raises `FilterTooLarge`."""
    return _between(kind, tree, tree)[0]


def _between(kind: int, least: Tree, most: Tree) -> tuple[list[Term], Tree]:
    """Terms whose union has all of `least` and nothing beyond `most`, and that union."""
    if least == NOTHING:
        return [], NOTHING
    if most == EVERYTHING[kind]:
        return [((), EVERYTHING[kind])], EVERYTHING[kind]
    if not isinstance(least, DecisionNode) and not isinstance(most, DecisionNode):
        return [((), least)], least
    atom = min(
        (tree.atom for tree in (least, most) if isinstance(tree, DecisionNode)), key=lambda one: one.order
    )
    least_yes, least_no = _branches(least, atom)
    most_yes, most_no = _branches(most, atom)
    yes, covered_yes = _between(kind, _without(kind, least_yes, most_no), most_yes)
    no, covered_no = _between(kind, _without(kind, least_no, most_yes), most_no)
    left = decision.combine(_without(kind, least_yes, covered_yes), _without(kind, least_no, covered_no), 1)
    rest, covered = _between(kind, left, decision.combine(most_yes, most_no, 2))
    terms = [
        *[(((atom, True), *answers), leaf) for answers, leaf in yes],
        *[(((atom, False), *answers), leaf) for answers, leaf in no],
        *rest,
    ]
    covered_yes, covered_no = (decision.combine(one, covered, 1) for one in (covered_yes, covered_no))
    return terms, covered_yes if covered_yes == covered_no else DecisionNode(atom, covered_yes, covered_no)


def _branches(tree: Tree, atom: Any) -> tuple[Tree, Tree]:
    return (tree.yes, tree.no) if isinstance(tree, DecisionNode) and tree.atom == atom else (tree, tree)


def _without(kind: int, tree: Tree, other: Tree) -> Tree:
    return decision.combine(tree, decision.complement(kind, other), 2)
