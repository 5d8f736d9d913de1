"""The constraints of subscriptions: which there are, and how many subscriptions have each."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from palio.language import PALIO, read_filter
from palio.model.errors import PalioError
from palio.model.expression import Condition, condition_text, conditions
from palio.model.parser import parse
from palio.spark.arrow import Batches, arrow_schema
from palio.spark.frames import said_filters

CONSTRAINTS = "attribute string, operator string, text string, subscriptions bigint"
# Longer ones (an `in` with a thousand values) are no news that a report could bring.
_LONGEST_TEXT = 1_000


def constraints_of(subscriptions: DataFrame) -> DataFrame:
    """Each constraint once: (attribute, operator, text, subscriptions). Unreadable filters have none."""
    found = said_filters(subscriptions).mapInArrow(_found, CONSTRAINTS)
    return found.groupBy("attribute", "operator", "text").agg(f.sum("subscriptions").alias("subscriptions"))


def equal_to(text: str) -> tuple[str, str | int | float | bool] | None:
    """The attribute and the value of a constraint that is a plain equality; None for another one."""
    condition = parse(text)
    if not isinstance(condition, Condition) or condition.constraint.operator != "=":
        return None
    operand = condition.constraint.operand
    if condition.constraint.demanded is not None or not isinstance(operand, str | int | float | bool):
        return None
    return condition.attribute, operand


# On an executor


def _found(batches: Batches) -> Batches:
    schema = arrow_schema(CONSTRAINTS)
    for batch in batches:
        counted: Counter[tuple[str, str, str]] = Counter()
        for text, dialect in zip(*(column.to_pylist() for column in batch.columns[1:]), strict=True):
            try:
                # As it was written, or else as it was understood.
                ours = dialect == PALIO
                whole = parse(text or "") if ours else read_filter(text or "", dialect).expression
                found = set(conditions(whole))
            except PalioError:
                continue
            said = {(name, one.operator, condition_text(name, one)) for name, one in found}
            counted.update(key for key in said if len(key[2]) <= _LONGEST_TEXT)
        rows = [dict(zip(schema.names, (*key, count), strict=True)) for key, count in counted.items()]
        yield pa.RecordBatch.from_pylist(rows, schema)
