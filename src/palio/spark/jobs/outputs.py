"""Where jobs write what they find: Parquet, to a folder that is new."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import DataFrame


def write_table(table: DataFrame, output: str, *, overwrite: bool = False) -> None:
    """Write Parquet to a folder that is new. What was interrupted before it was complete does not count."""
    again = overwrite or _is_unfinished(Path(output))
    table.write.mode("overwrite" if again else "errorifexists").parquet(output)


def _is_unfinished(folder: Path) -> bool:
    """Whether a folder of this machine has only what Spark leaves behind if it is ended while it writes."""
    try:
        names = set(os.listdir(folder))
    except OSError:
        return False
    return not names or ("_temporary" in names and "_SUCCESS" not in names)
