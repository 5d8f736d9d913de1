"""Spark's conditions as a filter, for `option("pushdown", "true")`.

Spark's logic has three values and it checks everything again, so a pushed filter may only be weaker: whatever
Spark would keep, it must select. What is not surely so is not pushed.

- A comparison with a constant is ours if an attribute's value reaches its column unchanged: strings, bools,
  doubles and bigints with constants of their own kind. A narrow number or a list is left to Spark.
- `not c` is true for Spark only where the attribute is there, and so becomes `exists and not c`.
- `is null` is not pushed: null may also be a value that did not convert.
- Patterns come as `starts with`, `ends with` and `contains` where a `like` is one of these; other patterns,
  `rlike` and `ilike` Spark does not hand to sources in Python, and asks itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from pyspark.sql import datasource as spark

from palio.model.constraint import Constraint
from palio.model.errors import PalioError
from palio.model.expression import And, Condition, Expression, Not, conjunction
from palio.model.filter import Filter
from palio.spark.source.columns import Column, Columns

_OPERATORS = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.StringStartsWith: "starts with",
    spark.StringEndsWith: "ends with",
    spark.StringContains: "contains",
}
_CONSTANTS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "bigint": (int,),
    "double": (float, int),
}


def pushed(filters: Iterable[spark.Filter], columns: Columns) -> Filter | None:
    """A filter that selects all that satisfies these conditions together; None if there is nothing to push."""
    by_name = {one.name: one for one in columns.columns if one.source == "attribute" and not one.is_list}
    parts = [part for one in filters if (part := _expression(one, by_name)) is not None]
    if not parts:
        return None
    try:
        return Filter.from_expression(conjunction(parts))
    except PalioError:
        return None


def _expression(one: spark.Filter, columns: dict[str, Column]) -> Expression | None:
    if isinstance(one, spark.Not):
        # `not x <=> 3` is true where there is no x.
        inner = None if isinstance(one.child, spark.EqualNullSafe) else _comparison(one.child, columns)
        if inner is None:
            return None
        return And((Condition(inner.attribute, Constraint("exists")), Not(inner)))
    if isinstance(one, spark.IsNotNull):
        column = _column(one.attribute, columns)
        return None if column is None else Condition(column.name, Constraint("exists"))
    return _comparison(one, columns)


def _comparison(one: spark.Filter, columns: dict[str, Column]) -> Condition | None:
    """A condition that is true for exactly the values for which Spark's is, among those that a column holds."""
    operator = "in" if isinstance(one, spark.In) else _OPERATORS.get(type(one))
    column = None if operator is None else _column(one.attribute, columns)  # type: ignore[attr-defined]
    if operator is None or column is None:
        return None
    constants = one.value if isinstance(one, spark.In) else (one.value,)  # type: ignore[attr-defined]
    if not constants or not all(_is_constant(constant, column) for constant in constants):
        return None
    constraint = Constraint(operator, tuple(constants) if operator == "in" else constants[0])
    try:
        constraint.check()
    except PalioError:
        return None
    return Condition(column.name, constraint)


def _column(path: tuple[str, ...], columns: dict[str, Column]) -> Column | None:
    column = columns.get(path[0]) if len(path) == 1 else None
    return column if column is not None and column.kind in _CONSTANTS else None


def _is_constant(value: Any, column: Column) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if isinstance(value, bool) != (column.kind == "boolean"):
        return False
    return isinstance(value, _CONSTANTS[column.kind])
