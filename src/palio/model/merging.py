"""Merging: one filter in the place of two.

A merge is *perfect* if it selects nothing beyond the two. Two conjunctions are merged side by side: attributes
that only one of them names are dropped, the others get the union of both sets. What that selects in addition
is named exactly, as a filter, and estimated as a share of the merged filter's volume, so that a router can
set a bound on it.

The estimate takes attributes as independent and values as uniform: on each side, every kind of value that is
allowed counts alike; within a kind, finite sets are counted, ranges are measured by their length, and where
text or list questions are involved a real part counts as one half, and so does a residual. However little it
is, what a merge adds has a share: zero means that nothing is added.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from palio.model.conjunction import MAX_EFFORT, STEPS, Conjunction, join, pieces_outside
from palio.model.decision import DecisionNode, Tree
from palio.model.effort import Effort, Undecided
from palio.model.errors import FilterTooLarge
from palio.model.flips import EVERYTHING, NOTHING, Flips, intervals, successor
from palio.model.normal import settle
from palio.model.values import FLOAT_MAX, INT_MAX, TIME_MAX, Kind
from palio.model.valueset import ValueSet

if TYPE_CHECKING:
    from palio.model.filter import Filter


# The share of what is too little to be measured: one value among all floats, some texts among all.
LEAST_SHARE = sys.float_info.min


class Merge(msgspec.Struct, frozen=True):
    """The merged filter; `extra` selects what it does beyond the two, `extra_share` estimates how much.

    A share of 0 means a perfect merge, and only that; 0.25 means that a quarter of the merged filter's volume
    is unwanted.
    """

    filter: Filter
    perfect: bool
    extra: Filter
    extra_share: float


def merge_boxes(left: Conjunction, right: Conjunction) -> tuple[Conjunction, tuple[Conjunction, ...], float]:
    """The box around both, what it holds beyond them, and that as a share of its volume.

    Raises `FilterTooLarge`.
    """
    box = join(left, right)
    pieces, share = excess(box, [left, right])
    extra = settle(pieces)
    return box, extra, share if extra else 0.0


def excess(box: Conjunction, parts: Sequence[Conjunction]) -> tuple[list[Conjunction], float]:
    """What a box holds beyond its parts, as disjoint pieces and as a share of its volume.

    Raises `FilterTooLarge`.
    """
    try:
        pieces = pieces_outside(box, parts, Effort(MAX_EFFORT, STEPS))
    except Undecided:
        raise FilterTooLarge(limit=MAX_EFFORT, got=MAX_EFFORT + 1, what="pieces or more to merge") from None
    share = min(1.0, math.fsum(_volume_share(piece, box) for piece in pieces))
    return pieces, max(share, LEAST_SHARE) if pieces else 0.0


def _volume_share(piece: Conjunction, whole: Conjunction) -> float:
    computed = len(set(piece.residuals) - set(whole.residuals))
    share = math.prod(side_share(side, whole.side(name)) for name, side in piece.sides.items())
    return math.ldexp(share, -computed)


def side_share(part: ValueSet, whole: ValueSet) -> float:
    """The estimated share of a set that a subset of it takes up."""
    shares = [float(part.absent)] if whole.absent else []
    numbers = [kind for kind in (Kind.INT, Kind.FLOAT) if whole.parts[kind]]
    # Without a demanded type the two kinds of numbers say the same twice, and the floats measure it; with one
    # each counts.
    is_typed = bool(part.parts[Kind.INT]) and not part.parts[Kind.FLOAT]
    skipped = [] if is_typed else numbers[:-1]
    for kind in Kind:
        if whole.parts[kind] and kind not in skipped:
            shares.append(_part_share(kind, part.parts[kind], whole.parts[kind]))
    return sum(shares) / len(shares) if shares else 0.0


def _part_share(kind: Kind, part: Tree, whole: Tree) -> float:
    if part == NOTHING:
        return 0.0
    if part == whole:
        return 1.0
    if isinstance(part, DecisionNode) or isinstance(whole, DecisionNode) or kind is Kind.LIST:
        return 0.5
    count = _count(kind, whole)
    if count is not None:
        return (_count(kind, part) or 0) / count
    length = _length(kind, whole)
    return min(1.0, _length(kind, part) / length) if length else 0.0


def _count(kind: Kind, ends: Flips) -> int | None:
    """How many values there are, or None if that is not a list of single ones."""
    if kind is Kind.BOOL:
        return 2 if ends == EVERYTHING[kind] else 1
    spans = intervals(ends)
    return len(spans) if all(high == successor(kind, low) for low, high in spans) else None


def _length(kind: Kind, ends: Flips) -> float:
    return math.fsum(_place(kind, high) - _place(kind, low) for low, high in intervals(ends))


def _place(kind: Kind, value: Any) -> float:
    """Where a value lies on a line; None is the line's end. Halves keep the largest floats from overflow."""
    match kind:
        case Kind.INT:
            return float(INT_MAX if value is None else value)
        case Kind.FLOAT:
            return float(FLOAT_MAX if value is None else value) / 2
        case Kind.TIME:
            return (TIME_MAX if value is None else value).timestamp()
        case _:
            size = 0x110000 if kind is Kind.STRING else 0x100
            if value is None:
                return 1.0
            return math.fsum(ord(one) / size ** (place + 1) for place, one in enumerate(value[:8]))
