"""Arrow tables as notifications, and matches as Arrow arrays.

A column is an attribute, a struct column flattens to dotted names, null is absent. A float that is not finite
cannot be said in a notification, so it is absent too: one NaN must not stop a batch of a million rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from palio.model.errors import MissingDependency, UnsupportedColumn
from palio.model.notification import Notification
from palio.model.values import INT_MAX

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def _arrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415  (optional, and slow to import)
    except ImportError:
        raise MissingDependency("pyarrow", "arrow") from None
    return pyarrow


def notifications(table: Any) -> Iterator[Notification]:
    """Each row of a table or record batch. Raises `UnsupportedColumn` before the first."""
    arrow, table = flat(table)
    values = {name: values_of(arrow, name, table.column(name)) for name in table.column_names}
    names = list(values)
    return (
        Notification.of_values(
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
        )
        for row in zip(*values.values(), strict=True)
    )


def flat(table: Any) -> tuple[Any, Any]:
    """Arrow itself, and the table without structs, all of whose columns can be attributes.

    Raises `UnsupportedColumn`.
    """
    arrow = _arrow()
    if isinstance(table, arrow.RecordBatch):
        table = arrow.Table.from_batches([table])
    while any(arrow.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for field in table.schema:
        _check(arrow, field.name, field.type)
    return arrow, table


def _check(arrow: Any, name: str, kind: Any) -> None:
    types = arrow.types
    if types.is_dictionary(kind) or is_list(arrow, kind):
        _check(arrow, name, kind.value_type)
    else:
        _converter(arrow, name, kind)


def is_list(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def values_of(arrow: Any, name: str, column: Any) -> list[Any]:
    """The column as Python values that a notification takes."""
    types = arrow.types
    kind = column.type
    if types.is_dictionary(kind):
        return values_of(arrow, name, column.cast(kind.value_type))
    if is_list(arrow, kind):
        return [_elements(arrow, name, kind.value_type, one) for one in column]
    _convert = _converter(arrow, name, kind)
    return [
        _convert(one)
        for one in (column.cast(arrow.int64()) if types.is_timestamp(kind) else column).to_pylist()
    ]


def _elements(arrow: Any, name: str, kind: Any, scalar: Any) -> tuple[Any, ...] | None:
    if not scalar.is_valid:
        return None
    found = values_of(arrow, name, arrow.chunked_array([scalar.values], type=kind))
    return None if None in found else tuple(found)


def _converter(arrow: Any, name: str, kind: Any) -> Any:
    types = arrow.types
    if types.is_boolean(kind) or types.is_null(kind):
        return lambda value: value
    if types.is_integer(kind):
        return lambda value: value if value is None or value <= INT_MAX else None
    if types.is_floating(kind):
        return lambda value: value if value is not None and math.isfinite(value) else None
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return lambda value: value
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return lambda value: value
    if types.is_timestamp(kind):
        if kind.tz is None:
            raise UnsupportedColumn(name, str(kind), "a time needs a zone: cast it to a timestamp with one")
        return lambda value: None if value is None else _moment(value, kind.unit)
    raise UnsupportedColumn(name, str(kind), "cast it to a bool, int64, double, string, timestamp or binary")


def _moment(count: int, unit: str) -> datetime | None:
    micros = count // 1_000 if unit == "ns" else count * _MICROSECONDS[unit]
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def as_arrays(rows: list[int], ids: list[Hashable], known: Collection[Hashable]) -> tuple[Any, Any]:
    """Matches as (int64 rows, ids); the type of the ids is that of all known ones, so it never varies."""
    arrow = _arrow()
    kind = arrow.infer_type(list(known)) if known else arrow.null()
    return arrow.array(rows, arrow.int64()), arrow.array(ids, kind)
