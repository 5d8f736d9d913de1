"""The experiment about the cost of durable delivery, with few short runs."""

import msgspec
import pyarrow.parquet
import pytest

from palio.sim.experiments import plots
from palio.sim.experiments.execution import make_runs
from palio.sim.experiments.loading import load
from palio.sim.experiments.report import write_report
from palio.sim.experiments.results import RUNS, Folder
from palio.sim.experiments.simulators import simulator_of
from palio.sim.experiments.sweep import PlannedRun, expand

EXPERIMENT = load("durable")


@pytest.fixture(scope="module")
def runs():
    """The runs of `--quick`, made shorter still."""
    return [
        PlannedRun(
            run.sweep,
            run.variant,
            msgspec.structs.replace(run.scenario, tail=1.0, lead=0.5, rate=min(run.scenario.rate, 100.0)),
        )
        for run in expand(EXPERIMENT, quick=True)
        if run.sweep == "without trouble" or run.scenario.seed == 1
    ]


@pytest.fixture(scope="module")
def finished(runs):
    return list(make_runs(runs))


def test_nothing_is_missing_in_any_run(finished):
    assert {one.run.variant for one in finished} >= {"transient", "durable", "cut link", "crash of a home"}
    for one in finished:
        assert one.outcome.violations == 0, one.run


def test_both_sides_of_the_comparison_differ_in_nothing_else():
    sides = {"transient": [], "durable": []}
    for run in expand(EXPERIMENT):
        if run.sweep == "without trouble":
            sides[run.variant].append(msgspec.structs.replace(run.scenario, delivery="durable"))
    assert sides["transient"] == sides["durable"]
    assert max(one.rate for one in sides["durable"]) == 1000


def test_runs_are_kept_and_read_back(tmp_path, runs, finished):
    folder = Folder(tmp_path, simulator_of(EXPERIMENT))
    folder.prepare(keep=False)
    folder.append(finished[:3])
    assert list(Folder(tmp_path, simulator_of(EXPERIMENT)).prepare(keep=True)) == [run.key for run in runs[:3]]
    folder.complete(finished)
    table = pyarrow.parquet.read_table(tmp_path / RUNS)
    assert table.num_rows == len(runs)
    assert {"outage", "catch_up_seconds", "journal_reads"} <= set(table.column_names)
    again = Folder(tmp_path, simulator_of(EXPERIMENT)).prepare(keep=True)
    assert [again[run.key] for run in runs] == finished


def test_the_report_has_every_plot_and_the_bar(tmp_path, finished, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "_save", lambda figure, folder, name: drawn.append(name))
    report = write_report(EXPERIMENT, finished, tmp_path, quick=True, command="x")
    assert report.violations == 0
    text = report.path.read_text(encoding="utf-8")
    assert "adds at most 5 % to the messages between brokers" in text
    assert sorted(drawn) == sorted(one.name for one in (*EXPERIMENT.plots, *EXPERIMENT.fits))
    for name in drawn:
        assert f"({name}.png)" in text


@pytest.mark.slow
def test_every_plot_is_saved(tmp_path, finished):
    write_report(EXPERIMENT, finished, tmp_path, quick=True, command="x")
    for plot in EXPERIMENT.plots:
        assert (tmp_path / f"{plot.name}.png").exists()
        assert (tmp_path / f"{plot.name}.svg").exists()
