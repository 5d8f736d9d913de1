"""Batches of events as columns: for each attribute and each family of its values an Arrow array.

A *family* is what people would call a type: ints and floats are both numbers. Events come encoded, in a
column `payload`, or with a column for each attribute; from here on nobody needs to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from palio.matching import columns
from palio.matching.projection import WantedColumn, discover, project
from palio.model.values import KIND_NAMES, Kind
from palio.spark.arrow import UTC_MICROSECONDS

NUMBER, STRING, TIME, BOOL, BYTES, LIST = "number", "string", "time", "bool", "bytes", "list"
_FAMILIES = KIND_NAMES | {Kind.INT: NUMBER, Kind.FLOAT: NUMBER}
# Attributes of one batch that are looked at, the most frequent ones; who invents names gets no further.
MOST_NAMES = 512


class AttributePart(msgspec.Struct, frozen=True):
    """The values that an attribute has of one kind: by row, with nulls; or only how many of them."""

    name: str
    kind: str
    family: str
    count: int
    values: Any


class Content(NamedTuple):
    """What a batch holds: its parts, the rows that are no events, and the values that were not looked at."""

    parts: list[AttributePart]
    unreadable: int
    passed_over: int


def content_of(events: Any) -> Content:
    """All that is in a batch: a table with a `payload`, or with a column for each attribute."""
    encoded = columns.payloads(events)
    if encoded is None:
        parts = list(_from_columns(events))
        return Content(parts[:MOST_NAMES], 0, sum(one.count for one in parts[MOST_NAMES:]))
    found = discover(encoded)
    names = sorted(found, key=lambda name: sum(found[name].values()), reverse=True)
    chosen = [(name, kind, found[name][kind]) for name in names[:MOST_NAMES] for kind in sorted(found[name])]
    wanted = [WantedColumn(name, kind) for name, kind, _ in chosen if kind is not Kind.LIST]
    projection = project(encoded, wanted)
    arrays = iter(projection.columns)
    parts = [_part(name, kind, n, None if kind is Kind.LIST else next(arrays)) for name, kind, n in chosen]
    passed_over = sum(sum(found[name].values()) for name in names[MOST_NAMES:])
    return Content(parts, len(projection.wrong), passed_over)


def attribute_of(events: Any, name: str) -> dict[str, Any]:
    """The values of one attribute by kind, with nulls where a row has none of that kind."""
    encoded = columns.payloads(events)
    if encoded is not None:
        kinds = [kind for kind in discover(encoded).get(name, ()) if kind is not Kind.LIST]
        arrays = project(encoded, [WantedColumn(name, kind) for kind in kinds]).columns
        return {KIND_NAMES[kind]: array for kind, array in zip(kinds, arrays, strict=True)}
    named = (one for one in _from_columns(events) if one.name == name)
    return {one.kind: one.values for one in named if one.values is not None}


def _part(name: str, kind: Kind, count: int, values: Any) -> AttributePart:
    return AttributePart(name, KIND_NAMES[kind], _FAMILIES[kind], count, values)


def _from_columns(events: Any) -> Iterator[AttributePart]:
    arrow, table = columns.flat(events)
    for field in table.schema:
        array = table.column(field.name).combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if columns.is_list(arrow, array.type):
            yield _part(field.name, Kind.LIST, len(array) - array.null_count, None)
        elif not pa.types.is_null(array.type):
            kind, array = _kind(array)
            yield _part(field.name, kind, len(array) - array.null_count, array)


def _kind(array: Any) -> tuple[Kind, Any]:
    """The kind of a column that can be an attribute, and its values in the one type that this kind has."""
    types, given = pa.types, array.type
    if types.is_boolean(given):
        return Kind.BOOL, array
    if types.is_integer(given):
        return Kind.INT, array.cast(pa.int64(), safe=False)
    if types.is_floating(given):
        real = array.cast(pa.float64())
        return Kind.FLOAT, pc.if_else(pc.is_finite(real), real, pa.scalar(None, pa.float64()))
    if types.is_timestamp(given):
        return Kind.TIME, array.cast(UTC_MICROSECONDS, safe=False)
    if types.is_binary(given) or types.is_large_binary(given) or types.is_fixed_size_binary(given):
        return Kind.BYTES, array.cast(pa.binary())
    return Kind.STRING, array.cast(pa.string())
