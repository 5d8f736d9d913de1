"""`palio bench spark` runs, and both sides of it find the same, or it says so."""

import pytest
from benchmarks import spark as bench

SMALL = ("--events", "300", "--subscriptions", "60", "--runs", "1", "--cores", "2")


def test_bulk_matching_and_the_join_find_the_same(spark, capfd):
    bench.main([*SMALL, "--workload", "stock"])
    said = capfd.readouterr().out
    assert "pairs and checksums are equal" in said
    assert "stock" in said


@pytest.mark.slow
def test_a_join_that_finds_something_else_is_noticed(spark, monkeypatch):
    join = bench.cross_join
    monkeypatch.setattr(bench, "cross_join", lambda *given: join(*given).where("subscription_id != 3"))
    with pytest.raises(AssertionError, match="bulk matching gives"):
        bench.main([*SMALL, "--workload", "ranges"])


@pytest.mark.slow
def test_memory_archive_and_growth(spark, capfd):
    bench.main(["--memory", "--subscriptions", "2000"])
    bench.main(["--archive", "--events", "3000"])
    bench.main([*SMALL, "--growth", "--workload", "equality"])
    said = capfd.readouterr().out
    assert "Python processes together at most" in said
    assert "archive: 3,000 events" in said
    assert "Growth: equality" in said
