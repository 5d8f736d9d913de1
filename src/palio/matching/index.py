"""`MatchIndex` on the compiled core: ids, filters and Arrow around what `core` finds."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from palio.language import read_filter
from palio.matching import columns, files
from palio.matching.arrays import ColumnBatch, Payloads
from palio.matching.core import Core, Memory, mapped, match_encoded, match_payloads, match_rows, sections, state
from palio.matching.hints import Hints
from palio.matching.oracle import MatchStatistics
from palio.matching.places import by_slot
from palio.model.errors import DuplicateId, FilterError, InvalidNotification, ReadOnlyIndex, UnknownId
from palio.model.filter import Filter
from palio.model.notification import Notification


class IndexStatistics(MatchStatistics, frozen=True):
    """What a compiled index holds and has done, and what that takes.

    `index_bytes` is the memory of the index itself; the caller's ids and filters are not in it. `asked`
    counts the conjunctions that have nothing to be found by, as `path matches "*a*b*"`: each costs every
    event that has the attribute a question, some 25 nanoseconds or, with a long text, more. `computed` counts
    the filters with residuals, as `bid > ask`: each costs some microseconds of every event that has what
    these imply.
    """

    index_bytes: int
    asked: int
    computed: int
    groups: int
    blocks: int
    values: int
    attributes: int


class MatchIndex:
    """Filters by id, and for a notification the ids of those that it satisfies.

    Ids are of any hashable kind. All that can be wrong is found when a filter is added; matching cannot fail.
    Filters given at once are filed better and faster than one by one. Several threads may match at once; adding
    and removing wait for batches that are running. `hints` say how frequent values are, for an index that has
    not seen any yet: it may become faster by them, and finds the same.
    """

    def __init__(
        self, filters: Iterable[tuple[Hashable, Filter | str]] = (), *, hints: Hints | None = None
    ) -> None:
        self._core = Core()
        if hints is not None:
            self._core.take_hints(hints)
        self._lock = threading.RLock()  # what it guards, the essay in `core` says under Threads
        self._file: files.MappedFile | None = None
        self._sealed = False
        self._known_slots: dict[Hashable, int] | None = {}
        self._filters: list[Filter | None] = []
        self._conjunctions = 0
        self._constraints = 0
        self._matched_notifications = 0
        self._matches = 0
        self._strings = 0
        self._computed: dict[Hashable, Filter] = {}  # by id, those of which the core knows only what is implied
        self._id_array: Any = None
        entered: list[Hashable] = []
        slots = self._core.add_many(self._entering(filters, entered))
        self._filters = by_slot(self._filters, slots)
        self._slots.update(zip(entered, slots, strict=True))

    def _entering(
        self, filters: Iterable[tuple[Hashable, Filter | str]], entered: list[Hashable]
    ) -> Iterator[tuple[Filter, Hashable]]:
        seen: set[Hashable] = set()
        for id, given in filters:
            if id in seen:
                raise DuplicateId(id)
            seen.add(id)
            filter = read_filter(given) if isinstance(given, str) else given
            entered.append(id)
            self._filters.append(filter)
            self._count(id, filter, 1)
            yield filter, id

    def _count(self, id: Hashable, filter: Filter, change: int) -> None:
        conjunctions = filter.conjunctions
        self._conjunctions += change * len(conjunctions)
        is_computed = False
        for box in conjunctions:
            self._constraints += change * len(box.sides)
            if box.residuals:
                is_computed = True
        if is_computed and change > 0:
            self._computed[id] = filter
        elif is_computed:
            del self._computed[id]
        if type(id) is str:
            self._strings += change
        self._id_array = None

    def add(self, id: Hashable, filter: Filter | str) -> None:
        """Add a filter, or its text. Raises `DuplicateId`, or what `Filter.parse` raises."""
        self._require_writable()
        if isinstance(filter, str):
            filter = read_filter(filter)
        with self._lock:
            known = self._slots
            if id in known:
                raise DuplicateId(id)
            known[id] = slot = self._core.add(filter, id)
            if slot == len(self._filters):
                self._filters.append(filter)
            else:
                self._filters[slot] = filter
            self._count(id, filter, 1)

    def remove(self, id: Hashable) -> None:
        """Remove a filter. Raises `UnknownId`."""
        self._require_writable()
        with self._lock:
            slot = self._slots.pop(id, None)
            if slot is None:
                raise UnknownId(id)
            filter = self._filter(slot)
            self._core.remove(slot, filter)
            self._filters[slot] = None
            self._count(id, filter, -1)

    def match(self, notification: Notification) -> list[Any]:
        """The ids of the filters that the notification satisfies, each once, in no promised order."""
        with self._lock:
            if self._core.other_ids:
                self._ids()
            found: list[Any] = self._core.match(notification.attributes)
            if self._computed:
                found = self._decided(found, notification)
            self._matched_notifications += 1
            self._matches += len(found)
        return found

    def match_encoded(self, encoded: list[bytes]) -> list[list[Any]]:
        """For each notification, given as `Notification.encode` gives it, what `match` returns.

        Raises `InvalidNotification` with the path `payload[NUMBER]` for the first one that is none.
        """
        with self._lock:
            if self._core.other_ids:
                self._ids()
            found = match_encoded(self._core, encoded)
            if isinstance(found, int):
                columns.decoded(found, encoded[found])
                raise InvalidNotification(f"{columns.PAYLOAD}[{found}]", "This is not an encoded notification.")
            if self._computed:
                for number, ids in enumerate(found):
                    if not self._computed.keys().isdisjoint(ids):
                        found[number] = self._decided(ids, columns.decoded(number, encoded[number]))
            self._matched_notifications += len(encoded)
            self._matches += sum(map(len, found))
        return found

    def _decided(self, found: list[Any], notification: Notification) -> list[Any]:
        """Those of the ids whose filter is satisfied, where that has something to be computed."""
        computed = self._computed
        return [id for id in found if id not in computed or computed[id].matches(notification)]

    def match_batch(self, table: Any) -> tuple[Any, Any]:
        """Row numbers and ids, as two Arrow arrays of equal length, rows ascending.

        The table (or record batch) has a column for each attribute; null is absent. Or it has a binary column
        `payload`: then each row's notification is encoded there (`Notification.encode`), null is one without
        attributes, and the other columns are ignored. Ids must be of one kind that Arrow knows.

        Raises `UnsupportedColumn` for a column that no attribute can be, and `InvalidNotification` with the
        path `payload[ROW]` for the first row that is not an encoded notification.
        """
        encoded = columns.payloads(table)
        with self._lock:
            self._core.begin_batch()
        try:  # until the end no filter comes or goes, and slots keep their ids
            batch = ColumnBatch(table, self._core.names) if encoded is None else Payloads(encoded)
            arrow = batch.arrow
            numbers = self._core.other_ids == 0
            row_memory, id_memory = self._found(batch)
            rows = _array(arrow, arrow.int64(), row_memory)
            found = _array(arrow, arrow.int64() if numbers else arrow.int32(), id_memory)
            if self._computed:
                rows, found = self._decided_rows(arrow, table, rows, found, numbers)
            ids = self._as_ids(arrow, found, numbers)
        finally:
            self._core.end_batch()
        with self._lock:
            self._matched_notifications += batch.rows
            self._matches += len(rows)
        return rows, ids

    def _decided_rows(self, arrow: Any, table: Any, rows: Any, found: Any, numbers: bool) -> tuple[Any, Any]:
        """Those of the matches that are such where something has to be computed."""
        from pyarrow import compute  # noqa: PLC0415  (optional, and slow to import)

        filters = self._computed if numbers else {self._slots[id]: one for id, one in self._computed.items()}
        asked = compute.is_in(found, value_set=arrow.array(list(filters), found.type))
        if not compute.any(asked).as_py():
            return rows, found
        there = compute.unique(rows.filter(asked)).to_pylist()
        whole = table if isinstance(table, arrow.Table) else arrow.Table.from_batches([table])
        some = arrow.concat_tables([whole.slice(row, 1) for row in there])  # `take` knows no views
        notifications = dict(zip(there, columns.notifications(some), strict=True))
        pairs = zip(rows.filter(asked).to_pylist(), found.filter(asked).to_pylist(), strict=True)
        decided = [filters[id].matches(notifications[row]) for row, id in pairs]
        kept = compute.replace_with_mask(
            arrow.repeat(True, len(asked)), asked, arrow.array(decided, arrow.bool_())
        )
        return rows.filter(kept), found.filter(kept)

    def _found(self, batch: ColumnBatch | Payloads) -> tuple[Memory, Memory]:
        if isinstance(batch, ColumnBatch):
            return match_rows(self._core, batch.columns, batch.rows)
        found = match_payloads(self._core, batch.description, batch.rows)
        if isinstance(found, int):
            columns.decoded(found, batch.array[found].as_py())
            raise InvalidNotification(f"{columns.PAYLOAD}[{found}]", "This is not an encoded notification.")
        return found

    def _as_ids(self, arrow: Any, found: Any, numbers: bool) -> Any:
        if not len(self):
            return arrow.array([], arrow.null())
        if numbers:
            return found
        ids = self._ids()
        if self._strings == len(self):
            if self._id_array is None:
                if len(found) * 4 < len(ids):
                    return arrow.array([ids[slot] for slot in found.to_pylist()], arrow.string())
                self._id_array = arrow.array(ids, arrow.string())
            return self._id_array.take(found)
        return columns.as_arrays([], [ids[slot] for slot in found.to_pylist()], self._slots)[1]

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file for `open_mapped`. Ids must be strings, numbers, bytes or tuples of these.

        The file is there completely or not at all. Raises `UnsupportedId`.
        """
        with self._lock:
            self._save(path)

    def _save(self, path: str | os.PathLike[str]) -> None:
        free = set(state(self._core)["free_slots"])
        texts = [None if slot in free else self._text(slot) for slot in range(self._core.slots)]
        counts = [len(self), self._conjunctions, self._constraints]
        computed = [self._slots[id] for id in self._computed]
        files.write(
            path,
            sections(self._core),
            {"core": state(self._core), "counts": counts, "strings": self._strings, "computed": computed},
            None if self._core.other_ids == 0 else self._ids(),
            texts,
        )

    def _text(self, slot: int) -> str:
        if self._file is not None:
            return str(self._file.texts[slot])
        filter = self._filter(slot)
        return str(filter) if filter.source is None else filter.source

    def _filter(self, slot: int) -> Filter:
        filter = self._filters[slot]
        assert filter is not None
        return filter

    @classmethod
    def open_mapped(cls, path: str | os.PathLike[str], *, verify: bool = True) -> MatchIndex:
        """A saved index, mapped: shared by all processes that map it, not to be changed.

        The file is read through once, to compare its checksum. With `verify=False` it is not, and opened at
        once: for a file that somebody has verified before, as a damaged one can end the process.

        Raises `UnreadableIndex`.
        """
        file = files.read(path, verify=verify)
        if "arena" not in file.sections:  # saved without the compiled core
            index = cls((id, text) for id, text in zip(file.ids, file.texts, strict=True) if text is not None)
            index._sealed = True
            return index
        index = cls()
        index._file = file
        index._sealed = True
        index._known_slots = None
        try:
            index._core = mapped(file.mapping, file.sections, file.meta["core"])
            _, index._conjunctions, index._constraints = file.meta["counts"]
            index._strings = file.meta["strings"]
            for slot in file.meta.get("computed", ()):
                index._computed[file.ids[slot]] = Filter.parse(file.texts[slot])
        except ValueError as problem:
            raise files.unreadable(path, str(problem)) from None
        except (KeyError, TypeError, OverflowError, IndexError, FilterError):
            raise files.unreadable(path, "its table of contents is damaged.") from None
        return index

    def _require_writable(self) -> None:
        if self._sealed:
            raise ReadOnlyIndex

    @property
    def _slots(self) -> dict[Hashable, int]:
        if self._known_slots is None:
            free = set(state(self._core)["free_slots"])
            self._known_slots = {id: slot for slot, id in enumerate(self._ids()) if slot not in free}
        return self._known_slots

    def _ids(self) -> list[Any]:
        """Ids by slot."""
        if self._core.ids is None:
            assert self._file is not None
            self._core.ids = list(self._file.ids)
        return self._core.ids

    def statistics(self) -> IndexStatistics:
        """What the index holds and has done. Takes time in the number of groups."""
        counts = self._core.counts()
        return IndexStatistics(
            filters=len(self),
            conjunctions=self._conjunctions,
            constraints=self._constraints,
            matched_notifications=self._matched_notifications,
            matches=self._matches,
            index_bytes=counts["bytes"],
            asked=counts["asked"],
            computed=len(self._computed),
            groups=counts["groups"],
            blocks=counts["blocks"],
            values=counts["values"],
            attributes=counts["attributes"],
        )

    def __len__(self) -> int:
        return len(self._slots) if self._file is None else int(self._file.meta["counts"][0])

    def __contains__(self, id: Hashable) -> bool:
        return id in self._slots

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._slots)

    def __getitem__(self, id: Hashable) -> Filter:
        try:
            slot = self._slots[id]
        except KeyError:
            raise UnknownId(id) from None
        return self._filter(slot) if self._file is None else Filter.parse(self._text(slot))


def _array(arrow: Any, kind: Any, memory: Any) -> Any:
    buffer = arrow.foreign_buffer(memory.address, memory.size, memory)
    return arrow.Array.from_buffers(kind, memory.size // (kind.bit_width // 8), [None, buffer])
