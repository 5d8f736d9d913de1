"""`ByExample`: filters that ask questions of texts and lists, found by their examples.

Such filters have no ends that could be sorted into columns (`filter_blocks`). But each has an example, some
event that it selects, and a filter that covers another one selects that one's example as well. So

- covering g: those that the example of g satisfies, which an index of the filters finds;
- covered by g: those whose example satisfies g. What satisfies g has its points, and in its texts the literals
  of g (`leads`), so the examples are filed under their attributes, their points, and each three characters in a
  row that their texts have. Those are looked at that have the rarest of what g needs.

Where a filter says more than questions, it has columns too. Then these are what narrows down many that have
the same literal: they are built, and looked at, only when there are too many to be looked at one by one.

A filter without an example, or with one that would be filed under very much, is looked at each time. What is
found is only what may be; whether it is, `Outline.may_cover` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from palio.matching import MatchIndex
from palio.matching.filter_blocks import CandidateEntry, FilterBlocks
from palio.matching.leads import literals
from palio.matching.outline import Outline, looked_at
from palio.model.decision import DecisionNode, Tree
from palio.model.lists import Has
from palio.model.values import Kind
from palio.model.valueset import ValueSet

GRAM = 3  # characters

# How many are looked at one by one where columns could narrow them down.
MAX_TOGETHER = 128
# Under how many keys an example is filed; a text of a thousand characters has three times as many.
MAX_KEYS = 4_096

_Key: TypeAlias = tuple[str, Any]


class ByExample:
    """Filters some of whose attributes are asked questions, by outline."""

    def __init__(self, columns: FilterBlocks | None = None) -> None:
        self._index = MatchIndex()
        self._columns = columns
        self._entries: dict[CandidateEntry, None] = {}
        self._unfiled: dict[CandidateEntry, None] = {}
        self._filed: dict[_Key, dict[CandidateEntry, None]] = {}

    def add(self, entry: CandidateEntry) -> None:
        self._entries[entry] = None
        self._index.add(entry, entry.outline.filter)
        if self._columns is not None:
            self._columns.add(entry)
        keys = _keys(entry.outline)
        if keys is None:
            self._unfiled[entry] = None
        for key in keys or ():
            self._filed.setdefault(key, {})[entry] = None

    def remove(self, entry: CandidateEntry) -> None:
        del self._entries[entry]
        self._index.remove(entry)
        if self._columns is not None:
            self._columns.remove(entry)
        keys = _keys(entry.outline)
        if keys is None:
            del self._unfiled[entry]
        for key in keys or ():
            together = self._filed[key]
            del together[entry]
            if not together:
                del self._filed[key]

    def covering(self, outline: Outline) -> list[CandidateEntry]:
        """All that may cover the outlined filter."""
        if not self._entries:
            return []
        example = outline.example()
        found = list(self._entries) if example is None else self._index.match(example)
        if self._columns is not None and len(found) > MAX_TOGETHER:
            return self._columns.covering(outline, None if example is None else set(found))
        return [entry for entry in looked_at(found) if entry.outline.may_cover(outline)]

    def covered(self, outline: Outline) -> list[CandidateEntry]:
        """All that the outlined filter may cover."""
        if not self._entries:
            return []
        together = min([self._filed.get(key, {}) for key in _needed(outline)], key=len, default=self._entries)
        if together is not self._entries and self._unfiled:
            together = together | self._unfiled
        if self._columns is not None and len(together) > MAX_TOGETHER:
            return self._columns.covered(outline, None if together is self._entries else together)
        return [entry for entry in looked_at(list(together)) if outline.may_cover(entry.outline)]

    def __iter__(self) -> Iterator[CandidateEntry]:
        return iter(self._entries)


def has_literals(outline: Outline) -> bool:
    """Whether a filter asks for some text within a text, or in a list."""
    boxes = outline.filter.conjunctions
    return len(boxes) == 1 and any(any(_texts(boxes[0].sides[name])) for name in outline.loose)


def _keys(outline: Outline) -> set[_Key] | None:
    """Under what a filter is filed: its attributes, its points, and what its example has of short texts.

    None if it has no example, or too much of them.
    """
    example = outline.example()
    if example is None:
        return None
    found: set[_Key] = {(name, None) for name in outline.names} | outline.points
    for name, value in example.attributes.items():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, (str, bytes)):
                if len(one) * GRAM > MAX_KEYS or len(found) > MAX_KEYS:
                    return None
                text = one if isinstance(one, str) else one.decode("latin-1")
                found.update((name, gram) for size in range(1, GRAM + 1) for gram in _grams(text, size))
    return found


def _needed(outline: Outline) -> Iterator[_Key]:
    """Some of the keys that all filters have which the outlined one covers."""
    yield from ((name, None) for name in outline.names)
    yield from outline.points
    if len(outline.filter.conjunctions) != 1:
        return
    for name, side in outline.filter.conjunctions[0].sides.items():
        for text in _texts(side):
            for gram in _grams(text, min(GRAM, len(text))):
                yield name, gram


def _grams(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(len(text) - size + 1)) if size else iter(())


def _texts(side: ValueSet) -> Iterator[str]:
    """Texts that are in every value of a set, or in an element of every list."""
    kinds = [kind for kind in Kind if side.parts[kind]]
    if side.absent or len(kinds) != 1:
        return
    tree: Tree = side.parts[kinds[0]]
    while isinstance(tree, DecisionNode) and not tree.no:
        if isinstance(tree.atom, Has):
            yield from _texts(tree.atom.elements)
        else:
            known = literals(tree.atom)
            yield from (known.prefix, known.suffix, *known.factors)
        tree = tree.yes
    if not isinstance(tree, DecisionNode) and kinds[0] in (Kind.STRING, Kind.BYTES):
        if len(tree) == 2 and tree[1] == tree[0] + "\0":
            yield tree[0]
