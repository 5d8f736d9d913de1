"""What tells filters apart: a decision diagram over attributes, in the order of their names.

Several conjunctions joined by or can describe one set of notifications in many ways. The diagram describes
it in one: at each attribute, group its values by what then has to hold of the later attributes; values for
which nothing can hold any more are left out, and an attribute for which all values lead to the same is
skipped. Equal filters have equal diagrams, so the diagram is what is compared and hashed.

A diagram is a tuple of steps, an attribute with what it may be each. At the last one it may branch: then it has
a diagram for each group of values. As long as there is one group only, the steps lie side by side and not
within each other: whoever compares filters of a thousand attributes does not go a thousand levels deep.

It can grow beyond the conjunctions; past a bound they stand for themselves, and two filters that are
written very differently may then count as different although they mean the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from palio.model.conjunction import ASKING, Conjunction
from palio.model.effort import Effort, Undecided
from palio.model.errors import FilterTooLarge
from palio.model.formulas.function import TRUE
from palio.model.values import MAX_NAME_CHARACTERS
from palio.model.valueset import ANYTHING, EMPTY, ValueSet

# In groups of values of an attribute.
MAX_EFFORT = 4_096
_STEPS = 200
# In attributes that stand within each other; people's filters with `or` have some ten.
MAX_DEPTH = 100

# Comes behind all names, and is longer than any.
_LAST = "\U0010ffff" * (MAX_NAME_CHARACTERS + 1)

_Sides = tuple[tuple[str, ValueSet], ...]


def identity(conjunctions: Sequence[Conjunction]) -> Hashable:
    """Equal for equal unions of conjunctions."""
    if len(conjunctions) == 1:
        return (*conjunctions[0].sides.items(), *conjunctions[0].residuals)
    try:
        return _diagram(tuple(map(_sides, conjunctions)), Effort(MAX_EFFORT, _STEPS), MAX_DEPTH)
    except (Undecided, FilterTooLarge):
        return frozenset(conjunctions)


def _sides(box: Conjunction) -> _Sides:
    """The sides, and behind them each residual as a side of an attribute that no other one can be."""
    if not box.residuals:
        return tuple(box.sides.items())
    named = [(_LAST + repr(one.formula), TRUE if one.wanted else ANYTHING - TRUE) for one in box.residuals]
    return (*box.sides.items(), *sorted(named, key=lambda side: side[0]))


def _diagram(boxes: tuple[_Sides, ...], effort: Effort, depth: int) -> tuple[Hashable, ...] | None:
    """None if nothing satisfies the boxes; no steps if everything does."""
    if () in boxes:
        return ()
    if not boxes:
        return None
    if not depth:
        raise Undecided
    name = min(sides[0][0] for sides in boxes)
    grouped: dict[tuple[Hashable, ...], ValueSet] = {}
    for region, members in _cells(name, boxes, effort):
        below = _diagram(members, effort, depth - 1)
        if below is not None:
            grouped[below] = grouped.get(below, EMPTY) | region
    if len(grouped) == 1:
        ((below, region),) = grouped.items()
        return below if region.is_everything() else ((name, region.simplified()), *below)
    if not grouped:
        return None
    return ((name, frozenset((region.simplified(), below) for below, region in grouped.items())),)


def _cells(name: str, boxes: tuple[_Sides, ...], effort: Effort) -> list[tuple[ValueSet, tuple[_Sides, ...]]]:
    """The values of an attribute, grouped by the boxes that allow them; of these, what remains."""
    cells: list[tuple[ValueSet, tuple[_Sides, ...]]] = [(ANYTHING, ())]
    for sides in boxes:
        if sides[0][0] != name:
            cells = [(region, (*members, sides)) for region, members in cells]
            continue
        (_, allowed), rest = sides[0], sides[1:]
        following = []
        for region, members in cells:
            inside, outside = region & allowed, region - allowed
            if not inside.is_empty():
                following.append((inside, members if rest in members else (*members, rest)))
            if not outside.is_empty():
                following.append((outside, members))
        cells = following
        effort.spend(len(cells) * (ASKING if allowed.asks else 1))
    return cells
