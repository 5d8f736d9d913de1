"""What Spark itself can leave out of a table before Python sees it.

Where every step of every pattern names one of a few texts in the same column, as a kind or a topic mostly is,
no other row can be a hit: `kind in (…)` is a condition that Spark can push down to Parquet. It is only a
coarse one, the index decides; so whatever is not as simple as that is left to it.
"""

from __future__ import annotations

from palio.matching.patterns import PatternSet
from palio.model.flips import intervals, successor
from palio.model.values import Kind
from palio.model.valueset import ValueSet

# More of them cost Spark more than they save.
MAX_TEXTS = 1_000


def texts_needed(patterns: PatternSet, attribute: str) -> set[str] | None:
    """The texts of which each event that matters has one; None if others can matter, or too many."""
    found: set[str] = set()
    for automaton in patterns:
        for step in automaton.pattern.steps:
            for box in step.filter.conjunctions:
                side = box.sides.get(attribute)
                texts = None if side is None else _texts(side)
                if texts is None:
                    return None
                found.update(texts)
                if len(found) > MAX_TEXTS:
                    return None
    return found


def _texts(side: ValueSet) -> list[str] | None:
    """The texts in a set of values, if they can be listed and absence is not in it."""
    tree = side.parts[Kind.STRING]
    if side.absent or not isinstance(tree, tuple):
        return None
    found = []
    for low, high in intervals(tree):
        if high is None or high != successor(Kind.STRING, low):
            return None
        found.append(low)
    return found
