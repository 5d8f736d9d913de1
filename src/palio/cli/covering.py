"""Which filters lie within others, without asking about every pair.

Two facts keep the number of questions small, and neither loses an answer:

- A conjunction can hold all of another one only if the other restricts every attribute that it restricts. So
  the conjunctions are put into buckets by their attributes, and only buckets with a part of a filter's
  attributes are looked at. (A filter of several conjunctions can cover in other ways: all of those are in
  one more bucket, which is always looked at.)
- A filter that covers another selects every event which that one selects, so also any single one. An event
  that satisfies the filter in question is given to the bucket's `MatchIndex`, and only what matches can
  cover. This costs what matching costs, and gets faster when matching does.

What is left is asked with `covers`, which is exact.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar, cast

from palio import MatchIndex
from palio.model.filter import Filter

Id = TypeVar("Id", bound=Hashable)


class CoveringSearch(Generic[Id]):
    """A fixed collection of satisfiable filters by id, in an order that answers keep to."""

    def __init__(self, filters: Iterable[tuple[Id, Filter]]) -> None:
        self._order: dict[Id, int] = {}
        self._buckets: dict[frozenset[str], MatchIndex] = {}
        self._several = MatchIndex()
        self._within: dict[frozenset[str], list[MatchIndex]] = {}
        for id, filter in filters:
            self._order[id] = len(self._order)
            if len(filter.conjunctions) == 1:
                self._buckets.setdefault(filter.attributes, MatchIndex()).add(id, filter)
            else:
                self._several.add(id, filter)

    def covering(self, filter: Filter) -> Iterator[tuple[Id, Filter]]:
        """The filters of the collection that cover this one (itself too, if it is among them), in order."""
        candidates = sorted(self._candidates(filter), key=lambda one: self._order[one[0]])
        return (one for one in candidates if one[1].covers(filter))

    def _candidates(self, filter: Filter) -> Iterator[tuple[Id, Filter]]:
        example = filter.example()
        for index in self._buckets_within(filter):
            for id in index if example is None else index.match(example):
                yield cast("Id", id), index[id]

    def _buckets_within(self, filter: Filter) -> list[MatchIndex]:
        """Where something that covers it can be: a single conjunction must hold each of the filter's own."""
        common = frozenset.intersection(*(frozenset(box.sides) for box in filter.conjunctions))
        if common not in self._within:
            buckets = [index for names, index in self._buckets.items() if names <= common]
            self._within[common] = [*buckets, self._several]
        return self._within[common]
