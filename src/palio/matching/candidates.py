"""`Candidates`: which of many filters may cover a given one, or be covered by it; thousands in one operation.

The idea. What a filter says decides where it is looked for:

- Most filters demand one certain value of some attribute, a *point*, and whatever such a filter covers demands
  the same value. So they are found by their points: what covers a filter has no points, or is found by one of
  its points; what is covered by a filter that has points is found by any of these. As long as few filters
  have a point in common, that is all; blocks of filters with points are only built when somebody asks a
  question that needs them.
- Questions to texts and lists (`contains`, `has`) have no ends that could be sorted. Filters of nothing else,
  and those that ask for some text, whatever else they say, are found by their examples (`by_example`).
- All others stand in blocks, as columns of where their stretches begin and end (`filter_blocks`).

The filters that are left are looked at one by one (`Outline.may_cover`); what passes is a candidate.

Where it does not help: or-filters whose conjunctions have no attribute in common have no outline. Among filters
that differ in nothing else, or in questions without a literal, the search goes one by one, with an
example (some microseconds for each).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palio.matching.by_example import ByExample, has_literals
from palio.matching.filter_blocks import CandidateEntry, FilterBlocks
from palio.matching.outline import Outline, looked_at

# How many filters with a point in common are looked at one by one.
MAX_TOGETHER_BY_POINT = 128


class Candidates:
    """Filters by outline."""

    def __init__(self) -> None:
        self._pointless = FilterBlocks()
        self._pointed = FilterBlocks()
        self._questions = ByExample()
        self._literal_columns = FilterBlocks()
        self._literals = ByExample(self._literal_columns)
        self._by_point: dict[tuple[str, Any], dict[CandidateEntry, None]] = {}

    def add(self, outline: Outline, owner: Any) -> CandidateEntry:
        """Add a filter. The entry is what removes it again."""
        entry = CandidateEntry(outline, owner)
        home = self._home(entry)
        home.add(entry)
        if home is self._pointed:
            for point in outline.points:
                self._by_point.setdefault(point, {})[entry] = None
        return entry

    def remove(self, entry: CandidateEntry) -> None:
        """Remove a filter that was added and not removed since."""
        home = self._home(entry)
        home.remove(entry)
        if home is self._pointed:
            for point in entry.outline.points:
                together = self._by_point[point]
                del together[entry]
                if not together:
                    del self._by_point[point]

    def _home(self, entry: CandidateEntry) -> FilterBlocks | ByExample:
        outline = entry.outline
        if outline.loose:
            if outline.loose == outline.names:
                return self._questions
            if has_literals(outline):
                return self._literals
        return self._pointed if outline.points else self._pointless

    def covering(self, outline: Outline) -> list[CandidateEntry]:
        """All filters that may cover the outlined one; this one too, if it is there."""
        found = self._pointless.covering(outline)
        found += self._questions.covering(outline) + self._literals.covering(outline)
        together = [self._by_point[point] for point in outline.points if point in self._by_point]
        if sum(map(len, together)) > MAX_TOGETHER_BY_POINT:
            return found + self._pointed.covering(outline)
        candidates = together[0] if len(together) == 1 else {entry: None for one in together for entry in one}
        return found + [entry for entry in looked_at(list(candidates)) if entry.outline.may_cover(outline)]

    def covered(self, outline: Outline) -> list[CandidateEntry]:
        """All filters that the outlined one may cover; this one too, if it is there."""
        found = self._literals.covered(outline)
        if not outline.points:
            found += self._pointless.covered(outline) + self._questions.covered(outline)
            return found + self._pointed.covered(outline)
        together = min([self._by_point.get(point, {}) for point in outline.points], key=len)
        if len(together) > MAX_TOGETHER_BY_POINT:
            return found + self._pointed.covered(outline)
        return found + [entry for entry in looked_at(list(together)) if outline.may_cover(entry.outline)]

    @property
    def blocks(self) -> int:
        return self._pointless.blocks + self._pointed.blocks + self._literal_columns.blocks

    def __iter__(self) -> Iterator[CandidateEntry]:
        yield from self._pointless
        yield from self._pointed
        yield from self._questions
        yield from self._literals
