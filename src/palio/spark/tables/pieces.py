"""Events in pieces: what there was when a job began, cut such that each piece is read the same again.

A piece is some files of one version of a lake, ranges of journals' sequences, or files as they were. So a job
that is done piece by piece, with days between them, sees what one pass would have seen at its beginning:
whatever is published or archived meanwhile is in no piece. A range that was archived and trimmed since is read
from the lake to which it went. So is one of a journal that came back older since, if it was archived before.

What is not as it was any more is an error, and never a gap: `SourceChanged`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from palio.language import read_filter
from palio.model.filter import Filter
from palio.spark.errors import SourceChanged, UnknownInput
from palio.spark.lake.archiving import position_of
from palio.spark.lake.table import read_lake
from palio.spark.source import offsets
from palio.spark.source.journals import Span, absolute, open_journals
from palio.spark.source.offsets import Offset
from palio.spark.source.reading import read
from palio.spark.tables.inputs import events_at, has_lines, is_journal, is_lake, parquet_at
from palio.spark.tables.positions import JOURNAL, SEQUENCE
from palio.store.lake.manifests import Lake, LakeFile, LakeState

# A piece has at least so many events, or bytes of files: each costs a job of Spark, which takes half a second.
LEAST_EVENTS = 1_000_000
LEAST_BYTES = 64 << 20
# More pieces than that are no finer progress to look at.
MOST_PIECES = 64

Thing = TypeVar("Thing")


class FileVersion(msgspec.Struct, frozen=True):
    """A file as it was: its size in bytes, and when it was last changed (microseconds since 1970)."""

    path: str
    size: int
    changed: int


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    """Some of the events: files of the lake (paths within it), ranges of journals, or files."""

    lake_files: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    files: tuple[FileVersion, ...] = ()


class TablePieces(msgspec.Struct, frozen=True, omit_defaults=True):
    """All pieces, and what they are pieces of. There is at least one, which may be empty."""

    place: str
    pieces: tuple[Piece, ...]
    lake: str | None = None  # the lake's own name, if the place is one
    version: int = 0
    url: str | None = None  # where journals are
    schema: str | None = None  # of Parquet
    since: float | None = None
    until: float | None = None

    def read(self, spark: SparkSession, piece: Piece, *, filter: str | Filter | None = None) -> DataFrame:
        """The events of a piece, in the columns that `past_events` gives.

        A filter chooses among those of a lake and of journals. Raises `SourceChanged`.
        """
        if self.lake is None and self.url is None:
            return self._read_files(spark, piece)
        parsed = None if filter is None else read_filter(filter)
        parts, waiting = [], list(piece.spans)
        if self.lake is not None:
            lake = Lake(self.place)
            state = lake.state()
            if state.lake != self.lake:
                raise SourceChanged(self.place, "another lake is there by now.")
            if piece.lake_files:
                then = lake.state(self.version).files
                parts.append(self._read_lake(spark, lake, [then[path] for path in piece.lake_files], parsed))
            for span in piece.spans:
                parts += self._archived(spark, lake, state, span, parsed)
            waiting = [self._not_archived(lake, state, span) for span in piece.spans]
        if any(span.rows for span in waiting) or (not parts and self.lake is None):
            parts.append(self._read_journals(spark, waiting, parsed))
        if not parts:
            parts.append(self._read_lake(spark, Lake(self.place), [], parsed))
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)

    def _read_lake(
        self, spark: SparkSession, lake: Lake, files: list[LakeFile], filter: Filter | None
    ) -> DataFrame:
        for file, path in zip(files, lake.absolute(files), strict=True):
            if not Path(path).exists():
                raise SourceChanged(self.place, f"{file.path} has been swept away since.")
        forks = lake.state().forks if self.lake is not None else {}
        chosen = {one.path: one for one in files}
        state = LakeState(self.lake or "", self.version, 0.0, {}, chosen, {}, forks)
        since, until = self.since or 0.0, math.inf if self.until is None else self.until
        return read_lake(spark, lake, filter=filter, since=since, until=until, state=state)

    def _archived(
        self, spark: SparkSession, lake: Lake, state: LakeState, span: Span, filter: Filter | None
    ) -> Iterator[DataFrame]:
        """What of a span is in the lake by now."""
        branch = self._branch(lake, span)
        upto = min(span.upto, state.ends(span.journal, branch))
        if upto > span.after:
            own = [one for one in state.events() if one.journal == span.journal and one.branch <= branch]
            ends: dict[int, list[LakeFile]] = {}
            for one in own:
                end = min(upto, state.upto(one, branch))
                if one.last > span.after and one.first <= end:
                    ends.setdefault(end, []).append(one)
            for end, files in ends.items():
                within = (f.col(JOURNAL) == span.journal) & f.col(SEQUENCE).between(span.after + 1, end)
                yield self._read_lake(spark, lake, files, filter).where(within)

    def _not_archived(self, lake: Lake, state: LakeState, span: Span) -> Span:
        """What of a span the journal has to give. Raises `SourceChanged` if it does not have it any more."""
        branch = self._branch(lake, span)
        rest = _after(span, state.ends(span.journal, branch))
        if rest.rows and branch < len(state.forks_of(span.journal)):
            reason = (
                f"the journal {span.journal!r} came back older than it was, without what was to be looked at."
            )
            raise SourceChanged(self.place, reason)
        return rest

    def _branch(self, lake: Lake, span: Span) -> int:
        """In which branch of the lake a span belongs, that was planned with a version of it."""
        return len(lake.state(self.version).forks_of(span.journal))

    def _read_journals(self, spark: SparkSession, spans: list[Span], filter: Filter | None) -> DataFrame:
        assert self.url is not None
        start = Offset({one.journal: one.after for one in spans})
        end = Offset({one.journal: one.upto for one in spans}, {one.journal: one.numbered for one in spans})
        limits: dict[str, Any] = {
            "startingOffsets": json.dumps(start.to_json()),
            "endingOffsets": json.dumps(end.to_json()),
        }
        return read(spark, self.url, filter=filter, since=self.since, until=self.until, **limits)

    def _read_files(self, spark: SparkSession, piece: Piece) -> DataFrame:
        if self.schema is None:
            require_unchanged(self.place, piece.files, files_at(spark, self.place))
            return events_at(spark, self.place)
        paths = [one.path for one in piece.files]
        require_unchanged(self.place, piece.files, _listed(spark, paths))
        schema = StructType.fromJson(json.loads(self.schema))
        if not paths:
            return spark.createDataFrame([], schema)
        reader = spark.read.schema(schema)
        if paths in ([self.place], [f"file:{self.place}"]):
            return reader.parquet(*paths)
        return reader.option("basePath", self.place).parquet(*paths)  # columns may be in the names of folders


def cut(
    spark: SparkSession,
    place: str,
    url: str | None = None,
    *,
    since: float | None = None,
    until: float | None = None,
) -> TablePieces:
    """What `past_events` would read now, in pieces. Raises what it raises."""
    if is_lake(place):
        return _cut_lake(place, url, since, until)
    if url is not None:
        raise UnknownInput(place, "it is no lake, after which journals could go on.")
    if is_journal(place):
        pieces = [Piece(spans=tuple(several)) for several in _cut_journals(place, Offset())]
        return TablePieces(place, tuple(pieces or [Piece()]), url=absolute(place), since=since, until=until)
    if has_lines(place):
        events_at(spark, place)  # raises if there is no such file
        return TablePieces(_absolute(place), (Piece(files=files_at(spark, place)),))
    schema = parquet_at(spark, place).schema.json()
    groups = grouped(files_at(spark, place), lambda file: file.size, LEAST_BYTES)
    pieces = [Piece(files=tuple(several)) for several in groups]
    return TablePieces(_absolute(place), tuple(pieces or [Piece()]), schema=schema)


def files_at(spark: SparkSession, place: str) -> tuple[FileVersion, ...]:
    """The files of a place, as they are now."""
    return tuple(_listed(spark, [_absolute(place)]))


def require_unchanged(place: str, before: Iterable[FileVersion], now: Iterable[FileVersion]) -> None:
    """Raises `SourceChanged` if one of the files is not as it was, or is new."""
    old, new = ({one.path: one for one in files} for files in (before, now))
    for path in {**old, **new}:
        if old.get(path) != new.get(path):
            said = "is new" if path not in old else "is gone" if path not in new else "has changed"
            raise SourceChanged(place, f"{path} {said}.")


def _cut_lake(place: str, url: str | None, since: float | None, until: float | None) -> TablePieces:
    lake = Lake(place)
    state = lake.state()
    begin, end = since or 0.0, math.inf if until is None else until
    chosen = (one for one in state.events() if one.end >= begin and one.begin < end)
    files = sorted(chosen, key=lambda one: (one.begin, one.path))
    groups = grouped(files, lambda one: one.rows, LEAST_EVENTS)
    pieces = [Piece(lake_files=tuple([one.path for one in several])) for several in groups]
    if url is not None:
        pieces += [Piece(spans=tuple(several)) for several in _cut_journals(url, position_of(state))]
        url = absolute(url)
    return TablePieces(
        str(lake.root), tuple(pieces or [Piece()]), state.lake, state.version, url, None, since, until
    )


def _cut_journals(url: str, position: Offset) -> list[list[Span]]:
    """What journals have after a position, by which they must not have been trimmed, nor come back older."""
    positions = position.positions
    with open_journals(absolute(url)) as journals:
        standings = journals.standings()
    offsets.require_same(position, standings)
    offsets.require_kept(positions, [one for one in standings if one.journal in positions])
    start, end = offsets.without_lost(positions, standings), offsets.end_of(standings)
    rows = _least(offsets.rows_between(start, end), LEAST_EVENTS)
    spans = offsets.spans_between(start, end, rows, offsets.lineages_of(standings))
    return grouped(spans, lambda span: span.rows, LEAST_EVENTS)


def grouped(things: Iterable[Thing], size: Callable[[Thing], int], least: int) -> list[list[Thing]]:
    """Things in groups of neighbours, none of them small but the last, and not more than `MOST_PIECES`."""
    several = list(things)
    enough = _least(sum(map(size, several)), least)
    groups: list[list[Thing]] = []
    filled = enough
    for one in several:
        if filled >= enough:
            groups.append([])
            filled = 0
        groups[-1].append(one)
        filled += size(one)
    return groups


def _least(total: int, least: int) -> int:
    return max(1, least, -(-total // MOST_PIECES))


def _after(span: Span, position: int) -> Span:
    """What of a span lies after a position."""
    return Span(span.journal, min(max(span.after, position), span.upto), span.upto, span.numbered)


def _listed(spark: SparkSession, paths: list[str]) -> list[FileVersion]:
    """The files of folders, or those named, as Spark finds them wherever they are; none of them is opened."""
    if not paths:
        return []
    try:
        found = spark.read.format("binaryFile").load(paths)
    except AnalysisException:  # one of them is gone; the others are looked for one by one
        return [] if len(paths) == 1 else [file for path in paths for file in _listed(spark, [path])]
    rows = found.selectExpr("path", "length", "unix_micros(modificationTime) AS changed").collect()
    return [FileVersion(*row) for row in sorted(rows)]


def _absolute(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())
