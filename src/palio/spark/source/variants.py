"""Values as Spark's variants: a column that holds an int today and a text tomorrow.

The format is that of Parquet's variant: a header byte with the type, then the value, little endian. A value of
ours is a scalar or a list of scalars, so there are never names of fields, and the metadata is always the same.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

import pyarrow as pa

# Spark tells a variant from a struct by this mark on its second field.
_MARKED = pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"})
VARIANT = pa.struct([pa.field("value", pa.binary(), nullable=False), _MARKED])
_METADATA = b"\x01\x00\x00"  # version 1, no names
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def variant_of(value: Any) -> dict[str, bytes]:
    """A value as a row of a variant column."""
    return {"value": _encoded(value), "metadata": _METADATA}


def _encoded(value: Any) -> bytes:
    if isinstance(value, tuple):
        return _list([_encoded(one) for one in value])
    if isinstance(value, bool):
        return b"\x04" if value else b"\x08"
    if isinstance(value, int):
        for header, size in ((0x0C, 1), (0x10, 2), (0x14, 4)):
            if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
                return bytes([header]) + value.to_bytes(size, "little", signed=True)
        return b"\x18" + value.to_bytes(8, "little", signed=True)
    if isinstance(value, float):
        return b"\x1c" + struct.pack("<d", value)
    if isinstance(value, datetime):
        return b"\x30" + ((value - _EPOCH) // timedelta(microseconds=1)).to_bytes(8, "little", signed=True)
    if isinstance(value, bytes):
        return b"\x3c" + len(value).to_bytes(4, "little") + value
    raw: bytes = value.encode()
    if len(raw) < 64:
        return bytes([len(raw) << 2 | 1]) + raw
    return b"\x40" + len(raw).to_bytes(4, "little") + raw


def _list(elements: list[bytes]) -> bytes:
    # Four bytes for the number of elements and for each place: no list is too long for that.
    places = accumulate(map(len, elements), initial=0)
    header = 0b11 | 0b11 << 2 | 1 << 4
    return struct.pack(f"<B{len(elements) + 2}I", header, len(elements), *places) + b"".join(elements)
