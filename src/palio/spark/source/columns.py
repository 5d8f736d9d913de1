"""Columns: what a schema asks for, and events in that form.

Every column is an attribute, by its name; one that begins with an underscore and is one of `_journal`,
`_sequence`, `_id`, `_time`, `_publisher`, `_payload`, `_properties` and `_branch` is what the event has beside
its attributes. `_unconverted` counts, for each row, the values that are there but null in their column.

A value is null where it is not of the column's type and not a number that the type has exactly: 3 is 3.0, but
2^53 + 1 is no double and 300 no tinyint. A `variant` column takes values of every kind as they are.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from palio.matching.projection import WantedColumn, project
from palio.model.errors import InvalidNotification
from palio.model.notification import Notification
from palio.model.values import Kind
from palio.spark.arrow import ARROW_TYPES
from palio.spark.errors import WrongSchema
from palio.spark.source.rows import BRANCH, EVENT, GENERIC
from palio.spark.source.variants import VARIANT, variant_of

UNCONVERTED = "_unconverted"
BESIDE = {f"_{name}": name for name in (*EVENT.names, BRANCH)}
_TYPES = {BRANCH: pa.string(), **{field.name: field.type for field in EVENT}}

# The kind of the values of a simple type of Spark.
KINDS = {
    "boolean": Kind.BOOL,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INT),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    "string": Kind.STRING,
    "binary": Kind.BYTES,
    "timestamp": Kind.TIME,
}


class Column(msgspec.Struct, frozen=True):
    """A column of the result: its name, where it comes from, and its type as Spark calls it."""

    name: str
    source: str  # "attribute", "beside", "unconverted"
    kind: str  # one of `KINDS`, "variant", or the type of a list's elements
    is_list: bool = False

    @property
    def arrow_type(self) -> Any:
        if self.kind == "variant":
            return VARIANT
        element = ARROW_TYPES[self.kind]
        return pa.list_(element) if self.is_list else element


class Columns:
    """The columns of a schema, in their order. Raises `WrongSchema`."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        """From names and Spark's simple names of types."""
        self.columns = [_column(name, kind.lower()) for name, kind in fields]
        self.is_generic = [name for name, _ in fields] == GENERIC

    def table(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Events as this schema wants them."""
        if self.is_generic:
            return events.select(GENERIC)
        wanted = [
            (place, WantedColumn(one.name, KINDS[one.kind], converts=True))
            for place, one in enumerate(self.columns)
            if one.source == "attribute" and not one.is_list and one.kind != "variant"
        ]
        payload = events.column("payload")
        projection = project(payload, [one for _, one in wanted])
        arrays: list[Any] = [None] * len(self.columns)
        missed = [0] * len(self.columns)
        found = zip(wanted, projection.columns, projection.unconverted, strict=True)
        for (place, _), array, unconverted in found:
            arrays[place] = narrowed(array, self.columns[place].arrow_type)
            missed[place] = unconverted + arrays[place].null_count - array.null_count
        rows = None
        for place, one in enumerate(self.columns):
            if one.source == "beside":
                there = BESIDE[one.name] in events.schema.names
                empty = pa.nulls(events.num_rows, one.arrow_type)
                arrays[place] = events.column(BESIDE[one.name]) if there else empty
            elif arrays[place] is None and one.source == "attribute":
                rows = rows if rows is not None else [_attributes(raw) for raw in payload.to_pylist()]
                arrays[place] = _slow_column(one, rows)
                missed[place] = arrays[place].null_count
        for place, one in enumerate(self.columns):
            if one.source == "unconverted":
                arrays[place] = self._unconverted(payload, arrays, missed)
        schema = pa.schema([pa.field(one.name, one.arrow_type) for one in self.columns])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _unconverted(self, payload: Any, arrays: list[Any], missed: list[int]) -> Any:
        """How many attributes of each row are there but null in their column; most often none of any row."""
        total = pa.array([0] * len(payload), pa.int32())
        if any(missed):
            rows = [_attributes(raw) for raw in payload.to_pylist()]
            for place in [place for place, count in enumerate(missed) if count]:
                there = pa.array([self.columns[place].name in row for row in rows], pa.bool_())
                total = pc.add(total, pc.and_(there, arrays[place].is_null()).cast(pa.int32()))
        return total


def narrowed(array: Any, wanted: Any) -> Any:
    """An array of 64-bit numbers as one of a narrower type: null where that is not exact."""
    if array.type == wanted:
        return array
    if pa.types.is_integer(wanted):
        bits = wanted.bit_width
        fits = pc.and_(pc.greater_equal(array, -(2 ** (bits - 1))), pc.less_equal(array, 2 ** (bits - 1) - 1))
        return pc.if_else(fits, array, pa.scalar(None, array.type)).cast(wanted)
    narrow = array.cast(wanted, safe=False)
    exact = pc.equal(narrow.cast(array.type), array)
    return pc.if_else(exact, narrow, pa.scalar(None, wanted))


def fields_of(schema: Any) -> list[tuple[str, str]]:
    """Names and types of a Spark schema."""
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _column(name: str, kind: str) -> Column:
    if name == UNCONVERTED:
        if kind != "int":
            raise WrongSchema(name, "It counts, and so is an int.")
        return Column(name, "unconverted", kind)
    if name in BESIDE:
        expected = _TYPES[BESIDE[name]]
        if ARROW_TYPES.get(kind) != expected:
            right = next(name for name, one in ARROW_TYPES.items() if one == expected)
            raise WrongSchema(name, f"Its type is {right}, not {kind}.")
        return Column(name, "beside", kind)
    if kind == "variant" or kind in KINDS:
        return Column(name, "attribute", kind)
    if kind.startswith("array<") and kind[6:-1] in KINDS:
        return Column(name, "attribute", kind[6:-1], is_list=True)
    if kind == "timestamp_ntz":
        raise WrongSchema(name, "A time has a zone: say timestamp.")
    known = ", ".join(KINDS)
    raise WrongSchema(name, f"{kind} is not one of {known}, variant, or an array of one of the former.")


def _attributes(raw: bytes | None) -> dict[str, Any]:
    try:
        return {} if raw is None else dict(Notification.decode(raw).attributes)
    except InvalidNotification:
        return {}


def _slow_column(column: Column, rows: list[dict[str, Any]]) -> Any:
    """Lists and variants, value by value."""
    return pa.array([_variant_or_list(column, row.get(column.name)) for row in rows], column.arrow_type)


def _variant_or_list(column: Column, value: Any) -> Any:
    if column.kind == "variant":
        return None if value is None else variant_of(value)
    if not isinstance(value, tuple):
        return None
    if not value:
        return []
    wanted = WantedColumn("e", KINDS[column.kind], converts=True)
    encoded = pa.array([Notification.of_values({"e": one}).encode() for one in value], pa.binary())
    found = narrowed(project(encoded, [wanted]).columns[0], ARROW_TYPES[column.kind])
    return None if found.null_count else found.to_pylist()
