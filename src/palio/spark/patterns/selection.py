"""What Spark itself can leave out of a table before Python sees it.

Where every step of every pattern names one of a few texts in the same column, as a kind or a topic mostly is,
no other row can be a hit: `kind in (…)` is a condition that Spark can push down to Parquet. The same goes for
ranges of numbers. It is only a coarse condition, the index decides; so whatever is not as simple as that is
left to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from palio.matching.patterns import PatternSet
from palio.model.flips import EVERYTHING, intervals, successor
from palio.model.values import Kind
from palio.model.valueset import ValueSet, union
from palio.spark.source.columns import KINDS

# More of them cost Spark more than they save.
MAX_TEXTS = 1_000
MAX_RANGES = 16
# The kind that the values of a column have, by its type.
NUMBERS = {type: kind for type, kind in KINDS.items() if kind in (Kind.INT, Kind.FLOAT)}


def texts_needed(patterns: PatternSet, attribute: str) -> set[str] | None:
    """The texts of which each event that matters has one; None if others can matter, or too many."""
    found: set[str] = set()
    for side in _sides(patterns, attribute):
        texts = None if side is None else _texts(side)
        if texts is None:
            return None
        found.update(texts)
        if len(found) > MAX_TEXTS:
            return None
    return found


def ranges_needed(
    patterns: PatternSet, attribute: str, kind: Kind
) -> list[tuple[int | float, int | float | None]] | None:
    """Ranges [low, high) of numbers of this kind, in one of which each event that matters is.

    A range without an end has None. None if other events can matter, too, or there are too many ranges.
    """
    sides = []
    for side in _sides(patterns, attribute):
        if side is None or side.absent:
            return None
        sides.append(side)
    tree = union(sides).parts[kind]
    if not isinstance(tree, tuple) or tree == EVERYTHING[kind]:
        return None
    found = intervals(tree)
    return found if len(found) <= MAX_RANGES else None


def _sides(patterns: PatternSet, attribute: str) -> Iterator[ValueSet | None]:
    """What the conjunctions of all steps say about an attribute; None for one that says nothing."""
    for automaton in patterns:
        for selection in automaton.selections:
            for box in selection.conjunctions:
                yield box.sides.get(attribute)


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
