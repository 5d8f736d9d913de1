"""The process from which Spark forks its Python workers, with all in it that they would import one by one.

A worker imports pyarrow, pandas and palio before its first task, which takes longer than the tasks of a test.
Forked from here it has them already: `spark.python.daemon.module` names this module.
"""

from __future__ import annotations

import pandas  # noqa: F401 - for the workers, as all below
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import palio.spark.lake.archiving
import palio.spark.lake.rewriting
import palio.spark.lookback.backtesting
import palio.spark.matching.bulk
import palio.spark.patterns.finding
import palio.spark.source.format
import palio.spark.source.from_broker
import palio.spark.source.from_store
import palio.spark.stats.looking  # noqa: F401

if __name__ == "__main__":
    manager()
