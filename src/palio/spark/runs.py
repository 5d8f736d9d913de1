"""Matching day by day: a run costs what is new, and what was found before stays found.

A folder holds the pairs of all runs. A run matches the events that came since the last one against all
subscriptions, and those that were there before against the subscriptions that are new or have changed. Three
keys make that exact: an event's position (journal, sequence), a subscription's id, and its revision: a column
of that name, or a hash of the filter's text.

A run keeps, for each subscription that it saw, since which run it has had its revision. Pairs of earlier runs
belong to a filter that is no longer there; so the pairs that count are those of a run not before that one, of
subscriptions that the last run saw. Nothing that was written is ever changed, and a subscription that comes
back with an old filter is new.

A run exists when its file is there, created completely or not at all, and only if there is none; of two runs
at the same time one succeeds. What an interrupted run leaves behind is never looked at.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from palio.spark.errors import DoubledSubscriptions, RunsChanged, RunsDamaged
from palio.spark.frames import EVENT, FILTER, SUBSCRIPTION, require_columns, session_of
from palio.spark.matching import match
from palio.store.lake.once import create_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

JOURNAL = "journal"
SEQUENCE = "sequence"
REVISION = "revision"
_SINCE = "since"
_RUN = "run"
_RUNS = "_runs"


class Run(msgspec.Struct, frozen=True):
    """One run: up to where each journal was matched, and what it wrote."""

    number: int
    positions: dict[str, int]
    pairs: str
    subscriptions: str
    found: int
    fresh: int  # subscriptions that were new or had changed


def match_new(
    events: DataFrame,
    subscriptions: DataFrame,
    place: str | os.PathLike[str],
    *,
    invalid: str = "error",
    partitions: int | None = None,
    storage: str | None = None,
) -> Run:
    """Match what is new, and add it to the folder; `matches` reads all of it.

    `events` has `journal` and `sequence` beside what `match` needs; `subscriptions` may have a `revision`.
    The folder is one that driver and executors reach under the same path. Raises what `match` raises,
    `DoubledSubscriptions`, and `RunsChanged` if another run was faster.
    """
    from pyspark.sql import functions  # noqa: PLC0415

    require_columns("events", events, EVENT, JOURNAL, SEQUENCE)
    require_columns("subscriptions", subscriptions, SUBSCRIPTION, FILTER)
    folder = Path(place).absolute()
    last = last_run(folder)
    number = 1 if last is None else last.number + 1
    mark = f"{number:06}-{secrets.token_hex(4)}"
    run = Run(number, {}, f"pairs/{mark}", f"subscriptions/{mark}", 0, 0)
    spark = session_of(events)
    _known_since(spark, folder, subscriptions, last, run).write.parquet(str(folder / run.subscriptions))
    seen = spark.read.parquet(str(folder / run.subscriptions))
    _require_single(seen)
    fresh = seen.where(functions.col(_SINCE) == number)
    many = fresh.count()
    before = {} if last is None else last.positions
    goal = before | _ends(events)
    options: dict[str, Any] = {"invalid": invalid, "partitions": partitions, "storage": storage}
    new = events.where(_within(goal) & ~_within(before)).drop(JOURNAL, SEQUENCE)
    pairs = match(new, seen, **options)
    if before and many:
        old = events.where(_within(before)).drop(JOURNAL, SEQUENCE)
        pairs = pairs.unionAll(match(old, fresh, **options))
    pairs.write.parquet(str(folder / run.pairs))
    found = spark.read.parquet(str(folder / run.pairs)).count()
    run = msgspec.structs.replace(run, positions=goal, found=found, fresh=many)
    _commit(folder, run)
    return run


def matches(spark: SparkSession, place: str | os.PathLike[str]) -> DataFrame:
    """All pairs of current subscriptions: (event_id, subscription_id, revision). Raises `RunsDamaged`."""
    from pyspark.sql import functions  # noqa: PLC0415

    folder = Path(place).absolute()
    runs = all_runs(folder)
    if not runs:
        raise RunsDamaged(str(folder), "there has been no run yet.")
    parts = [
        spark.read.parquet(str(folder / one.pairs)).withColumn(_RUN, functions.lit(one.number)) for one in runs
    ]
    pairs = parts[0]
    for part in parts[1:]:
        pairs = pairs.unionAll(part)
    current = spark.read.parquet(str(folder / runs[-1].subscriptions)).drop(FILTER)
    return (
        pairs.join(current, SUBSCRIPTION)
        .where(functions.col(_RUN) >= functions.col(_SINCE))
        .select(EVENT, SUBSCRIPTION, REVISION)
    )


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


def last_run(folder: Path) -> Run | None:
    runs = all_runs(folder)
    return runs[-1] if runs else None


def _known_since(
    spark: SparkSession, folder: Path, subscriptions: DataFrame, last: Run | None, run: Run
) -> DataFrame:
    """Subscriptions with their revision, and the run since which they have had it."""
    from pyspark.sql import functions  # noqa: PLC0415

    revision = subscriptions[REVISION] if REVISION in subscriptions.columns else functions.xxhash64(FILTER)
    given = subscriptions.select(SUBSCRIPTION, revision.alias(REVISION), FILTER)
    this = functions.lit(run.number)
    if last is None:
        return given.withColumn(_SINCE, this)
    known = spark.read.parquet(str(folder / last.subscriptions)).drop(FILTER)
    joined = given.join(known, [SUBSCRIPTION, REVISION], "left")
    return joined.select(
        SUBSCRIPTION, REVISION, FILTER, functions.coalesce(functions.col(_SINCE), this).alias(_SINCE)
    )


def _require_single(subscriptions: DataFrame) -> None:
    """An id that is there twice would have pairs of which nobody knows whose they are."""
    doubled = subscriptions.groupBy(SUBSCRIPTION).count().where("count > 1").first()
    if doubled is not None:
        raise DoubledSubscriptions(doubled[SUBSCRIPTION])


def _ends(events: DataFrame) -> dict[str, int]:
    """The last sequence of each journal, of which there are as many as brokers."""
    from pyspark.sql import functions  # noqa: PLC0415

    rows = events.groupBy(JOURNAL).agg(functions.max(SEQUENCE).alias(SEQUENCE)).collect()
    return {row[JOURNAL]: int(row[SEQUENCE]) for row in rows}


def _within(positions: dict[str, int]) -> Column:
    """Whether an event is at or before a position, as a condition that Parquet's statistics can answer."""
    from pyspark.sql import functions  # noqa: PLC0415

    found = functions.lit(False)
    for journal, sequence in positions.items():
        found = found | ((functions.col(JOURNAL) == journal) & (functions.col(SEQUENCE) <= sequence))
    return found


def _commit(folder: Path, run: Run) -> None:
    """From now on the run exists."""
    runs = folder / _RUNS
    runs.mkdir(parents=True, exist_ok=True)
    try:
        create_once(runs / f"{run.number:06}.json", msgspec.json.encode(run))
    except FileExistsError:
        raise RunsChanged(str(folder), run.number) from None
