"""Arrow tables as notifications, and matches as Arrow arrays.

A column is an attribute, a struct column flattens to dotted names, null is absent. A float that is not finite
cannot be said in a notification, so it is absent too: one NaN must not stop a batch of a million rows.

Or there is a binary column `payload`: then each row's notification is encoded there, and the other columns are
none of our business. An encoding that is none stops the batch; nobody can know what was meant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from palio.model.errors import InvalidNotification, MissingDependency, UnsupportedColumn
from palio.model.notification import Notification
from palio.model.values import INT_MAX

PAYLOAD = "payload"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def arrow_module() -> Any:
    try:
        import pyarrow  # noqa: PLC0415  (optional, and slow to import)
    except ImportError:
        raise MissingDependency("pyarrow", "arrow") from None
    return pyarrow


def notifications(table: Any) -> Iterator[Notification]:
    """Each row of a table or record batch.

    Raises `UnsupportedColumn` or `InvalidNotification` before the first.
    """
    encoded = payloads(table)
    if encoded is not None:
        return iter([decoded(row, raw) for row, raw in enumerate(encoded.to_pylist())])
    arrow, table = flat(table)
    values = {name: values_of(arrow, name, table.column(name)) for name in table.column_names}
    names = list(values)
    return (
        Notification.of_values(
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
        )
        for row in zip(*values.values(), strict=True)
    )


def payloads(table: Any) -> Any:
    """The column of encoded notifications, as large binary in chunks; None if the table has none."""
    arrow = arrow_module()
    place = table.schema.get_field_index(PAYLOAD)
    if place < 0:
        return None
    column, types = table.column(place), arrow.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)):
        return None
    if isinstance(column, arrow.Array):  # of a record batch
        column = arrow.chunked_array([column])
    if types.is_dictionary(column.type):
        column = column.cast(kind)
    return column if types.is_large_binary(kind) else column.cast(arrow.large_binary())


def decoded(row: int, raw: bytes | None) -> Notification:
    """The notification of a row. Raises `InvalidNotification`, which names the row."""
    try:
        return Notification.of_values({}) if raw is None else Notification.decode(raw)
    except InvalidNotification as problem:
        raise InvalidNotification(f"{PAYLOAD}[{row}]", f"{problem.path}: {problem.reason}") from None


def flat(table: Any) -> tuple[Any, Any]:
    """Arrow itself, and the table without structs, all of whose columns can be attributes.

    Raises `UnsupportedColumn`.
    """
    arrow = arrow_module()
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
    convert = _converter(arrow, name, kind)
    plain = column.cast(arrow.int64()) if types.is_timestamp(kind) else column
    return [convert(one) for one in plain.to_pylist()]


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
    arrow = arrow_module()
    kind = arrow.infer_type(list(known)) if known else arrow.null()
    return arrow.array(rows, arrow.int64()), arrow.array(ids, kind)
