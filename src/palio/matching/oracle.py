"""The truth about matching: every filter is asked about every notification.

Slow and obviously right. Whatever matches faster is compared with this, and has its interface.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import msgspec

from palio.language import read_filter
from palio.matching import columns
from palio.matching.hints import Hints
from palio.model.errors import DuplicateId, UnknownId
from palio.model.filter import Filter
from palio.model.notification import Notification


class MatchStatistics(msgspec.Struct, frozen=True):
    """What an index holds and has done."""

    filters: int
    conjunctions: int
    constraints: int
    matched_notifications: int
    matches: int


class MatchIndex:
    """Filters by id, and for a notification the ids of those that it satisfies.

    Ids are of any hashable kind. All that can be wrong is found when a filter is added; matching cannot fail.
    """

    def __init__(
        self, filters: Iterable[tuple[Hashable, Filter | str]] = (), *, hints: Hints | None = None
    ) -> None:
        self._filters: dict[Hashable, Filter] = {}
        self._matched_notifications = 0
        self._matches = 0
        for id, filter in filters:
            self.add(id, filter)

    def add(self, id: Hashable, filter: Filter | str) -> None:
        """Add a filter, or its text. Raises `DuplicateId`, or what `Filter.parse` raises."""
        if id in self._filters:
            raise DuplicateId(id)
        self._filters[id] = read_filter(filter)

    def remove(self, id: Hashable) -> None:
        """Remove a filter. Raises `UnknownId`."""
        if id not in self._filters:
            raise UnknownId(id)
        del self._filters[id]

    def match(self, notification: Notification) -> list[Any]:
        """The ids of the filters that the notification satisfies, each once, in no promised order."""
        found = [id for id, filter in self._filters.items() if filter.matches(notification)]
        self._matched_notifications += 1
        self._matches += len(found)
        return found

    def match_encoded(self, encoded: list[bytes]) -> list[list[Any]]:
        """For each encoded notification what `match` returns. Raises `InvalidNotification`."""
        return [self.match(columns.decoded(number, data)) for number, data in enumerate(encoded)]

    def match_batch(self, table: Any) -> tuple[Any, Any]:
        """Row numbers and ids of an Arrow table, as `index.MatchIndex` promises them."""
        rows: list[int] = []
        ids: list[Hashable] = []
        for row, notification in enumerate(columns.notifications(table)):
            found = self.match(notification)
            rows += [row] * len(found)
            ids += found
        return columns.as_arrays(rows, ids, self._filters)

    def statistics(self) -> MatchStatistics:
        conjunctions = [box for filter in self._filters.values() for box in filter.conjunctions]
        return MatchStatistics(
            filters=len(self._filters),
            conjunctions=len(conjunctions),
            constraints=sum(len(box.sides) for box in conjunctions),
            matched_notifications=self._matched_notifications,
            matches=self._matches,
        )

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._filters

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._filters)

    def __getitem__(self, id: Hashable) -> Filter:
        try:
            return self._filters[id]
        except KeyError:
            raise UnknownId(id) from None
