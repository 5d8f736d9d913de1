"""`register`: a session learns `format("palio")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Let a session know `format("palio")`. It may be done more than once."""
    from palio.spark.source.format import PalioSource  # noqa: PLC0415 (a sink needs no source, but both need this)

    spark.dataSource.register(PalioSource)
