"""Forgetting and compaction that die on the way: what is committed stays, and the next one does the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

import palio
import palio.spark
from palio.spark.lake import rewriting
from palio.store.lake.manifests import Lake
from tests.slices import sliced
from tests.spark.filling import a_day_passes
from tests.spark.lakes import Killed, content, copied

pytest.importorskip("pyspark", reason="pyspark is not installed")


@pytest.fixture
def lake(small_files, tmp_path) -> str:
    return copied(small_files, tmp_path)


@pytest.fixture
def in_parts(monkeypatch):
    """A commit for every few events, as there would be for every few million."""
    monkeypatch.setattr(rewriting, "ROWS_PER_COMMIT", 10)
    monkeypatch.setattr(rewriting, "THINGS_A_CORE", 1)


class Dying:
    """Dies at a step when it comes to it for the second time, or another one."""

    def __init__(self, where: str, time: int = 2) -> None:
        self.where, self.time, self.steps = where, time, 0

    def __call__(self, step: str) -> None:
        self.steps += step == self.where
        if self.steps == self.time:
            raise Killed(step)


@pytest.mark.parametrize("where", sliced(["written", "committed"], 1))
def test_forgetting_goes_on_after_a_death(spark, lake, in_parts, where):
    wanted = [row for row in content(palio.spark.read_lake(spark, lake)) if row[1] % 7 != 4]
    told = []
    with pytest.raises(Killed):
        rewriting.forget(spark, lake, palio.Filter.parse('symbol = "S3"'), step=Dying(where), told=told.append)
    state = Lake(lake).state()
    assert state.version == 2 + (1 if where == "written" else 2), "a version for each part"
    assert [one.looked_at for one in told] == sorted({one.looked_at for one in told})
    left = content(palio.spark.read_lake(spark, lake))
    assert set(wanted) < set(left), "nothing else was forgotten"
    done = rewriting.forget(spark, lake, palio.Filter.parse('symbol = "S3"'))
    assert done.events == len(left) - len(wanted), "only what was left"
    assert content(palio.spark.read_lake(spark, lake)) == wanted
    a_day_passes(lake)
    rewriting.sweep(lake, grace=0.0)
    assert content(palio.spark.read_lake(spark, lake)) == wanted
    assert len(list(Path(lake).rglob("*.parquet"))) == len(Lake(lake).state().files)


@pytest.mark.parametrize("death", sliced([("committed", 1), ("written", 2)], 1))
def test_compaction_goes_on_after_a_death(spark, lake, in_parts, death):
    """There are two parts: the files of two classes, and those of the third."""
    wanted = content(palio.spark.read_lake(spark, lake))
    with pytest.raises(Killed):
        rewriting.compact(spark, lake, step=Dying(*death))
    left = len(Lake(lake).state().files)
    assert left == 2 + 5
    assert content(palio.spark.read_lake(spark, lake)) == wanted
    told = []
    assert rewriting.compact(spark, lake, told=lambda *one: told.append(one)) == left - 3
    assert told[-1][0] == told[-1][1], "all that was left"
    assert content(palio.spark.read_lake(spark, lake)) == wanted
