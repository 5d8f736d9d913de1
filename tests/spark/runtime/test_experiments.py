"""The simulator's runs made by executors are those made here; who leaves early leaves nothing running."""

import pytest

from palio.sim.experiments.execution import make_runs
from palio.sim.experiments.sweep import expand
from tests.sim.experiments.examples import experiment
from tests.sim.experiments.standin import simulate


@pytest.fixture(scope="module")
def runs():
    return expand(experiment(), quick=True)


def by_key(finished):
    return {one.run.key: one.row() for one in finished}


def test_spark_gives_what_one_process_gives(spark, runs):
    here = by_key(make_runs(runs, simulate=simulate))
    assert by_key(make_runs(runs, workers=2, spark=spark, simulate=simulate)) == here


def test_leaving_early_ends_the_jobs(spark, runs):
    making = make_runs(runs, workers=2, spark=spark, simulate=simulate)
    next(making)
    making.close()
    assert spark.range(10).count() == 10
