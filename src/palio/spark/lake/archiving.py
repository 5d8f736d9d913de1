"""The archive: what is in journals goes to the lake, each event exactly once.

Steps: (1) the journals are held from where the lake ends; (2) a part of what follows is planned, in spans; (3)
tasks read spans and write files; (4) the driver commits one manifest with these files and how far the lake is
now; (5) the journals are told, and may be trimmed up to there. Only step 4 changes anything that anybody sees,
at once and only if nobody else has done so before. A death before it leaves files that belong to nobody; after
it, journals that are kept a little longer. Whoever comes next begins with step 1 and finds either the one or
the other.

Before the first step the lake meets the journals. One that came back older than the lake has it makes a fork in
the lake, which is a version of its own: what the lake has stays, and it goes on where both are the same. So it
does with one whose lineage it did not know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from palio.protocol.durable.lineage import JournalGap, incarnation_of
from palio.spark.lake.files import write_damage, write_events
from palio.spark.runtime.session import cores_of
from palio.spark.runtime.tasks import run_tasks
from palio.spark.source import offsets
from palio.spark.source.journals import Journals, JournalStanding, Span, WantedEvents, absolute, open_journals
from palio.spark.source.offsets import Offset, Positions
from palio.spark.source.rows import EVENT, Damage
from palio.store.lake.errors import LakeChanged
from palio.store.lake.manifests import Lake, LakeChange, LakeFile, LakeFork, LakeState

# Sequences that one task archives, and the bytes of payload after which it begins another file.
ROWS_PER_TASK = 250_000
MIN_ROWS_PER_TASK = 10_000
BYTES_PER_FILE = 192 << 20
# Tasks for each core between two commits: what an interruption costs at the most.
TASKS_PER_CORE = 4
# Rows that are read at a time.
BATCH = 16_384

Step = Callable[[str], None]


class ArchiveProgress(msgspec.Struct, frozen=True):
    """How far an archive is, after each commit."""

    version: int
    events: int  # so far, in this run
    waiting: int  # in the journals, when it was last looked
    quarantined: int
    files: int
    gaps: tuple[JournalGap, ...] = ()  # of journals that came back older, in this run


def _no_step(step: str) -> None:
    """Nothing happens between two steps, but in tests."""


def archive(
    spark: SparkSession,
    url: str,
    place: str,
    *,
    rows_per_task: int = ROWS_PER_TASK,
    lossy: bool = False,
    told: Callable[[ArchiveProgress], None] | None = None,
    step: Step = _no_step,
    task_step: Step = _no_step,
) -> ArchiveProgress:
    """Bring the lake up to where the journals are now. Returns what was done.

    `told` hears of every commit. An interruption loses nothing that was committed, and the next run goes on
    from there. Raises what journals and lakes raise; `lossy` goes on where a journal was trimmed too early.
    """
    url, lake = absolute(url), Lake(place)
    done = ArchiveProgress(lake.create().version, 0, 0, 0, 0)
    with open_journals(url) as journals:
        standings = journals.standings(lossy=lossy)
        goal = offsets.end_of(standings)
        tasks = TASKS_PER_CORE * cores_of(spark)
        while True:
            try:
                state, gaps = _meet(lake, lake.state(), standings)
            except LakeChanged:
                continue
            done = msgspec.structs.replace(done, version=state.version, gaps=done.gaps + gaps)
            start, lineages = _start(state, standings, lossy=lossy), offsets.lineages_of(standings)
            journals.hold(reader_of(state), start, lineages)
            step("held")
            left = offsets.rows_between(start, goal)
            done = msgspec.structs.replace(done, waiting=left)
            if not left:
                return done
            end = offsets.limited(start, goal, tasks * rows_per_task)
            share = min(rows_per_task, max(MIN_ROWS_PER_TASK, -(-offsets.rows_between(start, end) // tasks)))
            spans = offsets.spans_between(start, end, share, lineages)
            branches = {journal: len(forks) for journal, forks in state.forks.items()}
            files = write_spans(spark, url, lake, spans, step=task_step, lossy=lossy, branches=branches)
            step("written")
            try:
                change = LakeChange("archive", tuple(files), (), end, lineages)
                state = lake.commit(state, change)
            except LakeChanged:
                continue  # another archive was faster, or something was forgotten: look again
            step("committed")
            journals.hold(reader_of(state), end, lineages)
            step("told")
            done = _after(done, state, files, left)
            if told is not None:
                told(done)


def waiting(url: str, place: str, *, lossy: bool = False) -> int:
    """How many events journals have that a lake does not have yet, about: some may have been erased."""
    state = Lake(place).create()
    with open_journals(absolute(url)) as journals:
        standings = journals.standings(lossy=lossy)
    met, _ = offsets.met(position_of(state), standings)
    state = msgspec.structs.replace(state, positions=met.positions)
    return offsets.rows_between(_start(state, standings, lossy=lossy), offsets.end_of(standings))


def archive_continuously(
    spark: SparkSession,
    url: str,
    place: str,
    *,
    every: float = 60.0,
    stopped: Callable[[], bool] = lambda: False,
    told: Callable[[ArchiveProgress], None] | None = None,
) -> None:
    """Archive what there is, and again every so many seconds, until `stopped` says so."""
    while not stopped():
        began = time.monotonic()
        archive(spark, url, place, told=told)
        while not stopped() and time.monotonic() < began + every:
            time.sleep(min(0.2, every))


def reader_of(state: LakeState) -> str:
    """The name under which journals are kept for a lake."""
    return f"lake {state.lake}"


def position_of(state: LakeState) -> Offset:
    """How far a lake has journals."""
    return Offset(state.positions, state.lineages)


def _meet(
    lake: Lake, state: LakeState, standings: list[JournalStanding]
) -> tuple[LakeState, tuple[JournalGap, ...]]:
    """The lake goes on in the journals as they are now. Raises `JournalForked` and `LakeChanged`."""
    met, gaps = offsets.met(position_of(state), standings)
    fresh = {
        journal: lineage for journal, lineage in met.lineages.items() if not state.lineages.get(journal, ())
    }
    if not gaps and not fresh:
        return state, ()
    forks = {
        gap.origin: LakeFork(
            after := met.positions[gap.origin],
            gap.after,
            incarnation_of(after + 1, met.lineages[gap.origin]),
            gap.noticed,
        )
        for gap in gaps
    }
    if gaps:
        fresh |= {gap.origin: met.lineages[gap.origin] for gap in gaps}
    positions = {journal: fork.after for journal, fork in forks.items()}
    state = lake.commit(state, LakeChange("fork" if gaps else "lineage", (), (), positions, fresh, forks))
    offsets.tell(gaps, met.positions)
    return state, gaps


def write_spans(
    spark: SparkSession,
    url: str,
    lake: Lake,
    spans: list[Span],
    *,
    step: Step = _no_step,
    lossy: bool = False,
    branches: Mapping[str, int] | None = None,
) -> list[LakeFile]:
    """Spans of journals as files of a lake, a task for each; the driver gets the names of the files only."""
    root, known = lake.root, dict(branches or {})

    def write(span: Span) -> Iterator[LakeFile]:
        branch = known.get(span.journal, 0)
        with open_journals(url) as journals:
            for file in _write_span(journals, span, Lake(root), branch, lossy=lossy):
                step("wrote a file")
                yield file

    return run_tasks(spark, write, spans, LakeFile)


def _write_span(journals: Journals, span: Span, lake: Lake, branch: int, *, lossy: bool) -> Iterator[LakeFile]:
    damage: Damage = []
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in journals.read(span, WantedEvents(rows=BATCH, lossy=lossy), damage):
        gathered.append(batch)
        size += batch.nbytes
        if size >= BYTES_PER_FILE:
            yield from write_events(lake.root, pa.Table.from_batches(gathered, EVENT), branch)
            gathered, size = [], 0
    if gathered:
        yield from write_events(lake.root, pa.Table.from_batches(gathered, EVENT), branch)
    if damage:
        yield write_damage(lake.root, span.journal, damage, branch)


def _start(state: LakeState, standings: Iterable[JournalStanding], *, lossy: bool) -> Positions:
    """Where the lake ends; for a journal that it does not know, where that begins."""
    known = [one for one in standings if one.journal in state.positions]
    if not lossy:
        offsets.require_kept(state.positions, known)
    fresh = {one.journal: one.trimmed for one in standings if one.journal not in state.positions}
    return offsets.without_lost({**state.positions, **fresh}, known)


def _after(done: ArchiveProgress, state: LakeState, files: list[LakeFile], left: int) -> ArchiveProgress:
    events = sum(file.rows for file in files if not file.quarantine)
    aside = sum(file.rows for file in files if file.quarantine)
    return ArchiveProgress(
        state.version,
        done.events + events,
        max(0, left - events - aside),
        done.quarantined + aside,
        done.files + len(files),
        done.gaps,
    )
