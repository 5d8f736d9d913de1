"""Shards: the index of all subscriptions, cut into files that the workers of an executor map and share.

Executors parse the filters and build the files, a task each; the driver learns names and counts only. A shard
is two files. One is a saved index whose ids are positions, so that whatever the ids of the subscriptions are,
the core answers with numbers; the other is an Arrow file of the ids at these positions. Both are mapped:
however many workers an executor has, it holds each once.

A file has to come from the executor that built it to all others. Either they share a folder, as on one
machine, or it goes through the driver's disk, in pieces, and becomes an artifact of the session, which Spark
brings to every executor that asks for it.
"""

from __future__ import annotations

import math
import tempfile
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from palio.language import PALIO, read_filter
from palio.matching import MatchIndex
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.spark.arrow import Batches, arrow_schema, batch_of
from palio.spark.errors import BadSubscriptions
from palio.spark.frames import SUBSCRIPTION, said_filters, travels_by_artifacts
from palio.spark.runtime.folders import shared_folder
from palio.spark.runtime.scratch import scratch_folder
from palio.spark.runtime.workers import give_back

# Two such indexes being built at a time keep well below 2 GB, at some 2.5 KB for each filter as Python objects.
SHARD_SUBSCRIPTIONS = 200_000
_PIECE_BYTES = 8 << 20
_BUILT = "file string, data binary, report binary"
# A filter may name what it likes; past this many names a shard does not say which ones.
_NAMED_ATTRIBUTES = 4_096


class ShardReport(msgspec.Struct, frozen=True):
    """What the task that built a shard has to say. `attributes` are those that its filters name, if few."""

    shard: str
    subscriptions: int
    unreadable: int
    first_id: str
    first_reason: str
    attributes: list[str] | None


class Shards(msgspec.Struct, frozen=True):
    """All subscriptions as shards, for `match`: build once, match as often as you like.

    `folder` is where all executors find the files; None if they are artifacts of the session.
    """

    reports: tuple[ShardReport, ...]
    folder: str | None
    id_type: Any

    @property
    def subscriptions(self) -> int:
        """How many there are, without those whose filter cannot be read."""
        return sum(one.subscriptions for one in self.reports)

    @property
    def unreadable(self) -> int:
        """How many were left out, because their filter cannot be read."""
        return sum(one.unreadable for one in self.reports)

    @property
    def attributes(self) -> set[str] | None:
        """The attributes that the filters name; None if they are too many to tell."""
        named = [one.attributes for one in self.reports]
        return None if None in named else {name for names in named for name in names or ()}


def build_shards(
    subscriptions: DataFrame,
    *,
    invalid: str = "error",
    storage: str | None = None,
    size: int = SHARD_SUBSCRIPTIONS,
    number: int | None = None,
) -> Shards:
    """Build the index of a table with `subscription_id`, of any type, and `filter`, the text.

    With a column `dialect`, it says what the texts are written in.

    `invalid` says what becomes of a filter that cannot be read: "error" raises `BadSubscriptions`, "skip"
    leaves it out (`unreadable` shows which those are). `storage` is a folder that all executors can write to
    and read; without one the files become artifacts, or lie in a temporary folder if all of Spark is on this
    machine. `number` is for whoever has counted the subscriptions already.
    """
    if invalid not in ("error", "skip"):
        raise ValueError(f'invalid is "error" or "skip", not {invalid!r}.')
    given = said_filters(subscriptions)
    spark = subscriptions.sparkSession
    folder: str | None = None
    if storage is not None:
        folder = str(shared_folder("storage", storage))
    elif not travels_by_artifacts(spark):
        folder = scratch_folder()
    count = max(1, math.ceil((given.count() if number is None else number) / size))
    built = given.repartition(count).mapInArrow(partial(_build, folder), _BUILT)
    reports = _as_artifacts(spark, built) if folder is None else _reports(built)
    told = tuple(one for one in reports if one.subscriptions or one.unreadable)
    shards = Shards(told, folder, given.schema[SUBSCRIPTION].dataType)
    if shards.unreadable and invalid == "error":
        first = next(one for one in reports if one.unreadable)
        raise BadSubscriptions(shards.unreadable, first.first_id, first.first_reason)
    return shards


def _as_artifacts(spark: Any, built: DataFrame) -> list[ShardReport]:
    """Bring the files here, in pieces, and hand them to Spark; they stay, as Spark serves them from here."""
    folder = Path(scratch_folder())
    built = built.persist(StorageLevel.DISK_ONLY)  # or each partition would be built when its turn comes
    try:
        reports = _reports(built)
        names = set()
        for row in built.where("report is null").select("file", "data").toLocalIterator():
            names.add(row["file"])
            with (folder / row["file"]).open("ab") as file:
                file.write(row["data"])
    finally:
        built.unpersist()
    for name in sorted(names):
        spark.addArtifact(str(folder / name), file=True)
    return reports


def _reports(built: DataFrame) -> list[ShardReport]:
    rows = built.where("report is not null").select("report").collect()
    return [msgspec.json.decode(bytes(row["report"]), type=ShardReport) for row in rows]


def _build(folder: str | None, batches: Batches) -> Batches:
    """On an executor: a partition's subscriptions become a shard, whose files stay or are sent in pieces."""
    name = f"palio-{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory(prefix="palio-shard-") as own:
        place = Path(folder or own)
        place.mkdir(parents=True, exist_ok=True)
        report = _write_shard(place, name, batches)
        give_back()
        schema = arrow_schema(_BUILT)
        if folder is None:
            for file in sorted(place.iterdir()):
                for piece in _pieces(file):
                    yield batch_of(schema, [file.name], [piece], [None])
        yield batch_of(schema, [None], [None], [msgspec.json.encode(report)])


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _write_shard(folder: Path, name: str, batches: Batches) -> ShardReport:
    reading = _Reading()
    index = MatchIndex(reading.entries(batches))
    if reading.count:
        index.save(folder / index_file(name))
        table = pa.table({SUBSCRIPTION: pa.chunked_array(reading.ids)}).combine_chunks()
        with pa.ipc.new_file(folder / ids_file(name), table.schema) as writer:
            writer.write_table(table)
    names = sorted(reading.attributes) if len(reading.attributes) <= _NAMED_ATTRIBUTES else None
    return ShardReport(name, reading.count, reading.unreadable, reading.first_id, reading.first_reason, names)


class _Reading(msgspec.Struct, eq=False):
    """Filters of batches with their positions, the ids at these positions, and what could not be read."""

    ids: list[Any] = []
    attributes: set[str] = set()
    count: int = 0
    unreadable: int = 0
    first_id: str = ""
    first_reason: str = ""

    def entries(self, batches: Batches) -> Iterator[tuple[int, Filter]]:
        for batch in batches:
            ids = batch.column(0)
            taken = []
            for row, said in enumerate(zip(*(column.to_pylist() for column in batch.columns[1:]), strict=True)):
                filter = parsed(*said)
                if isinstance(filter, Filter):
                    taken.append(row)
                    if len(self.attributes) <= _NAMED_ATTRIBUTES:
                        self.attributes.update(filter.attributes)
                    yield self.count, filter
                    self.count += 1
                else:
                    self._note(ids[row], filter)
            if len(taken) < len(ids):
                ids = ids.take(pa.array(taken, pa.int64()))
            self.ids.append(ids)

    def _note(self, id: Any, reason: str) -> None:
        if not self.unreadable:
            self.first_id, self.first_reason = str(id.as_py()), reason
        self.unreadable += 1


def parsed(text: str | None, dialect: str | None = None) -> Filter | str:
    """A filter, or why it is none. Without a dialect it is in our own language."""
    if text is None:
        return "There is no filter; `true` is the one that everything satisfies."
    try:
        return read_filter(text, PALIO if dialect is None else dialect)
    except PalioError as problem:
        return str(problem)


def index_file(shard: str) -> str:
    return f"{shard}.index"


def ids_file(shard: str) -> str:
    return f"{shard}.ids"
