"""Arrow columns as the compiled core reads them: addresses of buffers, without a copy wherever Arrow has none.

Every kind of column is first cast to one of seven forms; what needs no cast stays where it is. Lists have their
elements in such a form, and beside it where each list begins.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from palio.matching import columns

# The numbers of native/values.h.
_BOOL, _INTEGER, _UNSIGNED, _REAL, _STRING, _BYTES, _TIME = range(1, 8)

# What a unit of time is in microseconds: multiplied by the first, divided by the second.
_UNITS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


class ColumnBatch:
    """The columns of a table that an index knows. Keeps alive what the addresses point to."""

    def __init__(self, table: Any, known: Container[str]) -> None:
        """Raises `UnsupportedColumn`."""
        self.arrow, table = columns.flat(table)
        self.rows: int = table.num_rows
        self._kept: list[Any] = []
        described = [self._described(name, table.column(name)) for name in table.column_names if name in known]
        self.columns = [one for one in described if one is not None]

    def _described(self, name: str, column: Any) -> tuple[Any, ...] | None:
        arrow, kind = self.arrow, column.type
        types = arrow.types
        if types.is_dictionary(kind):
            return self._described(name, column.cast(kind.value_type))
        if types.is_null(kind):
            return None
        if columns.is_list(arrow, kind):
            return self._described_list(name, column)
        multiplier, divisor = 1, 1
        if types.is_boolean(kind):
            form, wanted = _BOOL, kind
        elif types.is_uint64(kind):
            form, wanted = _UNSIGNED, kind
        elif types.is_integer(kind):
            form, wanted = _INTEGER, arrow.int64()
        elif types.is_floating(kind):
            form, wanted = _REAL, arrow.float64()
        elif types.is_timestamp(kind):
            form, wanted = _TIME, arrow.int64()
            multiplier, divisor = _UNITS[kind.unit]
        elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            form, wanted = _STRING, arrow.large_string()
        else:
            form, wanted = _BYTES, arrow.large_binary()
        array = in_one_piece(arrow, column if kind == wanted else column.cast(wanted))
        buffers = array.buffers()
        self._kept.append((array, buffers))
        validity, *others = [0 if buffer is None else buffer.address for buffer in buffers]
        data, offsets = (others[1], others[0]) if len(others) == 2 else (others[0], 0)
        return name, form, validity, data, offsets, array.offset, multiplier, divisor

    def _described_list(self, name: str, column: Any) -> tuple[Any, ...]:
        arrow, kind = self.arrow, column.type.value_type
        if columns.is_list(arrow, kind) or arrow.types.is_null(kind):  # nothing that elements can be
            return name, columns.values_of(arrow, name, column)
        wanted = arrow.large_list(kind)
        array = in_one_piece(arrow, column if column.type == wanted else column.cast(wanted))
        validity, offsets = [0 if buffer is None else buffer.address for buffer in array.buffers()[:2]]
        self._kept.append((array, array.buffers()))
        elements = self._described(name, arrow.chunked_array([array.values]))
        return name, elements, validity, offsets, array.offset


class Payloads:
    """A column of encoded notifications. Keeps alive what the addresses point to."""

    def __init__(self, column: Any) -> None:
        """From what `columns.payloads` gives."""
        self.arrow = columns.arrow_module()
        self.array = in_one_piece(self.arrow, column)
        self.rows = len(self.array)
        self._buffers = self.array.buffers()
        validity, offsets, data = [0 if buffer is None else buffer.address for buffer in self._buffers]
        self.description: tuple[int, int, int, int] = (validity, data, offsets, self.array.offset)


def in_one_piece(arrow: Any, column: Any) -> Any:
    """A column's chunks as one array."""
    array = column.combine_chunks()
    return arrow.concat_arrays(array.chunks) if isinstance(array, arrow.ChunkedArray) else array
