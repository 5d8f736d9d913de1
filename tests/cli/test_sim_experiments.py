"""`palio sim run` and `palio sim list`, with the real simulator."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from palio.cli.main import app
from palio.sim.experiments.results import JOURNAL, RUNS
from tests.cli.processes import IN_FOREGROUND, PALIO
from tests.slices import sliced

ROOT = Path(__file__).parents[2]
EXAMPLE = "examples/experiment.toml"


def rows(folder: Path) -> list[dict[str, object]]:
    return pyarrow.parquet.read_table(folder / RUNS).drop_columns(["wall_seconds"]).to_pylist()


def test_the_ready_experiments_are_listed(command):
    result = command("sim", "list")
    assert result.exit_code == 0
    for name in ("churn", "durable", "growth", "siena", "strategies"):
        assert name in result.stdout


def run_once(folder: Path, *more: str) -> Result:
    """The example, in this process alone."""
    words = ["sim", "run", str(ROOT / EXAMPLE), *more, "--workers", "1", "--output", str(folder)]
    return CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> tuple[Result, Path]:
    """The example as a quick look, and the folder in which its results are."""
    folder = tmp_path_factory.mktemp("quick")
    return run_once(folder, "--quick"), folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[dict[str, object]]:
    """What all of the example comes to."""
    folder = tmp_path_factory.mktemp("whole")
    run_once(folder)
    return rows(folder)


def test_an_experiment_gives_runs_and_a_report(quick):
    result, folder = quick
    assert result.exit_code == 0
    assert "Tables are smaller with covering" in result.stdout
    found = rows(folder)
    assert len(found) == 2 * 2 * 2
    assert all(row["violations"] == 0 and row["published"] == 24 for row in found)
    assert {path.name for path in folder.iterdir()} == {
        RUNS,
        "report.md",
        "tables.png",
        "tables.svg",
    }


def test_the_number_of_processes_changes_nothing(command, quick, tmp_path):
    command("sim", "run", EXAMPLE, "--quick", "--workers", "2", "--output", str(tmp_path))
    assert rows(tmp_path) == rows(quick[1])


def test_resuming_a_finished_experiment_only_writes_the_report(quick, tmp_path):
    shutil.copytree(quick[1], tmp_path, dirs_exist_ok=True)
    first = pyarrow.parquet.read_table(tmp_path / RUNS)
    (tmp_path / "report.md").unlink()
    run_once(tmp_path, "--quick", "--resume")
    assert (tmp_path / "report.md").exists()
    assert pyarrow.parquet.read_table(tmp_path / RUNS) == first, "even the wall seconds are the same"


@pytest.mark.parametrize("scale", ["", "log_y = true"])
def test_plots_are_drawn_anew_with_other_scales(quick, tmp_path, scale):
    text = (ROOT / EXAMPLE).read_text()
    assert "from_zero = true" in text
    file, folder = tmp_path / "other.toml", tmp_path / "out"
    file.write_text(text.replace("from_zero = true", scale))
    shutil.copytree(quick[1], folder)
    before = (folder / "tables.svg").read_bytes()
    words = ["sim", "run", str(file), "--quick", "--workers", "1", "--output", str(folder), "--resume"]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    assert rows(folder) == rows(quick[1])
    assert (folder / "tables.svg").read_bytes() != before


@pytest.mark.parametrize("workers", sliced(["2", "1"], 1))
def test_an_interrupt_keeps_what_is_finished(command, environment, whole, tmp_path, workers):
    folder = tmp_path / "out"
    arguments = ["sim", "run", EXAMPLE, "--workers", workers, "--output", str(folder)]
    process = subprocess.Popen(
        [*IN_FOREGROUND, *PALIO, *arguments],
        cwd=ROOT, env=environment, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        journal = folder / JOURNAL
        deadline = time.monotonic() + 60
        while not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr is not None
        assert "--resume goes on" in process.stderr.read()
    kept = journal.read_bytes().count(b"\n")
    assert 3 <= kept < 60
    assert command(*arguments, "--resume").exit_code == 0
    assert rows(folder) == whole


def test_the_workers_end_with_the_first_process(environment, tmp_path):
    arguments = ["sim", "run", EXAMPLE, "--workers", "2", "--output", str(tmp_path)]
    process = subprocess.Popen([*PALIO, *arguments], cwd=ROOT, env=environment)
    with process:
        deadline = time.monotonic() + 60
        while not (tmp_path / JOURNAL).exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            pytest.skip("only Linux tells the children of a process")
        workers = children.read_text().split()
        process.kill()
    while any(Path(f"/proc/{worker}/cmdline").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_mistakes_are_sentences(command, tmp_path):
    result = command("sim", "run", "nothing")
    assert result.exit_code == 3
    assert "no ready experiment of that name" in result.stderr
    broken = tmp_path / "broken.toml"
    broken.write_text((ROOT / EXAMPLE).read_text().replace("brokers = 8", "borkers = 8"))
    result = command("sim", "run", str(broken))
    assert result.exit_code == 3
    assert "$.base.borkers: 'borkers' is no field of a scenario; did you mean 'brokers'?" in " ".join(
        result.stderr.split()
    )


@pytest.mark.slow
def test_a_quick_look_at_siena(command, tmp_path):
    result = command("sim", "run", "siena", "--quick", "--output", str(tmp_path))
    assert result.exit_code == 0, result.stdout
    assert result.stdout.count("supported") >= 4
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "found nothing wrong" in text
    for name in ("subscription-cost", "cost-per-subscriber", "delivery-cost", "total-cost"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
