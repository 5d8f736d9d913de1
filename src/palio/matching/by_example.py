"""`ByExample`: filters that consist of questions to texts and lists, found by their examples.

Such filters have no ends that could be sorted into columns (`candidates`). But each has an example, something
that it selects, and a filter that covers another one selects that one's example as well. So

- covering g: those that the example of g satisfies, which an index of the filters finds;
- covered by g: those whose example satisfies g. A text that satisfies g has the literals of g in it (`leads`),
  so the examples are filed under each three characters in a row that they have, and those are looked at that
  have the rarest three of g's literals. Where g has no literal, those that name g's rarest attribute are.

A filter without an example is looked at each time. What is found is only what may be; whether it is,
`Outline.may_cover` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from palio.matching import MatchIndex
from palio.matching.leads import literals
from palio.matching.outline import Outline, looked_at
from palio.model.decision import DecisionNode, Tree
from palio.model.lists import Has
from palio.model.values import Kind
from palio.model.valueset import ValueSet

if TYPE_CHECKING:
    from palio.matching.candidates import CandidateEntry

GRAM = 3  # characters

_Key: TypeAlias = tuple[str, Any]


class ByExample:
    """Filters all of whose attributes are asked questions, by outline."""

    def __init__(self) -> None:
        self._index = MatchIndex()
        self._entries: dict[CandidateEntry, None] = {}
        self._without_example: dict[CandidateEntry, None] = {}
        self._filed: dict[_Key, dict[CandidateEntry, None]] = {}

    def add(self, entry: CandidateEntry) -> None:
        self._entries[entry] = None
        self._index.add(entry, entry.outline.filter)
        if entry.outline.example() is None:
            self._without_example[entry] = None
        for key in _keys(entry.outline):
            self._filed.setdefault(key, {})[entry] = None

    def remove(self, entry: CandidateEntry) -> None:
        del self._entries[entry]
        self._index.remove(entry)
        self._without_example.pop(entry, None)
        for key in _keys(entry.outline):
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
        return [entry for entry in looked_at(found) if entry.outline.may_cover(outline)]

    def covered(self, outline: Outline) -> list[CandidateEntry]:
        """All that the outlined filter may cover."""
        if not self._entries:
            return []
        needed: list[_Key] = [*((name, None) for name in outline.names), *_needed(outline)]
        together = min([self._filed.get(key, {}) for key in needed], key=len, default=self._entries)
        found = together | self._without_example if self._without_example else together
        return [entry for entry in looked_at(list(found)) if outline.may_cover(entry.outline)]

    def __iter__(self) -> Iterator[CandidateEntry]:
        return iter(self._entries)


def _keys(outline: Outline) -> set[_Key]:
    """Under what a filter is filed: its attributes, and what its example has of short texts."""
    found: set[_Key] = {(name, None) for name in outline.names}
    example = outline.example()
    if example is not None:
        for name, value in example.attributes.items():
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, (str, bytes)):
                    text = one if isinstance(one, str) else one.decode("latin-1")
                    found.update((name, gram) for size in range(1, GRAM + 1) for gram in _grams(text, size))
    return found


def _needed(outline: Outline) -> Iterator[_Key]:
    """Some of the keys that all filters have which the outlined one covers."""
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
