"""`checkpoint`: long looks at events that can be interrupted, and go on when the same is asked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession

from palio.model.moments import format_time
from palio.spark.source.journals import absolute
from palio.spark.source.moments import Moment
from palio.spark.tables.inputs import REASON
from palio.spark.tables.parts import Asked, Looks, Whole, open_parts
from palio.spark.tables.pieces import FileVersion, Piece, TablePieces, files_at, require_unchanged

# From when to when.
Times = tuple[float | None, float | None]
# The look at lines that says how many of them are no events.
LINES = "lines"


class PartsDone(msgspec.Struct, frozen=True):
    """How far a job with a checkpoint is: parts that are done, of how many; and when its first run began.

    If all are done from the start, the answer is that of an earlier run.
    """

    done: int
    of: int
    began: float


Progress = Callable[[PartsDone], None]


def asked_of(job: str, **options: str | float | bool | None) -> dict[str, str | float | bool | None]:
    """What a checkpoint is for: a job, and all options on which its result depends, as they were given."""
    return {"palio": version("palio"), "command": job, **options}


def place_of(place: str | None) -> str | None:
    """A place as it is the same from wherever the job is run."""
    if place is None:
        return None
    return absolute(place) if "://" in place else str(Path(place).absolute())


def given(time: Moment) -> str | float | None:
    """A time as it was given: a span is one of the first run, and stays what it was then."""
    return format_time(time) if isinstance(time, datetime) else time


def readable(events: DataFrame) -> DataFrame:
    """Without lines that are no events."""
    return events.where(f"{REASON} is null").drop(REASON) if REASON in events.columns else events


def unreadable(looks: Looks) -> int:
    """How many lines are no events."""
    found = looks.look(LINES, lambda some: some.where(f"{REASON} is not null").groupBy().count())
    return sum(row["count"] for row in found.collect())


def looks_at(
    whole: DataFrame,
    checkpoint: str | None,
    asked: Asked,
    cut: Callable[[], TablePieces],
    *,
    stages: Sequence[str],
    read: Callable[[TablePieces, Piece], DataFrame] | None = None,
    progress: Progress | None = None,
) -> Looks:
    """Looks at events: at all of them in one pass, or in parts that are kept in the folder.

    Raises what `open_parts` raises.
    """
    if checkpoint is None:
        return Whole(whole)
    parts = open_parts(whole.sparkSession, checkpoint, asked, cut, stages=stages, read=read)
    if progress is not None:
        hear = progress
        parts.tell(lambda done: hear(PartsDone(done, parts.total, parts.plan.began)))
    return parts


def require_same_files(spark: SparkSession, looks: Looks, name: str, place: str) -> None:
    """Raises `SourceChanged` if files that belong to the question are not those of the first run."""
    now = files_at(spark, place)
    require_unchanged(place, looks.kept(name, lambda: now, tuple[FileVersion, ...]), now)
