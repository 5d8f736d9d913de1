"""`match` and `match_new`: which subscriptions each of many events satisfies, in bulk and from day to day."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession

from palio.language import PALIO
from palio.protocol.durable.lineage import JournalGap
from palio.spark.errors import BadEvent, UnknownInput
from palio.spark.frames import EVENT, PAYLOAD
from palio.spark.jobs.checkpoint import Progress, asked_of, looks_at, place_of, readable, require_same_files
from palio.spark.jobs.outputs import write_table
from palio.spark.matching import bulk, runs
from palio.spark.matching.shards import build_shards
from palio.spark.runtime.session import cores_of
from palio.spark.tables.inputs import (
    REASON,
    events_at,
    has_lines,
    identified,
    partitions_of,
    positioned_at,
    subscriptions_at,
)
from palio.spark.tables.pieces import Piece, TablePieces, cut
from palio.spark.tables.positions import JOURNAL, SEQUENCE

# Events for each core that one run of `match_new` matches: what an interruption costs at the most.
ROWS_PER_RUN = 1_000_000
# The looks that are taken at events.
_PAIRS, _UNREADABLE = "pairs", "unreadable"


class Matched(msgspec.Struct, frozen=True):
    """Pairs (event_id, subscription_id): read from where they were written, or found when asked for."""

    pairs: DataFrame
    output: str | None = None


class MatchedNew(msgspec.Struct, frozen=True):
    """The runs that were added to a folder; `palio.spark.matches` reads all pairs of it."""

    output: str
    runs: tuple[runs.Run, ...]

    @property
    def found(self) -> int:
        """How many pairs these runs have found."""
        return sum(run.found for run in self.runs)

    @property
    def gaps(self) -> tuple[JournalGap, ...]:
        """What may be missing of journals that came back older than they had been read."""
        return tuple([gap for run in self.runs for gap in run.gaps])


def match(
    spark: SparkSession,
    events: str,
    subscriptions: str,
    *,
    output: str | None = None,
    overwrite: bool = False,
    event_id: str | None = None,
    dialect: str = PALIO,
    quarantine: str | None = None,
    storage: str | None = None,
    checkpoint: str | None = None,
    progress: Progress | None = None,
) -> Matched:
    """Match the events of a place (Parquet, lines, a lake, journals) against the subscriptions of another.

    `output` is a folder for Parquet, a new one unless `overwrite` says otherwise. `event_id` names the column
    of the id, `dialect` what filters are written in that do not say so themselves. What cannot be read ends the
    job (`BadEvent`, `BadSubscriptions`), unless `quarantine` says where to put it with the reason: its folders
    `events` and `subscriptions`. `storage` is a folder that all executors share. With `checkpoint` events are
    matched in parts, which are kept there: the same call goes on after an interrupt, with the events that there
    were when it began.

    Raises `UnknownInput`, `WrongCheckpoint` and `SourceChanged`, and what `palio.spark.match` raises.
    """
    invalid = "error" if quarantine is None else "skip"
    filters = _subscriptions(spark, subscriptions, dialect, quarantine)
    whole = events_at(spark, events, id=event_id)
    if quarantine is None:
        _require_readable(whole)
    asked = asked_of("match", events=place_of(events), filters=place_of(subscriptions), event_id=event_id)
    asked |= {"quarantine": quarantine is not None} | ({} if dialect == PALIO else {"dialect": dialect})

    def read(cut: TablePieces, piece: Piece) -> DataFrame:
        some = cut.read(spark, piece)
        return some if has_lines(events) else identified(some, events, id=event_id)

    stages = [_PAIRS, *([] if quarantine is None else [_UNREADABLE])]
    cutting = partial(cut, spark, events)
    looks = looks_at(whole, checkpoint, asked, cutting, stages=stages, read=read, progress=progress)
    if checkpoint is not None:
        require_same_files(spark, looks, "filters", subscriptions)
    shards = build_shards(filters, invalid=invalid, storage=storage)

    def pairs_of(some: DataFrame) -> DataFrame:
        parts, wanted = partitions_of(spark, events, some), readable(some).drop(JOURNAL, SEQUENCE)
        return bulk.match(wanted, shards, invalid=invalid, partitions=parts)

    pairs = looks.look(_PAIRS, pairs_of)
    if quarantine is not None:
        set_aside(looks.look(_UNREADABLE, _unreadable_of), quarantine, "events")
    if output is None:
        return Matched(pairs)
    write_table(pairs, output, overwrite=overwrite)
    return Matched(spark.read.schema(pairs.schema).parquet(output), output)


def match_new(
    spark: SparkSession,
    events: str,
    subscriptions: str,
    output: str,
    *,
    dialect: str = PALIO,
    quarantine: str | None = None,
    storage: str | None = None,
    told: Callable[[runs.Run, int, int], None] | None = None,
) -> MatchedNew:
    """Match only what is new since the last call, and add it to the output.

    `events` are those of a lake or of journals. New events are matched against all subscriptions, old ones
    against those that are new or have changed; much that is new in several runs, of which `told` hears, with
    how many events of how many are done. An interrupt leaves the runs that are done, and the next call costs
    what is left. `dialect`, `quarantine` and `storage` are those of `match`.

    Raises `UnknownInput`, and what `palio.spark.match_new` raises.
    """
    filters = _subscriptions(spark, subscriptions, dialect, quarantine)
    positioned = positioned_at(spark, events)
    if positioned is None:
        raise UnknownInput(events, "--new needs events of a lake or a journal, which have positions.")
    if quarantine is not None:
        set_aside(_unreadable_of(events_at(spark, events)), quarantine, "events")
    done: list[runs.Run] = []

    def hear(run: runs.Run, matched: int, of: int) -> None:
        done.append(run)
        if told is not None:
            told(run, matched, of)

    rows, invalid = ROWS_PER_RUN * cores_of(spark), "error" if quarantine is None else "skip"
    runs.match_new(positioned, filters, output, rows=rows, told=hear, invalid=invalid, storage=storage)
    return MatchedNew(output, tuple(done))


def _subscriptions(spark: SparkSession, place: str, dialect: str, quarantine: str | None) -> DataFrame:
    filters = subscriptions_at(spark, place, dialect)
    if quarantine is not None:
        set_aside(bulk.unreadable(filters), quarantine, "subscriptions")
    return filters


def _unreadable_of(events: DataFrame) -> DataFrame:
    """What is no event, with the reason; columns of a table always are."""
    if REASON in events.columns:
        return events.where(f"{REASON} is not null")
    if PAYLOAD in events.columns:
        return bulk.unreadable(events)
    return events.select(EVENT).limit(0)


def set_aside(unreadable: DataFrame, quarantine: str, what: str) -> None:
    """Put what cannot be read where it was asked to go, in place of what was there before."""
    unreadable.write.mode("overwrite").parquet(f"{quarantine}/{what}")


def _require_readable(events: DataFrame) -> None:
    """Raises `BadEvent` for the first line that is none."""
    if REASON in events.columns:
        first = events.where(f"{REASON} is not null").first()
        if first is not None:
            raise BadEvent(first[EVENT], str(first[REASON]), "--quarantine says where such are to go.")
