"""The events of one journal in a lake, in the order of their sequences.

A journal lies in many files, by day and class, and the sequences of such files overlap. They are merged: of
each file that has begun it is known up to where it was read (its frontier), and the file with the lowest
frontier is the next to be read from. What is below the lowest frontier is complete; a file that begins above it
is not even open. Rows are matched by their bytes, a batch at a time; only what is selected becomes an object.

Memory is bounded by a batch of about `BATCH_BYTES` for each file that is open, whatever the size of row groups.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from palio.matching import MatchIndex
from palio.matching.projection import body_of
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.store.lake.errors import LakeDamaged
from palio.store.lake.manifests import LakeFile

COLUMNS = ("sequence", "id", "time", "publisher", "payload", "properties")
BATCH_BYTES = 1 << 20
MAX_BATCH = 4_096
# What Parquet reads ahead of a column; without it, it would read all of a row group's column at once.
_BUFFER = 1 << 18

Row: TypeAlias = tuple[int, float, str, Notification]  # sequence, time, publisher, what


class LakeEvents:
    """What a filter selects of some files, after a sequence and from a time on. Close it in the end.

    Of each file only what is up to a sequence belongs to the journal: beyond it there may be what was published
    before that came back older.
    """

    def __init__(
        self, root: Path, files: list[tuple[LakeFile, int]], filter: Filter, *, after: int, since: float = 0.0
    ) -> None:
        self._root = root
        self._after = after
        self._since = round(since * 1e6)
        self._index: MatchIndex | None = None
        if filter != Filter():
            self._index = MatchIndex()
            self._index.add(0, filter)
        wanted = [(one, upto) for one, upto in files if upto > after and one.end >= since - 1e-6]
        self._files = [_LakeFile(one, upto) for one, upto in wanted]
        self._heap = [(max(one.first, after + 1), number) for number, (one, _) in enumerate(wanted)]
        heapq.heapify(self._heap)

    @property
    def frontier(self) -> int | None:
        """The sequence below which everything was given; None if that is all there is."""
        return self._heap[0][0] if self._heap else None

    def next(self, upto: int) -> Row | None:
        """The next one, if that is known without reading any further, and not after `upto`."""
        if not self._heap or self._heap[0][0] > upto:
            return None
        _, number = self._heap[0]
        file = self._files[number]
        if not file.rows:
            return None
        row = file.rows.popleft()
        heapq.heapreplace(self._heap, (file.frontier, number))
        return row

    def read_on(self) -> None:
        """Read a batch of the file that is the furthest behind. Raises `LakeDamaged`."""
        _, number = self._heap[0]
        file = self._files[number]
        try:
            if file.batches is None:
                file.open(self._root, self._after)
            assert file.batches is not None
            batch = next(file.batches, None)
            if batch is None:
                file.close()
                heapq.heappop(self._heap)
                return
            self._take(file, batch)
        except (OSError, pa.ArrowException, PalioError, ValueError) as problem:
            reason = f"The file {file.about.path} cannot be read ({_line(problem)})."
            raise LakeDamaged(str(self._root), reason, file.about.path) from None
        heapq.heapreplace(self._heap, (file.frontier, number))

    def _take(self, file: _LakeFile, batch: Any) -> None:
        if not batch.num_rows:
            return
        file.reached = batch.column("sequence")[batch.num_rows - 1].as_py()
        wanted = pc.greater(batch.column("sequence"), self._after)
        if file.reached > file.upto:
            wanted = pc.and_(wanted, pc.less_equal(batch.column("sequence"), file.upto))
        if self._since > 0:
            wanted = pc.and_(wanted, pc.greater_equal(batch.column("time").cast(pa.int64()), self._since))
        batch = batch.filter(wanted)
        if self._index is not None and batch.num_rows:
            rows, _ = self._index.match_batch(batch.select(["payload"]))
            batch = batch.take(rows)
        times = batch.column("time").cast(pa.int64())
        columns = [times if name == "time" else batch.column(name) for name in COLUMNS]
        for sequence, id, micros, publisher, payload, properties in zip(
            *[column.to_pylist() for column in columns], strict=True
        ):
            body = body_of(payload, id, properties)
            file.rows.append((sequence, micros / 1e6, publisher or "", Notification.of_body(body)))

    def close(self) -> None:
        for file in self._files:
            file.close()


class _LakeFile:
    """A file, as far as it was read."""

    __slots__ = ("_raw", "about", "batches", "reached", "rows", "upto")

    def __init__(self, about: LakeFile, upto: int) -> None:
        self.about = about
        self.upto = upto
        self.batches: Iterator[Any] | None = None
        self.rows: deque[Row] = deque()  # of what was read, those that are wanted and were not given yet
        self.reached = about.first - 1
        self._raw: BinaryIO | None = None

    @property
    def frontier(self) -> int:
        return self.rows[0][0] if self.rows else self.reached + 1

    def open(self, root: Path, after: int) -> None:
        self._raw = open(root / self.about.path, "rb")  # noqa: SIM115 (it is closed with the file)
        parquet = pq.ParquetFile(self._raw, buffer_size=_BUFFER, pre_buffer=False)
        found = map(parquet.metadata.row_group, range(parquet.num_row_groups))
        groups = {number: one for number, one in enumerate(found) if not _is_before(one, after)}
        size = sum(map(_bytes_of, groups.values()))
        rows = sum(one.num_rows for one in groups.values())
        batch = max(1, min(MAX_BATCH, BATCH_BYTES * rows // max(size, 1)))
        self.batches = parquet.iter_batches(batch, list(groups), columns=list(COLUMNS), use_threads=False)

    def close(self) -> None:
        self.batches = None
        self.rows.clear()
        if self._raw is not None:
            self._raw.close()
            self._raw = None


def _is_before(group: Any, after: int) -> bool:
    """Whether a row group has nothing after a sequence, as its statistics say."""
    statistics = next(one.statistics for one in _columns(group) if one.path_in_schema == "sequence")
    return statistics is not None and statistics.has_min_max and statistics.max <= after


def _bytes_of(group: Any) -> int:
    """How large the columns of a row group are that are read."""
    return sum(one.total_uncompressed_size for one in _columns(group) if one.path_in_schema in COLUMNS)


def _columns(group: Any) -> Iterator[Any]:
    return map(group.column, range(group.num_columns))


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
