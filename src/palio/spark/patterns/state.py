"""The state of a stream's buckets in Spark: one binary value each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from palio.spark.patterns.found import FOUND, found_rows
from palio.spark.patterns.stream import STATE_DDL, Bucket


class BucketProcessor(StatefulProcessor):
    """Looks at a bucket whenever something, or only the time, has come for it."""

    def __init__(self, texts: bytes, delay: int) -> None:
        self._texts = texts
        self._delay = delay

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("detector", STATE_DDL)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        from palio.spark.patterns.finding import ready  # noqa: PLC0415

        kept = self._state.get()
        bucket = Bucket(ready(self._texts), None if kept is None else bytes(kept[0]), self._delay)
        matches, drops = bucket.take(raw for frame in rows for raw in frame["packed"])
        self._state.update((bucket.detector.encode(),))
        found = found_rows(matches, drops)
        if found:
            yield pd.DataFrame(found, columns=FOUND.names)

    def close(self) -> None:
        pass
