"""`archive`, `compact` and `forget`: what is in journals goes to the lake, and the lake is put in order.

All are done in parts with a commit for each; after an interrupt the same call goes on with what is left.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from pyspark.sql import SparkSession

from palio.language import PALIO, read_filter
from palio.model.filter import Filter
from palio.protocol.durable.lineage import JournalGap
from palio.spark.lake import archiving, rewriting
from palio.spark.lake.archiving import archive_continuously
from palio.spark.lake.rewriting import GRACE, sweep
from palio.spark.source.moments import Moment, moment_or_none
from palio.store.lake.manifests import Lake

__all__ = ["Archived", "Compacted", "Erased", "archive", "archive_continuously", "compact", "forget"]


class Archived(msgspec.Struct, frozen=True):
    """What came to the lake, in how many files; how many small files there are less, and how many were deleted.

    What could not be read is `quarantined`: `palio.spark.read_quarantine` has it, with the reason. `gaps` are
    what may be missing of journals that came back older than the lake had them.
    """

    version: int
    events: int
    quarantined: int
    files: int
    merged: int = 0
    swept: int = 0
    gaps: tuple[JournalGap, ...] = ()


class Compacted(msgspec.Struct, frozen=True):
    """How many files there are less, and how many of earlier versions were deleted."""

    merged: int
    swept: int


class Erased(msgspec.Struct, frozen=True):
    """What was removed from a lake, out of how many files; how many of earlier versions were deleted."""

    version: int
    events: int
    files: int
    swept: int


def archive(
    spark: SparkSession,
    journals: str,
    lake: str,
    *,
    lossy: bool = False,
    compact: bool = False,
    grace: float = GRACE,
    told: Callable[[archiving.ArchiveProgress], None] | None = None,
    merging: Callable[[int, int], None] | None = None,
) -> Archived:
    """Bring a lake up to where journals are now, each event exactly once.

    `lossy` goes on where a journal was trimmed before it was archived. With `compact` small files are put
    together in the end; `merging` hears how many, of how many. `told` hears how much there is to do, and of
    each commit. Files of versions that are older than `grace` seconds are deleted.

    Raises what journals and lakes raise.
    """
    if told is not None:
        state = Lake(lake).create()
        told(archiving.ArchiveProgress(state.version, 0, archiving.waiting(journals, lake, lossy=lossy), 0, 0))
    done = archiving.archive(spark, journals, lake, lossy=lossy, told=told)
    merged = rewriting.compact(spark, lake, told=merging) if compact else 0
    swept = sweep(lake, grace=grace)
    return Archived(done.version, done.events, done.quarantined, done.files, merged, swept, done.gaps)


def compact(
    spark: SparkSession, lake: str, *, grace: float = GRACE, told: Callable[[int, int], None] | None = None
) -> Compacted:
    """Put small files of a lake together; `told` hears how many, of how many. Raises what lakes raise."""
    merged = rewriting.compact(spark, lake, told=told)
    return Compacted(merged, sweep(lake, grace=grace))


def forget(
    spark: SparkSession,
    lake: str,
    filter: str | Filter,
    *,
    dialect: str = PALIO,
    before: Moment = None,
    grace: float = GRACE,
    told: Callable[[rewriting.Forgotten], None] | None = None,
) -> Erased:
    """Remove what a filter selects, and what is older than `before`, from a lake for good.

    Whoever reads an earlier version has `grace` seconds to finish: its files are deleted by the next sweep
    after that, so with a grace of 0 erasure is complete at once. Journals are not touched.

    Raises `ContradictoryFilter`, `WrongOption`, and what lakes raise.
    """
    parsed = read_filter(filter, dialect).require_satisfiable()
    done = rewriting.forget(spark, lake, parsed, before=moment_or_none("before", before), told=told)
    return Erased(done.version, done.events, done.files, sweep(lake, grace=grace))
