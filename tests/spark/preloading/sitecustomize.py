"""What every Python does first that Spark starts in tests, as this folder is on its path: import once for all.

Spark keeps a process for each sort of worker, and forks workers from it: for tasks, and for planning a read or
a write of `format("palio")`. A worker imports pandas, pyarrow and palio before its first task, which takes
longer than the tasks of a test, and it is ended when it has been idle for a minute. Forked from a process that
has them, it begins at once.
"""

from __future__ import annotations

import sys

if "pyspark.daemon" in sys.orig_argv:
    import pandas  # noqa: F401 - all of these are for the workers
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401

    import palio.spark.lake.archiving
    import palio.spark.lake.rewriting
    import palio.spark.lookback.backtesting
    import palio.spark.matching.bulk
    import palio.spark.patterns.finding
    import palio.spark.source.format
    import palio.spark.source.from_broker
    import palio.spark.source.from_store
    import palio.spark.stats.event_scans  # noqa: F401
