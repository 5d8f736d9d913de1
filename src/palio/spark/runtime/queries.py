"""Queries over streams that run to their end, on a busy machine too.

Spark starts a Python process for each stream that is read from here, and gives it ten seconds to connect: a
number in its code (`PythonWorkerFactory.createSimpleWorker`) that no setting changes. Where that is too short,
the query fails before it has read anything. Its checkpoint knows where it was, so it is started again.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

# A machine on which a process has not begun after so many times ten seconds has another trouble.
ATTEMPTS = 6
_TOO_LATE = "Python worker failed to connect back"


def run_to_end(start: Callable[[], StreamingQuery], *, seconds: int | None = None) -> StreamingQuery:
    """Start a query that has a checkpoint, and wait until it has ended; the query is stopped in any case.

    A query that failed because its process came too late is started again, up to `ATTEMPTS` times in all; every
    other failure is raised at once. An attempt may take so many `seconds`, or as long as it likes; if it takes
    longer, `TimeoutError` is raised.
    """
    for attempt in range(1, ATTEMPTS + 1):
        query = start()
        try:
            if query.awaitTermination(seconds) is False:  # without a limit it says nothing
                raise TimeoutError(f"The query has not ended within {seconds} seconds.")
            break
        except Exception as problem:
            if attempt == ATTEMPTS or _TOO_LATE not in str(problem):
                raise
        finally:
            query.stop()
    return query
