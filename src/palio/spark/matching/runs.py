"""Matching day by day: a run costs what is new, and what was found before stays found.

A folder holds the pairs of all runs. A run matches the events that came since the last one against all
subscriptions, and those that were there before against the subscriptions that are new or have changed. Three
keys make that exact: an event's position (journal, sequence), a subscription's id, and its revision: a column
of that name, or a hash of the filter's text and dialect.

A run keeps, for each subscription that it saw, since which run it has had its revision. Pairs of earlier runs
belong to a filter that is no longer there; so the pairs that count are those of a run not before that one, of
subscriptions that the last run saw. Nothing that was written is ever changed, and a subscription that comes
back with an old filter is new.

A run exists when its file is there, created completely or not at all, and only if there is none; of two runs
at the same time one succeeds. What an interrupted run leaves is never looked at, and deleted a day later.

Much that is new is done in several runs, so that an interruption costs one of them at the most. Then there are
runs after which subscriptions that came with run n are *behind*: matched up to a position that lies before that
of all others. Whoever comes next lets them catch up first. Between two runs everything holds that holds between
days: subscriptions may change, and a pair is found once.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession, functions

from palio.language import PALIO
from palio.protocol.durable.lineage import JournalGap, Lineage
from palio.spark.errors import DoubledSubscriptions, RunsChanged, RunsDamaged
from palio.spark.frames import DIALECT, EVENT, FILTER, SUBSCRIPTION, require_columns, said_filters
from palio.spark.matching.bulk import match
from palio.spark.matching.shards import Shards, build_shards
from palio.spark.runtime.folders import shared_folder
from palio.spark.source import offsets
from palio.spark.source.offsets import Offset, Positions
from palio.spark.tables.positions import JOURNAL, SEQUENCE, Branch, InTable, Positioned
from palio.store.lake.once import create_once, make_folder, sync_folder, sync_tree

REVISION = "revision"
_SINCE = "since"
_RUN = "run"
_RUNS = "_runs"
# Runs that are made for what is new since the last one; more would be no finer, but slower to read.
MOST_RUNS = 64
# Seconds for which whatever belongs to no run may belong to one that is under way.
GRACE = 86_400.0


class Run(msgspec.Struct, frozen=True):
    """One run: up to where each journal was matched, and what it wrote.

    Subscriptions that came with a run that `behind` names were matched up to there only.
    """

    number: int
    positions: dict[str, int]
    pairs: str
    subscriptions: str
    found: int
    fresh: int  # subscriptions that were new or had changed
    behind: dict[int, Positions] = {}
    lineages: dict[str, Lineage] = {}  # of the journals, by the names that they have in positions
    branches: dict[str, Branch] = {}  # journals that came back older, by the names that they have since
    gaps: tuple[JournalGap, ...] = ()  # what was noticed to be missing of these, with this run


class MatchStretch(msgspec.Struct, frozen=True):
    """Events between two positions, and the subscriptions to match: those that came with a run, or all."""

    since: int | None
    after: Positions
    upto: Positions

    @property
    def events(self) -> int:
        """How many there are, at the most."""
        return offsets.rows_between(self.after, self.upto)


def match_new(
    events: DataFrame | Positioned,
    subscriptions: DataFrame,
    place: str | os.PathLike[str],
    *,
    rows: int | None = None,
    told: Callable[[Run, int, int], None] | None = None,
    invalid: str = "error",
    partitions: int | None = None,
    storage: str | None = None,
) -> Run:
    """Match what is new, and add it to the folder; `matches` reads all of it. Returns the last run.

    `events` has `journal` and `sequence` beside what `match` needs; `subscriptions` may have a `revision`
    and a `dialect`.
    The folder is one that driver and executors reach under the same path. Raises what `match` raises,
    `DoubledSubscriptions`, and `RunsChanged` if another run was faster.

    With `rows` a run has about so many events, and there are as many runs as it takes; `told` hears of each,
    and how many events of how many are done. Each reads its part of a table with a `where`; `Positioned` is for
    events of which a part can be had in a quicker way.
    """
    if not isinstance(events, Positioned):
        events = InTable(events)
    require_columns("subscriptions", subscriptions, SUBSCRIPTION, FILTER)
    folder = shared_folder("place", place)
    _sweep(folder)
    last = (all_runs(folder) or [Run(0, {}, "", "", 0, 0)])[-1]
    number = last.number + 1
    spark = events.spark
    make_folder(folder / _RUNS)
    seen_at = f"subscriptions/{_mark(number)}"
    seen = _written(_known_since(spark, folder, subscriptions, last, number), folder / seen_at)
    counts = _counted(seen)
    branches, gaps = events.go_on(Offset(last.positions, last.lineages), last.branches)
    begins, ends = events.ends()
    behind = {since: upto for since, upto in last.behind.items() if since in counts}
    run = Run(number, begins | last.positions, "", seen_at, 0, counts.get(number, 0), behind)
    lineages, known = last.lineages | events.lineages(), last.branches | branches
    run = msgspec.structs.replace(run, lineages=lineages, branches=known, gaps=gaps)
    if last.positions and run.fresh:
        run.behind[number] = last.positions | begins
    goal = {journal: max(upto, ends.get(journal, 0)) for journal, upto in run.positions.items()}
    options = {"invalid": invalid, "partitions": partitions, "storage": storage}
    matching = _Matching(seen, counts, events, options)
    everything = sum(one.events for one in plan(run, goal, sys.maxsize)[0])
    rows = sys.maxsize if rows is None else max(rows, -(-everything // MOST_RUNS))
    done = 0
    while True:
        stretches, positions, behind = plan(run, goal, rows)
        pairs = f"pairs/{_mark(run.number)}"
        found = _written(matching.pairs(stretches), folder / pairs).count()
        run = msgspec.structs.replace(run, positions=positions, behind=behind, pairs=pairs, found=found)
        _commit(folder, run)
        done += sum(one.events for one in stretches)
        if told is not None:
            told(run, done, everything)
        if not behind and not offsets.rows_between(positions, goal):
            return run
        run = msgspec.structs.replace(run, number=run.number + 1, fresh=0, gaps=())


def plan(run: Run, goal: Positions, rows: int) -> tuple[list[MatchStretch], Positions, dict[int, Positions]]:
    """What to match next, about so many events; how far all are then, and who is behind.

    Who is behind catches up first, so that all go on together.
    """
    stretches, behind = [], {}
    for since, after in run.behind.items():
        one = MatchStretch(since, after, offsets.limited(after, run.positions, rows))
        rows -= one.events
        if offsets.rows_between(one.upto, run.positions):
            behind[since] = one.upto
        if one.events:
            stretches.append(one)
    if behind:
        return stretches, run.positions, behind
    new = MatchStretch(None, run.positions, offsets.limited(run.positions, goal, rows))
    if new.events or not stretches:
        stretches.append(new)
    return stretches, new.upto, {}


class _Matching(msgspec.Struct, eq=False):
    """Pairs of stretches; the index of the same subscriptions is built once."""

    _seen: DataFrame
    _counts: Mapping[int, int]
    _events: Positioned
    _options: Mapping[str, Any]
    _shards: dict[int | None, Shards] = {}

    def pairs(self, stretches: Sequence[MatchStretch]) -> DataFrame:
        return reduce(lambda some, more: some.unionAll(more), map(self._stretch, stretches))

    def _stretch(self, one: MatchStretch) -> DataFrame:
        if one.since not in self._shards:
            chosen = self._seen if one.since is None else self._seen.where(f"{_SINCE} = {one.since}")
            number = sum(self._counts.values()) if one.since is None else self._counts[one.since]
            building = {name: self._options[name] for name in ("invalid", "storage")}
            self._shards[one.since] = build_shards(chosen, number=number, **building)
        events = self._events.between(one.after, one.upto).drop(JOURNAL, SEQUENCE)
        return match(events, self._shards[one.since], **self._options)


def matches(spark: SparkSession, place: str | os.PathLike[str]) -> DataFrame:
    """All pairs of current subscriptions: (event_id, subscription_id, revision). Raises `RunsDamaged`."""
    folder = shared_folder("place", place)
    runs = all_runs(folder)
    if not runs:
        raise RunsDamaged(str(folder), "there has been no run yet.")
    parts = (
        spark.read.parquet(str(folder / one.pairs)).withColumn(_RUN, functions.lit(one.number)) for one in runs
    )
    pairs = reduce(lambda some, more: some.unionAll(more), parts)
    current = spark.read.parquet(str(folder / runs[-1].subscriptions)).drop(FILTER)
    return pairs.join(current, SUBSCRIPTION).where(f"{_RUN} >= {_SINCE}").select(EVENT, SUBSCRIPTION, REVISION)


def all_runs(folder: Path) -> list[Run]:
    """The runs of a folder, in their order."""
    try:
        names = sorted(path for path in (folder / _RUNS).iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return []
    runs = []
    for number, path in enumerate(names, 1):
        try:
            runs.append(msgspec.json.decode(path.read_bytes(), type=Run))
        except msgspec.DecodeError as problem:
            raise RunsDamaged(str(folder), f"{path.name} cannot be read: {problem}.") from None
        if runs[-1].number != number:
            raise RunsDamaged(str(folder), f"run {number} is missing.")
    return runs


def _known_since(
    spark: SparkSession, folder: Path, subscriptions: DataFrame, last: Run, number: int
) -> DataFrame:
    """Subscriptions with their revision, and the run since which they have had it."""
    revised = REVISION in subscriptions.columns
    given = said_filters(subscriptions, *([REVISION] if revised else []))
    if not revised:
        # A hash passes over what is null: in our own language it is that of the text alone.
        other = functions.nullif(functions.col(DIALECT), functions.lit(PALIO))
        given = given.withColumn(REVISION, functions.xxhash64(FILTER, other))
    given = given.select(SUBSCRIPTION, REVISION, FILTER, DIALECT)
    this = functions.lit(number)
    if not last.number:
        return given.withColumn(_SINCE, this)
    known = spark.read.parquet(str(folder / last.subscriptions)).drop(FILTER, DIALECT)
    since = functions.coalesce(functions.col(_SINCE), this).alias(_SINCE)
    joined = given.join(known, [SUBSCRIPTION, REVISION], "left")
    return joined.select(SUBSCRIPTION, REVISION, FILTER, DIALECT, since)


def _written(table: DataFrame, place: Path) -> DataFrame:
    """A table, from where it has been written to; what it looks like is known."""
    table.write.parquet(str(place))
    return table.sparkSession.read.schema(table.schema).parquet(str(place))


def _counted(subscriptions: DataFrame) -> dict[int, int]:
    """How many there are, by the run since which they have been as they are.

    An id that is there twice would have pairs of which nobody knows whose they are: `DoubledSubscriptions`.
    """
    by_id = subscriptions.groupBy(SUBSCRIPTION).agg(
        functions.min(_SINCE).alias(_SINCE), functions.count("*").alias("times")
    )
    rows = by_id.groupBy(_SINCE).agg(
        functions.count("*").alias("ids"),
        functions.max("times").alias("most"),
        functions.max_by(SUBSCRIPTION, "times").alias(SUBSCRIPTION),
    )
    counts = {}
    for row in rows.collect():  # as many as there are runs, at the most
        if row["most"] > 1:
            raise DoubledSubscriptions(row[SUBSCRIPTION])
        counts[row[_SINCE]] = row["ids"]
    return counts


def _mark(number: int) -> str:
    """A name of a folder that nobody else has, be it for the same run."""
    return f"{number:06}-{secrets.token_hex(4)}"


def _sweep(folder: Path) -> None:
    """Delete what runs have left that were interrupted at least a day ago."""
    named = {name for run in all_runs(folder) for name in (run.pairs, run.subscriptions)}
    for path in [*folder.glob("pairs/*"), *folder.glob("subscriptions/*")]:
        if path.relative_to(folder).as_posix() not in named and path.stat().st_mtime < time.time() - GRACE:
            shutil.rmtree(path, ignore_errors=True)


def _commit(folder: Path, run: Run) -> None:
    """From now on the run exists."""
    for written in (run.pairs, run.subscriptions):
        sync_tree(folder / written)
    sync_folder(folder)
    try:
        create_once(folder / _RUNS / f"{run.number:06}.json", msgspec.json.encode(run))
    except FileExistsError:
        raise RunsChanged(str(folder), run.number) from None
