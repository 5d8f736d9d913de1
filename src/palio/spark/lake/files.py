"""The files of a lake: events as Parquet, by day and class, with typed columns for what attributes they have.

Beside the columns of every event (`rows.EVENT`) a file has, for each attribute and each kind of values that it
has there, a column `attribute:kind`: `price:float`, and `price:int` as well if some prices were ints. So a
column has one type for ever, whatever is published tomorrow; nothing has to be guessed, merged or rewritten,
Parquet's own statistics work, and each value is where its kind is. Lists, and attributes beyond `MAX_COLUMNS`,
are in the payload only, which has everything in any case; a file that leaves out an attribute says that it is
not complete.

A file is named after its journal and the sequences of its events, and has a part by chance: two tasks that
write the same range, of which one is believed dead, do not touch each other's.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from palio.matching.projection import WantedColumn, discover, project
from palio.model.values import KIND_NAMES, Kind
from palio.spark.arrow import arrow_schema, batch_of
from palio.spark.source.rows import EVENT, Damage, times_of
from palio.store.lake.manifests import LakeFile
from palio.store.lake.once import make_folder, sync_folder

CLASS = "class"
# Typed columns of one file; the most frequent ones.
MAX_COLUMNS = 256
# Classes that have files of their own, in what one task writes for one day; the others share some.
MAX_CLASSES = 64
ROW_GROUP = 128 << 10
# Characters of a name in a path; what it stands for is in the manifest.
MAX_NAME = 100
NO_CLASS, OTHER_CLASSES = "-", "+"
_OTHERS = "\0others"  # no class of anybody

QUARANTINE = (
    "journal string, sequence bigint, time timestamp, publisher string, id string, body binary, reason string"
)


def typed(events: pa.Table) -> tuple[pa.Table, bool]:
    """Events with their typed columns, and whether these are all that there could be."""
    payload = events.column("payload")
    found = sorted(
        (-count, name, kind)
        for name, kinds in discover(payload).items()
        for kind, count in kinds.items()
        if kind is not Kind.LIST
    )
    # Spark takes `Price` and `price` for one: the more frequent one has the column.
    names: dict[str, str] = {}
    for _, name, _ in found:
        names.setdefault(name.lower(), name)
    distinct = [WantedColumn(name, kind) for _, name, kind in found if names[name.lower()] == name]
    wanted = distinct[:MAX_COLUMNS]
    projection = project(payload, wanted)
    for one, column in zip(wanted, projection.columns, strict=True):
        events = events.append_column(f"{one.name}:{KIND_NAMES[one.kind]}", column)
    return events, len(found) == len(wanted)


def write_events(root: Path, events: pa.Table, branch: int = 0) -> Iterator[LakeFile]:
    """Write events of one journal in a branch, in the order of their sequences, into new files."""
    with_columns, complete = typed(events)
    for day, kind, folder, part in _groups(with_columns):
        added = part.column_names[len(EVENT.names) :]
        columns = tuple([name for name in added if part.column(name).null_count < part.num_rows])
        part = part.select([*EVENT.names, *columns])
        about = {"columns": columns, "kind": kind, "complete": complete, "branch": branch}
        yield write_file(root, f"day={day}/{folder}", part, day, **about)


def write_damage(root: Path, journal: str, damage: Damage, branch: int = 0) -> LakeFile:
    """Write what could not be read into a file of its own."""
    sequences, times, *more = zip(*damage, strict=True)
    journals = pa.repeat(journal, len(damage))
    batch = batch_of(arrow_schema(QUARANTINE), journals, sequences, times_of(times), *more)
    day = datetime.fromtimestamp(times[0], UTC).date().isoformat()
    return write_file(root, "quarantine", pa.Table.from_batches([batch]), day, quarantine=True, branch=branch)


def write_file(root: Path, folder: str, table: pa.Table, day: str, **more: Any) -> LakeFile:
    """Write a file, and return when it is on disk."""
    journal = table.column("journal")[0].as_py()
    first, last = table.column("sequence")[0].as_py(), table.column("sequence")[-1].as_py()
    name = f"{_named(journal)}-{first}-{last}-{secrets.token_hex(4)}.parquet"
    path = root / folder / name
    make_folder(path.parent)
    repeated = [name for name in table.column_names if name not in ("payload", "id", "body")]
    with open(path, "xb") as file:
        pq.write_table(table, file, compression="zstd", row_group_size=ROW_GROUP, use_dictionary=repeated)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    sync_folder(path.parent)
    times = pc.min_max(table.column("time").cast(pa.int64())).as_py()
    return LakeFile(
        path=f"{folder}/{name}",
        journal=journal,
        first=first,
        last=last,
        rows=table.num_rows,
        bytes=size,
        day=day,
        begin=times["min"] / 1e6,
        end=times["max"] / 1e6,
        **more,
    )


def _groups(events: pa.Table) -> Iterator[tuple[str, str | None, str, pa.Table]]:
    """Events by day and class: the day, the class if it is one, and the folder of such events."""
    days = events.column("time").cast(pa.date32()).combine_chunks()
    column = f"{CLASS}:{KIND_NAMES[Kind.STRING]}"
    classes = pa.nulls(events.num_rows, pa.string())
    if column in events.column_names:
        classes = events.column(column).combine_chunks()
    keys = pa.table({"day": days, "class": _few(classes)})
    distinct = keys.group_by(["day", "class"], use_threads=False).aggregate([]).to_pylist()
    for one in distinct:
        day, kind = one["day"], one["class"]
        of_class = keys["class"].is_null() if kind is None else pc.equal(keys["class"], kind)
        chosen = pc.and_(pc.equal(keys["day"], day), of_class)
        part = events if len(distinct) == 1 else events.filter(chosen)
        # The name of a class begins with "class", so that it is never one of our own.
        own = {None: NO_CLASS, _OTHERS: OTHER_CLASSES}.get(kind)
        yield day.isoformat(), kind if own is None else None, own or f"class {_named(kind)}", part


def _few(classes: Any) -> Any:
    """Classes, of which the less frequent ones beyond a number are one."""
    counts = pc.value_counts(classes.drop_null())
    if len(counts) <= MAX_CLASSES:
        return classes
    order = pc.sort_indices(counts.field("counts"), sort_keys=[("", "descending")])
    frequent = counts.field("values").take(order[:MAX_CLASSES])
    rare = pc.and_(classes.is_valid(), pc.invert(pc.is_in(classes, frequent)))
    return pc.if_else(rare, _OTHERS, classes)


def _named(text: str) -> str:
    """A text as a part of a path: not too long, and without what means something to file systems or Spark."""
    return quote(text, safe=" ")[:MAX_NAME]
