"""Encoded notifications as Arrow columns: the values of some attributes, each in a column of one kind.

The encoded bytes are the truth; columns are projections of it. A value of another kind than its column's is
null there and counted; where a column `converts`, a number that both kinds have exactly is taken (3 is 3.0).
Rows that are no encoded notification are null everywhere and named, for the caller to refuse or to set aside.

The compiled core does it without a Python object a value; where it could not be built, the model does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from palio.matching import columns
from palio.matching.arrays import Payloads
from palio.model.body import Body
from palio.model.errors import InvalidNotification
from palio.model.notification import Notification
from palio.model.values import KIND_OF_TYPE, Kind

try:
    from palio.matching.core import discover_payloads, project_payloads, split_bodies
except ImportError:  # `palio.matching` warns of it
    COMPILED = False
else:
    COMPILED = True

# What one call takes at the most: the places of texts are 32-bit numbers.
MAX_BYTES = 2**31 - 1

_decode_body = msgspec.msgpack.Decoder(Body).decode
_encode_body = msgspec.msgpack.Encoder().encode
_NOTHING = Body(b"")


class WantedColumn(msgspec.Struct, frozen=True):
    """A column: the attribute, the kind of its values, and whether numbers are converted."""

    name: str
    kind: Kind
    converts: bool = False


class Projection(msgspec.Struct, frozen=True):
    """The columns that were wanted, how many values of each did not convert, and the rows that are none."""

    columns: list[Any]
    unconverted: list[int]
    wrong: list[int]


def arrow_type(kind: Kind) -> Any:
    """The Arrow type of a column of a kind. Lists have none."""
    arrow = columns.arrow_module()
    return {
        Kind.BOOL: arrow.bool_(),
        Kind.INT: arrow.int64(),
        Kind.FLOAT: arrow.float64(),
        Kind.STRING: arrow.string(),
        Kind.TIME: arrow.timestamp("us", "UTC"),
        Kind.BYTES: arrow.binary(),
    }[kind]


def project(payload: Any, wanted: Sequence[WantedColumn]) -> Projection:
    """Columns of an Arrow array of encoded notifications; null is one without attributes."""
    encoded = _large(payload)
    if not COMPILED:
        return _project_slowly(encoded.array, wanted)
    arrow, rows = encoded.arrow, encoded.rows
    described = [(one.name, int(one.kind), one.converts) for one in wanted]
    # Two columns may be of one attribute, but a name has one number in the core.
    rounds: list[dict[str, int]] = []
    for place, (name, *_) in enumerate(described):
        fitting = next((taken for taken in rounds if name not in taken), None)
        if fitting is None:
            rounds.append({name: place})
        else:
            fitting[name] = place
    arrays: list[Any] = [None] * len(wanted)
    unconverted = [0] * len(wanted)
    wrong: list[int] = []
    for taken in rounds or [{}]:
        found, wrong = project_payloads(
            encoded.description, rows, [described[place] for place in taken.values()]
        )
        for place, (validity, data, offsets, missed) in zip(taken.values(), found, strict=True):
            buffers = [arrow.py_buffer(one) for one in (validity, offsets, data) if one is not None]
            arrays[place] = arrow.Array.from_buffers(arrow_type(wanted[place].kind), rows, buffers)
            unconverted[place] = missed
    return Projection(arrays, unconverted, wrong)


def discover(payload: Any) -> dict[str, dict[Kind, int]]:
    """Which attributes encoded notifications have, and how many values of each kind."""
    encoded = _large(payload)
    if COMPILED:
        found = discover_payloads(encoded.description, encoded.rows)
        return {
            name: {Kind(kind): count for kind, count in enumerate(counts) if count}
            for name, counts in found.items()
        }
    kinds: dict[str, dict[Kind, int]] = {}
    for raw in encoded.array.to_pylist():
        for name, value in (_attributes(raw) or {}).items():
            by_kind = kinds.setdefault(name, {})
            by_kind[_kind(value)] = by_kind.get(_kind(value), 0) + 1
    return kinds


def attributes_of_bodies(bodies: Any) -> tuple[Any, Any, list[int]]:
    """Of an Arrow array of bodies: the encoded attributes, the other properties, and the rows that are no body.

    Properties are a body without attributes and id, or null where there are none but an id.
    """
    encoded = _large(bodies)
    arrow, rows = encoded.arrow, encoded.rows
    if COMPILED:
        data, offsets, kinds = split_bodies(encoded.description, rows)
        attributes = arrow.Array.from_buffers(
            arrow.large_binary(), rows, [None, arrow.py_buffer(offsets), arrow.py_buffer(data)]
        )
    else:
        attributes, kinds = None, bytes([1]) * rows
    if not any(kinds):
        return attributes, arrow.nulls(rows, arrow.binary()), []
    parts: list[bytes | None] = []
    properties: list[bytes | None] = [None] * rows
    wrong = []
    for row, kind in enumerate(kinds):
        body = _read_body(encoded.array[row].as_py()) if kind else None
        if kind and body is None:
            wrong.append(row)
        if body is not None:
            properties[row] = properties_of(body)
        if attributes is None:
            parts.append(None if body is None else body.attributes)
    if attributes is None:
        attributes = arrow.array(parts, arrow.large_binary())
    return attributes, arrow.array(properties, arrow.binary()), wrong


def properties_of(body: Body) -> bytes | None:
    """What a body says beside its attributes and its id, as a body; None if that is nothing."""
    bare = msgspec.structs.replace(body, attributes=b"", id=None)
    return None if bare == _NOTHING else _encode_body(bare)


def body_of(attributes: bytes, id: str | None, properties: bytes | None) -> Body:
    """The body of which `attributes_of_bodies` gives the parts."""
    if properties is None:
        return Body(attributes, id)
    return msgspec.structs.replace(_decode_body(properties), attributes=attributes, id=id)


def _read_body(raw: bytes | None) -> Body | None:
    try:
        return _decode_body(raw or b"")
    except (msgspec.DecodeError, ValueError):
        return None


def _large(column: Any) -> Payloads:
    arrow = columns.arrow_module()
    if column.type != arrow.large_binary():
        column = column.cast(arrow.large_binary())
    encoded = Payloads(column if isinstance(column, arrow.ChunkedArray) else arrow.chunked_array([column]))
    if encoded.array.nbytes > MAX_BYTES:
        raise ValueError(
            f"This batch has {encoded.array.nbytes:,} bytes; at most {MAX_BYTES:,} are read at once."
        )
    return encoded


# Without the core: what it does, said slowly.


def _attributes(raw: bytes | None) -> dict[str, Any] | None:
    try:
        return {} if raw is None else dict(Notification.decode(raw).attributes)
    except InvalidNotification:
        return None


def _kind(value: Any) -> Kind:
    return Kind(KIND_OF_TYPE[type(value)])


def converted(value: Any, kind: Kind, *, converts: bool) -> Any:
    """A value as one of a kind, or None if it is none of that kind and has no exact counterpart there."""
    if _kind(value) is kind:
        return value
    if converts and kind is Kind.FLOAT and type(value) is int:
        return float(value) if float(value) == value else None
    if converts and kind is Kind.INT and type(value) is float and value.is_integer():
        negative_zero = value == 0.0 and str(value).startswith("-")
        return int(value) if -(2**63) <= value < 2**63 and not negative_zero else None
    return None


def _project_slowly(array: Any, wanted: Sequence[WantedColumn]) -> Projection:
    arrow = columns.arrow_module()
    rows = [_attributes(raw) for raw in array.to_pylist()]
    arrays, unconverted = [], []
    for one in wanted:
        given = [None if row is None else row.get(one.name) for row in rows]
        values = [
            None if value is None else converted(value, one.kind, converts=one.converts) for value in given
        ]
        arrays.append(arrow.array(values, arrow_type(one.kind)))
        unconverted.append(values.count(None) - given.count(None))
    return Projection(arrays, unconverted, [number for number, row in enumerate(rows) if row is None])
