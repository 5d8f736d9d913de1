"""However the runs are made, the results are the same; an interrupt loses nothing that was finished."""

import struct
import sys
from xml.etree import ElementTree

import msgspec
import pyarrow.parquet
import pytest

from palio.model.errors import MissingDependency
from palio.sim.experiments import plots, results
from palio.sim.experiments.errors import UnusableRuns
from palio.sim.experiments.execution import make_runs
from palio.sim.experiments.report import write_report
from palio.sim.experiments.results import JOURNAL, RUNS, Folder
from palio.sim.experiments.sweep import expand
from tests.sim.experiments.examples import experiment
from tests.sim.experiments.standin import never, simulate


@pytest.fixture(scope="module")
def runs():
    return expand(experiment(), quick=True)


@pytest.fixture(scope="module")
def finished(runs):
    return list(make_runs(runs, workers=1, simulate=simulate))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def report(folder, finished):
    """Written once, since drawing is slow."""
    return write_report(experiment(), finished, folder, quick=True, command="palio sim run example --quick")


def in_order(runs, finished):
    by_key = {one.run.key: one.row() for one in finished}
    return [by_key[run.key] for run in runs]


def test_two_processes_give_what_one_gives(runs, finished):
    again = list(make_runs(runs, workers=2, simulate=simulate))
    assert in_order(runs, again) == in_order(runs, finished)


def test_leaving_early_ends_the_processes(runs):
    making = make_runs(runs, workers=2, simulate=simulate)
    next(making)
    making.close()


def test_a_row_holds_scenario_and_outcome(finished):
    row = finished[0].row()
    assert row["sweep"] == "parties"
    assert row["brokers"] == row["actual_brokers"] == 4
    assert row["subscription_cost"] == finished[0].outcome.subscription_cost


def test_finished_runs_survive_an_interrupt(tmp_path, runs, finished):
    folder = Folder(tmp_path / "out")
    assert folder.prepare(keep=True) == {}
    folder.append(finished[:5])
    with (tmp_path / "out" / JOURNAL).open("ab") as file:
        file.write(msgspec.json.encode(finished[5])[:40])  # the process ended in the middle of a line
    known = Folder(tmp_path / "out").prepare(keep=True)
    assert list(known) == [run.key for run in runs[:5]]
    folder.append(finished[5:6])
    assert len(Folder(tmp_path / "out").prepare(keep=True)) == 6
    missing = [run for run in runs if run.key not in known]
    assert [one.run for one in make_runs(missing, simulate=simulate)] == runs[5:]


def test_a_finished_experiment_is_a_parquet_file_and_nothing_is_run_again(tmp_path, runs, finished):
    folder = Folder(tmp_path)
    folder.append(finished)
    folder.complete(finished)
    assert not (tmp_path / JOURNAL).exists()
    table = pyarrow.parquet.read_table(tmp_path / RUNS)
    assert table.to_pylist() == [one.row() for one in finished]
    known = Folder(tmp_path).prepare(keep=True)
    assert list(known.values()) == finished
    assert list(make_runs([run for run in runs if run.key not in known], simulate=never)) == []


def test_without_resume_it_starts_over(tmp_path, finished):
    folder = Folder(tmp_path)
    folder.append(finished)
    assert folder.prepare(keep=False) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [RUNS, JOURNAL])
def test_a_file_of_something_else_is_refused(tmp_path, name):
    (tmp_path / name).write_text('{"run": 1}\n')
    with pytest.raises(UnusableRuns, match="start without --resume"):
        Folder(tmp_path).prepare(keep=True)


def test_the_report_has_all_plots_as_images(folder, report):
    text = report.path.read_text(encoding="utf-8")
    assert text.startswith("# Two ways\n")
    assert "palio sim run example --quick" in text
    assert "a first look, not a result" in text
    assert "The oracle checked all 16 runs and found nothing wrong." in text
    assert f"**{report.findings[0].verdict}**" in text
    for name in ("cost", "growth"):
        assert f"({name}.png)" in text
        width, height = png_size((folder / f"{name}.png").read_bytes())
        assert width > 600
        assert height > 400
        assert ElementTree.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")


def test_the_same_runs_give_the_same_report(tmp_path, folder, report, finished):
    write_report(experiment(), finished, tmp_path, quick=True, command="palio sim run example --quick")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in folder.iterdir()}
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_violations_are_not_hidden(tmp_path, finished, monkeypatch):
    monkeypatch.setattr(plots, "_save", lambda figure, folder, name: None)
    wrong = msgspec.structs.replace(
        finished[3], outcome=msgspec.structs.replace(finished[3].outcome, violations=2)
    )
    report = write_report(experiment(), [*finished[:3], wrong], tmp_path, quick=True, command="x")
    assert report.violations == 2
    assert "The oracle found 2 violations in 1 of 4 runs" in report.path.read_text(encoding="utf-8")


def png_size(data: bytes) -> tuple[int, int]:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.parametrize(
    ("package", "needed"),
    [("pyarrow", results.needs_pyarrow), ("matplotlib", plots.needs_matplotlib)],
)
def test_what_is_not_installed_is_named(monkeypatch, package, needed):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=r"pip install 'palio\[sim\]'") as caught:
        needed()
    assert caught.value.package == package


def test_every_panel_shows_all_of_its_lines(tmp_path, finished, monkeypatch):
    """Panels share their scale: one with larger values than the first must not run out of it."""
    seen = []
    monkeypatch.setattr(plots, "_save", lambda figure, folder, name: seen.append(figure))
    small = experiment(("log_y = true", "from_zero = true"))
    rows = [results.with_measures(small, one.row()) for one in finished]
    for row in rows:
        row["cost_each"] *= 1 if row["publishers"] == 1 else 1000
    plots.draw_plot(small, small.plots[0], rows, tmp_path)
    first, second = seen[0].axes
    highest = max(max(line.get_ydata()) for line in second.lines if len(line.get_ydata()))
    assert first.get_ylim()[1] == second.get_ylim()[1] >= highest
