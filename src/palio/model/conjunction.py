"""A conjunction: for each attribute that it names, the set of values that it allows. A box, geometrically.

Attributes are independent of each other, so reasoning about boxes is reasoning about their sides: a box is
empty iff a side is; two overlap iff all their sides do; one lies within another iff all its sides do (given
that it is not empty). What lies in a box but in none of several others is found by cutting off side after
side (`uncovered`): that decides covering between filters with several conjunctions exactly.

Beside its sides a conjunction may have *residuals*: conditions that no set of values says. To reasoning, each
formula is one more attribute, of which nothing is known but that it is true or is not. That is sound:
whatever can be proven for all combinations is so for those that can be. What a residual says about attributes
is in the sides (`implied`).

A side that allows everything is never stored, so that a conjunction has one representation. A conjunction that
is held by a filter is not empty, as far as that can be decided; `includes` and `overlaps` rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from palio.model.effort import Effort
from palio.model.formulas.evaluation import implied
from palio.model.formulas.formula import Call, Formula, Variable
from palio.model.formulas.residual import Residual
from palio.model.valueset import ANYTHING, ValueSet

# In comparisons of two boxes; some microseconds each, some milliseconds where text or list questions decide.
MAX_EFFORT = 8_192
# What a comparison counts for a meter, beside the questions about texts.
STEPS = 64
ASKING = 64

Sides = Mapping[str, ValueSet]
Residuals: TypeAlias = "tuple[Residual, ...]"


class Conjunction:
    """Immutable; `sides` maps attributes, in order of their names, to sets that do not allow everything.

    `residuals` are in an order of their own, and each is there once.
    """

    __slots__ = ("_hash", "residuals", "sides")

    def __init__(self, sides: dict[str, ValueSet], residuals: Residuals = ()) -> None:
        self.sides: Sides = sides
        self.residuals = residuals
        self._hash: int | None = None

    @staticmethod
    def of(sides: Sides, residuals: Residuals = ()) -> Conjunction:
        """From sides in any order, of which some may allow everything or have needless questions."""
        kept = {}
        for name in sorted(sides):  # for every filter that is read, and one loop is faster
            side = sides[name]
            if not side.is_simple:
                side = side.simplified()
            if not side.absent or not side.is_everything():
                kept[name] = side
        return Conjunction(kept, in_order(residuals) if len(residuals) > 1 else residuals)

    def side(self, name: str) -> ValueSet:
        return self.sides.get(name, ANYTHING)

    def with_side(self, name: str, values: ValueSet) -> Conjunction:
        return Conjunction({**self.sides, name: values}, self.residuals)

    def with_residual(self, residual: Residual) -> Conjunction:
        """What of it satisfies a residual as well."""
        sides = dict(self.sides)
        if residual.wanted:
            for name, side in (implied(residual.formula) or {}).items():
                sides[name] = sides[name] & side if name in sides else side
        return Conjunction(sides, in_order((*self.residuals, residual)))

    @property
    def weight(self) -> int:
        """What a comparison with this box costs."""
        found = 1
        for side in self.sides.values():
            if side.asks:
                found += ASKING
        return found

    def is_empty(self) -> bool:
        """True iff it is proven that no notification satisfies it."""
        for side in self.sides.values():  # asked for every filter, and a loop is faster
            if side.is_empty():
                return True
        return _exclude(self.residuals, self.residuals) if self.residuals else False

    def includes(self, other: Conjunction) -> bool:
        """True iff it is proven that every notification of the other one is in this one."""
        mine, theirs = self.sides, other.sides
        # A side that allows everything is not stored, so no side includes it. Names are compared first, for
        # that is quick.
        if not mine.keys() <= theirs.keys():
            return False
        for residual in self.residuals:
            if residual not in other.residuals:
                return False
        for name, side in mine.items():  # noqa: SIM110  (a loop is faster, and this is asked most of all)
            if not side.includes(theirs[name]):
                return False
        return True

    def overlaps(self, other: Conjunction) -> bool:
        """False iff it is proven that no notification satisfies both."""
        theirs = other.sides
        if self.residuals and other.residuals and _exclude(self.residuals, other.residuals):
            return False
        return all(name not in theirs or side.overlaps(theirs[name]) for name, side in self.sides.items())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conjunction):
            return NotImplemented
        return self.sides == other.sides and self.residuals == other.residuals

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((*self.sides.items(), *self.residuals))
        return self._hash

    def __repr__(self) -> str:
        residuals = f", {self.residuals!r}" if self.residuals else ""
        return f"Conjunction({self.sides!r}{residuals})"


def in_order(residuals: Iterable[Residual]) -> Residuals:
    """Each once, and in an order that does not depend on how they were written."""
    several = tuple(residuals)
    calls = {one.formula.function: one for one in several if type(one.formula) is Call}
    if len(calls) == len(several):  # it is with their functions that their texts begin to differ
        return tuple([calls[function] for function in sorted(calls)])
    named = {_function_and_name(one.formula): one for one in several}
    if len(named) == len(several) and None not in named:  # and go on to differ with the first attributes
        return tuple([named[key] for key in sorted(named)])  # type: ignore[type-var]
    return tuple(sorted(dict.fromkeys(several), key=repr))


def _function_and_name(formula: Formula) -> tuple[str, str] | None:
    if type(formula) is not Call or not formula.operands or type(formula.operands[0]) is not Variable:
        return None
    return formula.function, repr(formula.operands[0].name)


def _exclude(some: Residuals, others: Residuals) -> bool:
    """Whether one demands the opposite of what another one demands."""
    return any(residual.opposite in others for residual in some)


def uncovered(box: Conjunction, others: Sequence[Conjunction], effort: Effort) -> Conjunction | None:
    """A part of the box that lies in none of the others, or None if it is proven that there is none.

    Raises `Undecided` when the effort is spent.
    """
    effort.spend(box.weight * (1 + len(others)))
    others = [other for other in others if other.overlaps(box)]
    if not others:
        return box
    if any(other.includes(box) for other in others):
        return None
    first, rest = others[0], others[1:]
    for name, allowed in first.sides.items():
        here = box.side(name)
        outside = here - allowed
        if not outside.is_empty():
            left = uncovered(box.with_side(name, outside), rest, effort)
            if left is not None:
                return left
        box = box.with_side(name, here & allowed)
    for residual in first.residuals:
        if residual not in box.residuals:
            without = box.with_residual(residual.opposite)
            if not without.is_empty():
                left = uncovered(without, rest, effort)
                if left is not None:
                    return left
            box = box.with_residual(residual)
    return None  # what is left of the box lies within the first


def pieces_outside(box: Conjunction, others: Sequence[Conjunction], effort: Effort) -> list[Conjunction]:
    """All that lies in the box but in none of the others, as boxes. Raises `Undecided`."""
    left = [box]
    for other in others:
        following: list[Conjunction] = []
        for piece in left:
            effort.spend(piece.weight)
            if not other.overlaps(piece):
                following.append(piece)
                continue
            inside = piece
            for name, allowed in other.sides.items():
                here = inside.side(name)
                outside = here - allowed
                if not outside.is_empty():
                    following.append(inside.with_side(name, outside))
                inside = inside.with_side(name, here & allowed)
            for residual in other.residuals:
                if residual not in inside.residuals:
                    without = inside.with_residual(residual.opposite)
                    if not without.is_empty():
                        following.append(without)
                    inside = inside.with_residual(residual)
        left = following
    return left


def simplify(boxes: Iterable[Conjunction], effort: Effort) -> tuple[Conjunction, ...]:
    """Fewer boxes with the same union: those within others go, and those that differ in one side merge.

    Raises `Undecided` when the effort is spent.
    """
    # Each with how many sides and residuals it has: one with more of them than another does not include it.
    kept: list[tuple[Conjunction, int, int]] = []
    waiting = list(boxes)
    while waiting:
        box = waiting.pop(0)
        effort.spend(box.weight * (1 + len(kept)))
        if box.is_empty():
            continue
        sides, residuals = len(box.sides), len(box.residuals)
        for other, fewer, less in kept:
            if fewer <= sides and less <= residuals and other.includes(box):
                break
        else:
            for place, (other, as_many, as_much) in enumerate(kept):
                if as_many == sides and as_much == residuals and _differ_in_one_side(box, other):
                    del kept[place]
                    waiting.insert(0, join(box, other))
                    break
            else:
                kept = [one for one in kept if one[1] < sides or one[2] < residuals or not box.includes(one[0])]
                kept.append((box, sides, residuals))
    return tuple([box for box, _, _ in kept])


def _differ_in_one_side(left: Conjunction, right: Conjunction) -> bool:
    """Of two with as many sides and residuals."""
    if left.sides.keys() != right.sides.keys():
        return False
    if left.residuals != right.residuals:
        mine = [residual for residual in left.residuals if residual not in right.residuals]
        theirs = [residual for residual in right.residuals if residual not in left.residuals]
        return len(mine) == 1 and [mine[0].opposite] == theirs and left.sides == right.sides
    differing = 0
    for name, side in left.sides.items():
        if side != right.sides[name]:
            differing += 1
            if differing > 1:
                return False
    return differing == 1


def join(left: Conjunction, right: Conjunction) -> Conjunction:
    """The smallest box around both, up to what sides can say: side by side the union."""
    common = left.sides.keys() & right.sides.keys()
    sides = {name: left.sides[name] | right.sides[name] for name in common}
    return Conjunction.of(sides, tuple([one for one in left.residuals if one in right.residuals]))
