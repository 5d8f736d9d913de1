"""What a broker would save: how many of many filters it has to tell its neighbours of.

By *covering*, those that no other one covers. By *merging*, these again, but two that differ in one attribute
only become one that selects exactly what both do, as long as there are such.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

import msgspec

from palio.matching.poset import Poset
from palio.model.conjunction import Conjunction, join
from palio.model.errors import FilterTooLarge
from palio.model.filter import Filter


class Saved(msgspec.Struct, frozen=True):
    """So many were given; so many are left if equal ones are one, by covering, and by merging as well."""

    filters: int
    distinct: int
    covering: int
    merging: int


def saved(filters: Iterable[Filter], told: Callable[[int], None] = lambda done: None) -> Saved:
    """Count what is left of filters. Contradictions count as given only; `told` hears how many are done."""
    poset, given = Poset(), 0
    for given, filter in enumerate(filters, 1):
        if filter.contradiction is None:
            poset.insert(filter)
        told(given)
    roots = [node.item for node in poset.roots()]
    return Saved(given, len(poset), len(roots), len(merged(roots)))


def merged(filters: Iterable[Filter]) -> list[Filter]:
    """Filters that together select exactly what these do, merged where that is perfect.

    Only conjunctions are merged. A conjunction is filed, for each of its attributes, under all its others: two
    of one place differ in one side.
    """
    kept: list[Filter] = []
    filed: dict[Hashable, Conjunction] = {}
    there: dict[Conjunction, None] = {}
    waiting: list[Conjunction] = []
    for filter in filters:
        if len(filter.conjunctions) == 1:
            waiting.append(filter.conjunctions[0])
        else:
            kept.append(filter)
    while waiting:
        box = waiting.pop()
        partner = next((filed[place] for place in _places(box) if place in filed), None)
        if partner is not None and partner is not box:
            try:
                both = join(box, partner)
            except FilterTooLarge:
                both = None
            if both is not None:
                for place in _places(partner):
                    if filed.get(place) is partner:
                        del filed[place]
                there.pop(partner, None)
                waiting.append(both)
                continue
        there[box] = None
        for place in _places(box):
            filed.setdefault(place, box)
    return [*kept, *(Filter((box,)) for box in there)]


def _places(box: Conjunction) -> list[Hashable]:
    """For each attribute of a box: its name, and all the other sides."""
    sides = list(box.sides.items())
    return [
        (name, *sides[:number], *sides[number + 1 :], *box.residuals) for number, (name, _) in enumerate(sides)
    ]
