"""Files of a lake written anew: events that are forgotten, and small files that become large ones.

Both read files and write others in their place; one manifest removes the ones and adds the others. They do so
in parts, a manifest each: what an interruption leaves behind is a lake in which some parts are done, and files
of the part that was under way, which no manifest names. Whoever comes next sees the newest manifest only, and
finds less to do.

Whoever reads an earlier version finds its files until the grace period is over (`sweep`), and then they are
gone for good.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from palio.model.filter import Filter
from palio.spark.lake.files import write_events
from palio.spark.runtime.session import cores_of
from palio.spark.runtime.tasks import run_tasks
from palio.spark.source.rows import EVENT, RowSelection, times_of
from palio.store.lake.errors import LakeChanged, LakeDamaged
from palio.store.lake.manifests import MANIFESTS, Lake, LakeChange, LakeFile, LakeState

# A day, in seconds: how long whoever reads an earlier version may take, and how long a job may take between
# writing a file and committing it (a guess: jobs commit after minutes).
GRACE = 86_400.0
# Files below that are put together, up to about so many bytes.
SMALL_BYTES = 32 << 20
LARGE_BYTES = 256 << 20
# Events for each core, and files in all, between two commits: what an interruption costs at the most.
ROWS_PER_COMMIT = 1_000_000
FILES_PER_COMMIT = 1_024
# Files, or groups of them, for each core: fewer would leave some cores without work.
THINGS_A_CORE = 2


class Rewritten(msgspec.Struct, frozen=True):
    """What became of some files: those that took their place, and how many events are gone."""

    removed: tuple[str, ...]
    added: tuple[LakeFile, ...] = ()
    events: int = 0


class Forgotten(msgspec.Struct, frozen=True):
    """What was forgotten, and in how many files; how many files have been looked at, of how many."""

    events: int
    files: int
    looked_at: int
    of: int
    version: int


def forget(
    spark: SparkSession,
    place: str,
    filter: Filter,
    *,
    before: float | None = None,
    told: Callable[[Forgotten], None] | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> Forgotten:
    """Remove all events that a filter selects, and that are older than `before`, from a lake.

    Files are looked at in parts, with a commit for each; an interruption leaves what was forgotten forgotten,
    and the next run goes through what is left. Earlier versions have these events until `sweep` has removed
    their files. Journals are not touched: what is still in them is removed by trimming them.
    """
    lake = Lake(place)
    state = lake.state()
    touched = (one for one in state.events() if before is None or one.begin < before)
    todo = sorted(touched, key=lambda one: one.path)
    done = Forgotten(0, 0, 0, len(todo), state.version)
    for part in _parts([(one,) for one in todo], cores_of(spark)):
        found = _forget_in(spark, lake.root, [file for (file,) in part], filter, before)
        step("written")
        state = _replace(lake, state, found, "forget")
        step("committed")
        done = Forgotten(
            done.events + sum(one.events for one in found),
            done.files + len(found),
            done.looked_at + len(part),
            len(todo),
            state.version,
        )
        if told is not None:
            told(done)
    return done


def compact(
    spark: SparkSession,
    place: str,
    *,
    small: int = SMALL_BYTES,
    large: int = LARGE_BYTES,
    told: Callable[[int, int], None] | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> int:
    """Put small files of one journal, branch, day and class together. Returns how many there are less now.

    It is done in parts, with a commit for each; an interruption leaves together what was put together. `told`
    hears how many files have been, of how many.
    """
    lake = Lake(place)
    state = lake.state()
    groups: dict[tuple[str, int, str, str], list[LakeFile]] = defaultdict(list)
    for file in sorted(state.events(), key=lambda one: one.first):
        if file.bytes < small:
            groups[file.journal, file.branch, file.day, str(Path(file.path).parent)].append(file)
    runs = [run for several in groups.values() for run in _runs(several, large) if len(run) > 1]
    root = lake.root

    def merge(run: tuple[LakeFile, ...]) -> Iterator[Rewritten]:
        whole = pa.concat_tables([read_events(root, file) for file in run]).sort_by("sequence")
        yield Rewritten(tuple([file.path for file in run]), tuple(write_events(root, whole, run[0].branch)))

    done = fewer = 0
    for part in _parts(runs, cores_of(spark)):
        found = run_tasks(spark, merge, part, Rewritten)
        step("written")
        state = _replace(lake, state, found, "compact")
        step("committed")
        fewer += sum(len(one.removed) - len(one.added) for one in found)
        done += sum(map(len, part))
        if told is not None:
            told(done, sum(map(len, runs)))
    return fewer


def sweep(place: str, *, grace: float = GRACE) -> int:
    """Delete files that have been removed from the lake for longer than the grace period. Returns how many.

    Not for less than any reader of the lake takes. Files that no version has ever named may belong to a job
    that is about to commit them: they are deleted when they are older than a day, however short the grace is.
    """
    lake = Lake(place)
    now = time.time()
    # A file that is not among these, and in no version, is either older than `abandoned` or of a running job.
    abandoned = now - max(grace, GRACE)
    removed = lake.removed_since(abandoned)
    found = [*lake.root.rglob("*.parquet"), *(lake.root / MANIFESTS).glob("*.draft")]
    state = lake.state()  # after the files were listed: what was committed meanwhile is in it
    count = 0
    for path in found:
        name = path.relative_to(lake.root).as_posix()
        if name in state.files:
            continue
        with contextlib.suppress(FileNotFoundError):  # another sweep, or its job, was faster
            since = removed.get(name)
            if path.stat().st_mtime <= abandoned if since is None else since <= now - grace:
                path.unlink()
                count += 1
    return count


def read_events(root: Path, file: LakeFile) -> pa.Table:
    """The events of a file without their typed columns. Raises `LakeDamaged`."""
    try:
        with open(root / file.path, "rb") as raw:
            return pq.read_table(raw, columns=EVENT.names, partitioning=None).cast(EVENT)
    except (OSError, pa.ArrowException) as problem:
        reason = f"The file {file.path} cannot be read ({problem})."
        raise LakeDamaged(str(root), reason, file.path) from None


def _parts(groups: Sequence[tuple[LakeFile, ...]], cores: int) -> Iterator[list[tuple[LakeFile, ...]]]:
    """Groups of files, as many as belong to one commit: some for each core, and not too much work."""
    part: list[tuple[LakeFile, ...]] = []
    rows = files = 0
    for group in groups:
        part.append(group)
        rows += sum(file.rows for file in group)
        files += len(group)
        enough = rows >= ROWS_PER_COMMIT * cores or files >= FILES_PER_COMMIT
        if enough and len(part) >= THINGS_A_CORE * cores:
            yield part
            part, rows, files = [], 0, 0
    if part:
        yield part


def _forget_in(
    spark: SparkSession, root: Path, files: list[LakeFile], filter: Filter, before: float | None
) -> list[Rewritten]:
    def rewrite(file: LakeFile) -> Iterator[Rewritten]:
        events = read_events(root, file)
        kept = without(events, filter, before)
        if kept.num_rows < events.num_rows:
            added = tuple(write_events(root, kept, file.branch)) if kept.num_rows else ()
            yield Rewritten((file.path,), added, events.num_rows - kept.num_rows)

    return run_tasks(spark, rewrite, files, Rewritten)


def without(events: pa.Table, filter: Filter, before: float | None) -> pa.Table:
    """Events that a filter does not select, or that are not older than `before`."""
    numbered = events.append_column("number", pa.array(range(events.num_rows), pa.int64()))
    selection = RowSelection(filter)
    gone: list[pa.Array] = []
    for batch in numbered.to_batches():
        chosen = selection.select(batch)
        if before is not None:
            chosen = chosen.filter(pc.less(chosen.column("time"), times_of([before])[0]))
        gone.append(chosen.column("number"))
    forgotten = pa.chunked_array(gone, pa.int64())
    return events.filter(pc.invert(pc.is_in(numbered.column("number"), forgotten.combine_chunks())))


def _replace(lake: Lake, state: LakeState, found: list[Rewritten], action: str) -> LakeState:
    remove = tuple([path for one in found for path in one.removed])
    if not remove:
        return state
    add = tuple([file for one in found for file in one.added])
    try:
        return lake.commit_upon(state, LakeChange(action, add, remove))
    except LakeChanged:
        for path in lake.absolute(add):  # nobody has seen them
            Path(path).unlink(missing_ok=True)
        raise


def _runs(files: list[LakeFile], large: int) -> Iterator[tuple[LakeFile, ...]]:
    """Neighbours that together are not too large."""
    run: list[LakeFile] = []
    size = 0
    for file in files:
        if run and size + file.bytes > large:
            yield tuple(run)
            run, size = [], 0
        run.append(file)
        size += file.bytes
    if run:
        yield tuple(run)
