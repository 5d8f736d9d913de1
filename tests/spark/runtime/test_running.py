"""A query whose Python process comes too late is started again; one that fails otherwise is not."""

import sys

import pytest

import palio.spark
from palio.spark.runtime.queries import ATTEMPTS, run_to_end
from tests.spark.filling import fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

# The first process for a stream begins when Spark has stopped waiting for it.
LATE = """#!/bin/sh
case "$*" in
*python_streaming_source_runner*) if mkdir "$0.late" 2>/dev/null; then sleep 12; fi ;;
esac
exec "{python}" "$@"
"""


@pytest.mark.slow
def test_a_process_that_comes_too_late(spark, tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, [{"x": n} for n in range(10)])
    python = tmp_path / "python"
    python.write_text(LATE.format(python=sys.executable))
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    palio.spark.register(spark)
    writer = palio.spark.read_stream(spark, url, schema="x int").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    starts = []

    def start():
        starts.append(writer.start(str(tmp_path / "out")))
        return starts[-1]

    run_to_end(start)
    monkeypatch.undo()
    palio.spark.register(spark)
    assert (tmp_path / "python.late").is_dir()
    assert "failed to connect back" in str(starts[0].exception())
    assert len(starts) == 2
    assert sorted(row.x for row in spark.read.parquet(str(tmp_path / "out")).collect()) == list(range(10))


class Query:
    """What of a query matters here."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.stopped = False

    def awaitTermination(self, timeout: float | None) -> bool:  # noqa: N802 - Spark's name
        if timeout is None:
            raise RuntimeError(self.problem)
        return False

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize(
    ("problem", "starts"),
    [("half-way", 1), ("[STREAM_FAILED] Python worker failed to connect back.", ATTEMPTS)],
)
def test_what_goes_on_failing_is_raised(problem, starts):
    queries = []

    def start():
        queries.append(Query(problem))
        return queries[-1]

    with pytest.raises(RuntimeError, match=problem.split()[-1]):
        run_to_end(start)
    assert len(queries) == starts
    assert all(query.stopped for query in queries)


def test_what_does_not_end_is_stopped():
    query = Query("none")
    with pytest.raises(TimeoutError, match="has not ended within 7 seconds"):
        run_to_end(lambda: query, seconds=7)
    assert query.stopped
