"""What tables must look like, and what has to be known about the session that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palio.matching import columns
from palio.spark.errors import MissingColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

EVENT = "event_id"
SUBSCRIPTION = "subscription_id"
FILTER = "filter"
PAYLOAD = columns.PAYLOAD


def require_columns(table: str, frame: DataFrame, *names: str) -> None:
    """Raises `MissingColumn`."""
    for name in names:
        if name not in frame.columns:
            raise MissingColumn(table, name, frame.columns)


def session_of(frame: DataFrame) -> Any:
    return frame.sparkSession


def travels_by_artifacts(spark: Any) -> bool:
    """Whether executors may be on other machines than this process, so that they share no folder with it."""
    over_connect = type(spark).__module__.startswith("pyspark.sql.connect")
    return over_connect or not str(spark.conf.get("spark.master", "")).startswith("local")


def spread(frame: DataFrame, partitions: int) -> DataFrame:
    """The rows in so many parts of about the same size, wherever they lay before.

    A row goes where the hash of all its columns says, so only rows that are equal in everything lie together.
    Spark could also deal rows out in turn, but then sorts all of them first, so that a task that is done again
    deals as it did before.
    """
    keys = [field.name for field in frame.schema.fields if _has_hash(field.dataType)]
    return frame.repartition(partitions, *(frame[f"`{name}`"] for name in keys))


def _has_hash(kind: Any) -> bool:
    """Whether Spark can hash such values; it cannot where a map is inside, nor a variant."""
    text = kind.simpleString()
    return not any(part in text for part in ("map<", "variant", "geography", "geometry"))


def has_payload(schema: StructType) -> bool:
    """Whether events are encoded in a column, rather than having one for each attribute."""
    from pyspark.sql.types import BinaryType  # noqa: PLC0415

    return PAYLOAD in schema.names and isinstance(schema[PAYLOAD].dataType, BinaryType)


def require_attributes(schema: StructType) -> None:
    """Raises `UnsupportedColumn` if one of the columns has a type that no attribute can have."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    columns.flat(to_arrow_schema(schema, timezone="UTC").empty_table())
