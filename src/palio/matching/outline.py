"""`Outline`: for each attribute of a filter the stretch that it takes up, and what follows for covering.

Put all values of all kinds on one line: absence first, then bools, numbers (ints and floats together),
strings, times, bytes, lists. A set of values has a lowest and a highest place on that line, and a set within
another cannot reach further than that one. So a filter covers another one only if

- each attribute that it names is named by every conjunction of the other one, and
- there its stretch contains the other one's stretch, and
- where it has one single value (a *point*), the other one has the same.

All are necessary and cheap to test; that they suffice is for `Filter.covers` to say. A filter of several
conjunctions is outlined by what is around all of them: the attributes that all of them name, and for each the
stretch from the lowest place to the highest.

Where texts or lists are asked questions (`contains`, `has` and so on) the true ends are not known. Then there
are two stretches: the *outer* one surely contains the set, and is what the filter can cover; the *inner* one
surely lies within it, being a single example, and is what a covering filter must contain. Everywhere else
both are the same. Such a filter, or one of several conjunctions, is *rough*: as comparing it takes long, a
filter that may cover it is first asked whether it selects an example of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from palio.matching.leads import glob_blocks
from palio.model.conjunction import Conjunction
from palio.model.decision import DecisionNode
from palio.model.effort import Undecided, spend
from palio.model.errors import FilterTooLarge
from palio.model.filter import Filter
from palio.model.flips import EVERYTHING, successor
from palio.model.lists import Has
from palio.model.notification import Notification
from palio.model.texts import EndsWith, GlobMatches
from palio.model.values import Kind
from palio.model.valueset import ValueSet, union

# A place on the line: (rank of the kind, value), or a rank alone. As tuples compare, (20,) lies before all
# strings and (22,) behind them. Ranks are ints, as sorting tuples is faster then. A stretch ends before its
# second place.
Place: TypeAlias = tuple[Any, ...]
Stretch: TypeAlias = tuple[Place, Place]

# Steps of effort of a look at an outline, which takes up to five microseconds; counted so many at a time.
LOOK = 20
LOOKS = 16

Looked = TypeVar("Looked")

_RANKS = {
    Kind.BOOL: 0,
    Kind.INT: 10,
    Kind.FLOAT: 10,
    Kind.STRING: 20,
    Kind.TIME: 30,
    Kind.BYTES: 40,
    Kind.LIST: 50,
}
_PARTS = tuple((kind, rank, (rank,), (rank + 2,)) for kind, rank in _RANKS.items())
_ABSENT: Stretch = ((-10,), (-8,))
_SOME_LIST: Stretch = ((51,), (51,))
_WHOLE_LINE: Stretch = (_ABSENT[0], (52,))
_UNKNOWN: Stretch = ((90,), (-90,))  # lies within every stretch


class Outline:
    """What the search for candidates knows of a filter, which must not be a contradiction.

    Immutable; an example is found when it is needed.
    """

    __slots__ = (
        "_example", "_example_sought", "begins", "ends", "filter", "inner", "loose", "names", "outer", "points",
        "rough",
    )  # fmt: skip

    def __init__(self, filter: Filter) -> None:
        boxes = filter.conjunctions
        self.filter = filter
        self.outer: dict[str, Stretch] = {}
        loose: dict[str, Stretch] = {}
        # The attributes that have one single value, with it: whatever this filter covers has the same one
        # there.
        points: list[tuple[str, Any]] = []
        for name in _common_names(boxes):
            sides = [box.sides[name] for box in boxes]
            if (point := _point(sides[0])) is not None and all(_point(side) == point for side in sides[1:]):
                points.append((name, point))
            outer, inner = _stretches(sides)
            if len(boxes) > 1 and outer == _WHOLE_LINE and _is_everything(sides):
                continue
            self.outer[name] = outer
            if inner is not outer:
                loose[name] = inner
        self.points = frozenset(points)
        self.inner = self.outer | loose if loose else self.outer
        self.names = frozenset(self.outer)
        self.loose = frozenset(loose)
        self.rough = bool(loose) or len(boxes) > 1
        # What covers this filter comes no later by `begins`, and if that is a tie, no earlier by `ends`.
        self.begins = (len(self.outer), *[low for low, _ in self.outer.values()])
        self.ends = tuple([high for _, high in self.outer.values()])
        self._example: Notification | None = None
        self._example_sought = False

    def may_cover(self, other: Outline) -> bool:
        """False only if this outline's filter does not cover the other's."""
        if not self.names <= other.names or not self.points <= other.points:
            return False
        theirs = other.inner
        for name, (low, high) in self.outer.items():
            their_low, their_high = theirs[name]
            if low > their_low or high < their_high:
                return False
        if self.rough or other.rough:
            example = other.example()
            return example is None or self.filter.matches(example)
        return True

    def example(self) -> Notification | None:
        """What the filter selects; None if nothing is known. Sought once."""
        if not self._example_sought:
            self._example_sought = True
            self._example = self._made_example() or self.filter.example()
        return self._example

    def _made_example(self) -> Notification | None:
        """An example of a conjunction of plain questions and what else is plain, which needs no search."""
        boxes = self.filter.conjunctions
        if len(boxes) != 1 or not self.loose or boxes[0].residuals:
            return None
        made: dict[str, Any] = {}
        for name, side in boxes[0].sides.items():
            value = _made_value(side) if name in self.loose else side.example()
            if value is not None:
                made[name] = value
            elif not side.absent:
                return None
        return Notification.of_values(made)


def _common_names(boxes: tuple[Conjunction, ...]) -> list[str]:
    if not boxes:
        return []
    return [name for name in boxes[0].sides if all(name in box.sides for box in boxes[1:])]


def _point(side: ValueSet) -> tuple[int, Any] | None:
    """The one value of a set, and the rank of its kind; None if there are more, or it is not easily seen."""
    if side.absent:
        return None
    found: tuple[int, Any] | None = None
    for (kind, rank, *_), part in zip(_PARTS, side.parts, strict=True):
        if not part:
            continue
        if type(part) is not tuple or len(part) != 2 or part[1] != successor(kind, part[0]):
            return None
        if found is not None and found != (rank, part[0]):
            return None
        found = rank, part[0]
    return found


def _is_everything(sides: list[ValueSet]) -> bool:
    try:
        return union(sides).is_everything()
    except FilterTooLarge:
        return False


def _stretches(sides: list[ValueSet]) -> tuple[Stretch, Stretch]:
    """The outer and the inner stretch of a union of sets; one and the same object where they are equal."""
    known: list[Stretch] = []
    outer: list[Stretch] = []
    inner: list[Stretch] = []
    for side in sides:
        if side.absent:
            known.append(_ABSENT)
        for (kind, rank, first, last), part in zip(_PARTS, side.parts, strict=True):
            if type(part) is not tuple:
                outer.append((first, last))
                inner.append(_example_stretch(kind, rank, side))
            elif part:
                known.append(((rank, part[0]), (rank, part[-1]) if len(part) % 2 == 0 else last))
    around = _around(known + outer)
    return around, _around(known + inner) if outer else around


def _around(stretches: list[Stretch]) -> Stretch:
    if len(stretches) == 1:
        return stretches[0]
    if not stretches:
        return _UNKNOWN
    return min(low for low, _ in stretches), max(high for _, high in stretches)


def _made_value(side: ValueSet) -> Any:
    """What satisfies one plain question: its own literals. None where that is not so, or it is none."""
    kinds = [kind for kind in Kind if side.parts[kind]]
    if len(kinds) != 1:
        return None
    node = side.parts[kinds[0]]
    if not isinstance(node, DecisionNode) or node.no or node.yes != EVERYTHING[kinds[0]]:
        return None
    value: Any
    match node.atom:
        case Has():
            element = _made_value(node.atom.elements)
            if element is None and all(type(part) is tuple for part in node.atom.elements.parts):
                element = node.atom.elements.example()
            value = None if element is None else (element,)
        case GlobMatches():
            blocks = glob_blocks(node.atom.pattern).blocks
            value = "/".join("".join(runs) for block in blocks for runs in block.segments)
        case EndsWith():
            value = node.atom.text
        case _:
            return None
    if kinds[0] == Kind.BYTES:
        value = value.encode("latin-1")
    return value if value is not None and value in side else None


def _example_stretch(kind: Kind, rank: int, side: ValueSet) -> Stretch:
    try:
        value = _made_value(side)
        if value is None:
            value = side.only(kind).example()
    except (Undecided, FilterTooLarge):
        return _UNKNOWN
    if value is None or value not in side:
        return _UNKNOWN
    if isinstance(value, tuple):
        return _SOME_LIST
    place = (rank, value.decode("latin-1") if isinstance(value, bytes) else value)
    return place, place


def looked_at(several: Iterable[Looked]) -> Iterator[Looked]:
    """What is looked at one by one: that counts as effort, and whoever asks may have to wait."""
    for number, one in enumerate(several, start=1):
        if not number % LOOKS:
            spend(LOOKS * LOOK)
        yield one
