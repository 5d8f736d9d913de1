"""What tables must look like, and what has to be known about the session that they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from palio.language import PALIO
from palio.matching import columns
from palio.spark.errors import MissingColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

EVENT = "event_id"
SUBSCRIPTION = "subscription_id"
FILTER = "filter"
# What a filter is written in; a table without this column, and a row without a value, in our own language.
DIALECT = "dialect"
PAYLOAD = columns.PAYLOAD
# Columns that say which part a row belongs to: enough to tell rows apart, and no more, as each costs time.
_HASHED_COLUMNS = 5
# So that a core which is done early finds something to do.
PARTITIONS_A_CORE = 4
# The share of its time that a core may have to wait for another one that is still busy with the largest part.
_WAITING = 0.2


def require_columns(table: str, frame: DataFrame, *names: str) -> None:
    """Raises `MissingColumn`."""
    for name in names:
        if name not in frame.columns:
            raise MissingColumn(table, name, frame.columns)


def said_filters(subscriptions: DataFrame, *more: str) -> DataFrame:
    """Ids, filters, and what each is written in; and `more` columns. Raises `MissingColumn`."""
    from pyspark.sql import functions  # noqa: PLC0415

    require_columns("subscriptions", subscriptions, SUBSCRIPTION, FILTER)
    ours = functions.lit(PALIO)
    said = ours
    if DIALECT in subscriptions.columns:
        said = functions.coalesce(subscriptions[DIALECT].cast("string"), ours)
    return subscriptions.select(SUBSCRIPTION, FILTER, said.alias(DIALECT), *more)


def quoted(column: str) -> str:
    """The name of a column such that Spark takes none of it for a way into a struct."""
    return f"`{column.replace('`', '``')}`"


def is_or_holds(column: str, attributes: Iterable[str]) -> bool:
    """Whether a column is one of some attributes, or a struct that has one."""
    return any(one == column or one.startswith(f"{column}.") for one in attributes)


def over_connect(spark: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def travels_by_artifacts(spark: Any) -> bool:
    """Whether executors may be on other machines than this process, so that they share no folder with it."""
    return over_connect(spark) or not str(spark.conf.get("spark.master", "")).startswith("local")


def spread(frame: DataFrame, partitions: int) -> DataFrame:
    """The rows in so many parts of about the same size, wherever they lay before.

    A row goes where the hash of its id and of some more columns says: ids need not be different. Spark could
    also deal rows out in turn, but then sorts all of them first, so that a task that is done again deals as it
    did before.
    """
    usable = [field for field in frame.schema.fields if _hash_cost(field.dataType) is not None]
    usable.sort(key=lambda field: (field.name != EVENT, _hash_cost(field.dataType)))
    keys = [frame[quoted(field.name)] for field in usable[:_HASHED_COLUMNS]]
    return frame.repartition(partitions, *keys)


def lies_evenly(frame: DataFrame, cores: int) -> bool:
    """Whether a table is in enough parts already, and none of them is large: then it need not be spread.

    The rows of each part are counted. Of plain Parquet that is reading the ends of its files; of anything else
    it may be as much work as is to be saved.
    """
    from pyspark.sql import functions  # noqa: PLC0415

    sizes = frame.groupBy(functions.spark_partition_id().alias("part")).agg(functions.count("*").alias("rows"))
    there = sizes.selectExpr("count(*) AS parts", "max(rows) AS largest", "sum(rows) AS rows").first()
    if there is None or there["parts"] < PARTITIONS_A_CORE * cores:
        return False
    # At worst the largest part is begun last, when the rest has just been done by all cores together.
    return bool(there["largest"] * (cores - 1) <= _WAITING * there["rows"])


def _hash_cost(kind: Any) -> int | None:
    """Numbers and times are hashed first, as they are quick and mostly differ; maps and variants cannot be."""
    text = kind.simpleString()
    if any(part in text for part in ("map<", "variant", "geography", "geometry")):
        return None
    return 1 if text.startswith(("string", "binary", "array", "struct", "boolean")) else 0


def has_payload(schema: StructType) -> bool:
    """Whether events are encoded in a column, rather than having one for each attribute."""
    from pyspark.sql.types import BinaryType  # noqa: PLC0415

    return PAYLOAD in schema.names and isinstance(schema[PAYLOAD].dataType, BinaryType)


def require_attributes(schema: StructType) -> None:
    """Raises `UnsupportedColumn` if one of the columns has a type that no attribute can have."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    columns.flat(to_arrow_schema(schema, timezone="UTC").empty_table())
