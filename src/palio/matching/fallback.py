"""The index for where no compiler was: the oracle, with files that hold ids and texts only."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable
from typing import Any

from palio.matching import files, oracle
from palio.matching.hints import Hints
from palio.model.errors import ReadOnlyIndex
from palio.model.filter import Filter
from palio.model.notification import Notification


class MatchIndex(oracle.MatchIndex):
    """Filters by id, and for a notification the ids of those that it satisfies.

    Ids are of any hashable kind. All that can be wrong is found when a filter is added; matching cannot fail.
    The compiled index may be used by several threads, so this one may be, too.
    """

    _mapped = False

    def __init__(
        self, filters: Iterable[tuple[Hashable, Filter | str]] = (), *, hints: Hints | None = None
    ) -> None:
        self._lock = threading.RLock()
        super().__init__(filters, hints=hints)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file for `open_mapped`. Raises `UnsupportedId`."""
        texts = [str(one) if one.source is None else one.source for one in self._filters.values()]
        files.write(path, {}, {}, list(self._filters), texts)

    @classmethod
    def open_mapped(cls, path: str | os.PathLike[str], *, verify: bool = True) -> MatchIndex:
        """A saved index, not to be changed; `verify` compares its checksum. Raises `UnreadableIndex`."""
        file = files.read(path, verify=verify)
        entries = zip(file.ids, file.texts, strict=True)
        index = cls((id, text) for id, text in entries if text is not None)
        index._mapped = True
        return index

    def add(self, id: Hashable, filter: Filter | str) -> None:
        if self._mapped:
            raise ReadOnlyIndex
        with self._lock:
            super().add(id, filter)

    def remove(self, id: Hashable) -> None:
        if self._mapped:
            raise ReadOnlyIndex
        with self._lock:
            super().remove(id)

    def match(self, notification: Notification) -> list[Any]:
        with self._lock:
            return super().match(notification)

    def match_encoded(self, encoded: list[bytes]) -> list[list[Any]]:
        with self._lock:
            return super().match_encoded(encoded)

    def match_batch(self, table: Any) -> tuple[Any, Any]:
        with self._lock:
            return super().match_batch(table)
