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
from palio.spark.source.rows import EVENT, UTC_MICROSECONDS, Damage, times_of
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

QUARANTINE = pa.schema(
    [
        ("journal", pa.string()),
        ("sequence", pa.int64()),
        ("time", UTC_MICROSECONDS),
        ("publisher", pa.string()),
        ("id", pa.string()),
        ("body", pa.binary()),
        ("reason", pa.string()),
    ]
)


def typed(events: pa.Table) -> tuple[pa.Table, bool]:
    """Events with their typed columns, and whether these are all that there could be."""
    payload = events.column("payload")
    found = [
        (count, name, kind)
        for name, kinds in discover(payload).items()
        for kind, count in kinds.items()
        if kind is not Kind.LIST
    ]
    found.sort(key=lambda one: (-one[0], one[1], one[2]))
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


def write_events(root: Path, events: pa.Table) -> Iterator[LakeFile]:
    """Write events of one journal, in the order of their sequences, into new files."""
    with_columns, complete = typed(events)
    for day, kind, folder, part in _groups(with_columns):
        empty = [
            name
            for name in part.column_names[len(EVENT.names) :]
            if part.column(name).null_count == part.num_rows
        ]
        part = part.drop_columns(empty)
        columns = tuple(part.column_names[len(EVENT.names) :])
        yield write_file(root, f"day={day}/{folder}", part, day, columns=columns, kind=kind, complete=complete)


def write_damage(root: Path, journal: str, damage: Damage) -> LakeFile:
    """Write what could not be read into a file of its own."""
    sequences, times, publishers, ids, bodies, reasons = zip(*damage.rows, strict=True)
    table = pa.table(
        [
            pa.repeat(journal, len(sequences)).cast(pa.string()),
            pa.array(sequences, pa.int64()),
            times_of(times),
            pa.array(publishers, pa.string()),
            pa.array(ids, pa.string()),
            pa.array(bodies, pa.binary()),
            pa.array(reasons, pa.string()),
        ],
        schema=QUARANTINE,
    )
    day = datetime.fromtimestamp(times[0], UTC).date().isoformat()
    return write_file(root, "quarantine", table, day, quarantine=True)


def write_file(root: Path, folder: str, table: pa.Table, day: str, **more: Any) -> LakeFile:
    """Write a file, and return when it is on disk."""
    journal = table.column("journal")[0].as_py()
    first, last = table.column("sequence")[0].as_py(), table.column("sequence")[-1].as_py()
    name = f"{_named(journal)}-{first}-{last}-{secrets.token_hex(4)}.parquet"
    path = root / folder / name
    make_folder(path.parent)
    with open(path, "xb") as file:
        pq.write_table(
            table,
            file,
            compression="zstd",
            row_group_size=ROW_GROUP,
            use_dictionary=[name for name in table.column_names if name not in ("payload", "id", "body")],
        )
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
        chosen = pc.equal(keys["day"], one["day"])
        of_class = keys["class"].is_null() if one["class"] is None else pc.equal(keys["class"], one["class"])
        part = events if len(distinct) == 1 else events.filter(pc.and_(chosen, of_class))
        day, folder = one["day"].isoformat(), one["class"]
        if folder is None:
            yield day, None, NO_CLASS, part
        elif folder == _OTHERS:
            yield day, None, OTHER_CLASSES, part
        else:
            yield day, folder, _folder_of(folder), part


_OTHERS = "\0others"  # no class of anybody


def _few(classes: Any) -> Any:
    """Classes, of which the less frequent ones beyond a number are one."""
    counts = pc.value_counts(classes.drop_null())
    if len(counts) <= MAX_CLASSES:
        return classes
    order = pc.sort_indices(counts.field("counts"), sort_keys=[("", "descending")])
    frequent = counts.field("values").take(order[:MAX_CLASSES])
    rare = pc.and_(classes.is_valid(), pc.invert(pc.is_in(classes, frequent)))
    return pc.if_else(rare, _OTHERS, classes)


def _folder_of(kind: str) -> str:
    """A class as the name of a folder, which is never one of our own."""
    return f"class {_named(kind)}"


def _named(text: str) -> str:
    """A text as a part of a path: not too long, and without what means something to file systems or Spark."""
    return quote(text, safe=" ")[:MAX_NAME]
