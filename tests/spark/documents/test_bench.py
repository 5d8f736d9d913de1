"""The row of `palio bench xml` about Spark runs, and both sides find the same, or it says so."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("lxml")

from benchmarks.documents import spark as bench


@pytest.mark.slow
def test_paths_are_extracted_beside_what_spark_finds(spark, monkeypatch):
    rows = bench.extraction(1.66, 300, 1)
    assert [row.x for row in rows] == [50, 1]
    assert all(row.ours > 0 and row.ratio == row.ours / row.yardstick for row in rows)
    theirs = bench._by_spark
    monkeypatch.setattr(bench, "_by_spark", lambda table, paths: theirs(table, paths).selectExpr("'x' AS x"))
    monkeypatch.setattr(bench, "PATHS", (1,))
    with pytest.raises((AssertionError, ValueError)):
        bench.extraction(1.66, 300, 1)
