"""What tells filters apart: a decision diagram over attributes, in the order of their names.

Several conjunctions joined by or can describe one set of notifications in many ways. The diagram describes
it in one: at each attribute, group its values by what then has to hold of the later attributes; values for
which nothing can hold any more are left out, and an attribute for which all values lead to the same is
skipped. Equal filters have equal diagrams, so the diagram is what is compared and hashed.

It can grow beyond the conjunctions; past a bound they stand for themselves, and two filters that are
written very differently may then count as different although they mean the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from palio.model.conjunction import ASKING, Conjunction
from palio.model.effort import Effort, Undecided
from palio.model.errors import FilterTooLarge
from palio.model.valueset import ANYTHING, EMPTY, ValueSet

# In groups of values of an attribute.
MAX_EFFORT = 4_096

_Sides = tuple[tuple[str, ValueSet], ...]


def identity(conjunctions: Sequence[Conjunction]) -> Hashable:
    """Equal for equal unions of conjunctions."""
    if len(conjunctions) == 1:
        diagram: Hashable = True
        for name, side in reversed(conjunctions[0].sides.items()):  # type: ignore[call-overload]
            diagram = (name, frozenset({(side, diagram)}))
        return diagram
    try:
        return _diagram(tuple(tuple(box.sides.items()) for box in conjunctions), Effort(MAX_EFFORT))
    except (Undecided, FilterTooLarge):
        return frozenset(conjunctions)


def _diagram(boxes: tuple[_Sides, ...], effort: Effort) -> Hashable:
    if () in boxes:
        return True
    if not boxes:
        return False
    name = min(sides[0][0] for sides in boxes)
    grouped: dict[Hashable, ValueSet] = {}
    for region, members in _cells(name, boxes, effort):
        below = _diagram(members, effort)
        if below is not False:
            grouped[below] = grouped.get(below, EMPTY) | region
    if len(grouped) == 1:
        ((below, region),) = grouped.items()
        if region.is_everything():
            return below
    return (name, frozenset((region.simplified(), below) for below, region in grouped.items()))


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
