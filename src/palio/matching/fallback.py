"""The index for where no compiler was: the oracle, with files that hold ids and texts only."""

from __future__ import annotations

import os
from collections.abc import Hashable

from palio.matching import files, oracle
from palio.model.errors import ReadOnlyIndex
from palio.model.filter import Filter


class MatchIndex(oracle.MatchIndex):
    """Filters by id, and for a notification the ids of those that it satisfies.

    Ids are of any hashable kind. All that can be wrong is found when a filter is added; matching cannot fail.
    """

    _mapped = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file for `open_mapped`. Raises `UnsupportedId`."""
        texts = [
            filter.source if filter.source is not None else str(filter) for filter in self._filters.values()
        ]
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
        """Add a filter, or its text. Raises `DuplicateId`, or what `Filter.parse` raises."""
        if self._mapped:
            raise ReadOnlyIndex
        super().add(id, filter)

    def remove(self, id: Hashable) -> None:
        """Remove a filter. Raises `UnknownId`."""
        if self._mapped:
            raise ReadOnlyIndex
        super().remove(id)
