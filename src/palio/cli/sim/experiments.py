"""`palio sim run` and `palio sim list`: experiments from files, and those that come with the package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from palio.cli.output.progress import progress_bar
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, output_console, plural
from palio.sim.experiments import plots, results
from palio.sim.experiments.definition import Experiment
from palio.sim.experiments.execution import available_cores, make_runs
from palio.sim.experiments.loading import load, ready_experiments
from palio.sim.experiments.report import ExperimentReport, write_report
from palio.sim.experiments.results import Finished, Folder
from palio.sim.experiments.simulators import simulator_of
from palio.sim.experiments.sweep import PlannedRun, expand

RUN_EPILOG = help_epilog("palio sim run examples/experiment.toml --output /tmp/palio-example")
LIST_EPILOG = help_epilog("palio sim list")

_COLOURS = {"supported": "green", "partly supported": "yellow", "not supported": "red", "undecided": "dim"}


def list_experiments() -> None:
    """Show the experiments that come with Palio."""
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("what it shows")
    table.add_column("runs", justify="right", no_wrap=True)
    table.add_column("claims", justify="right", no_wrap=True)
    for name in ready_experiments():
        experiment = load(name)
        table.add_row(name, experiment.title, f"{len(expand(experiment)):,}", str(len(experiment.claims)))
    output_console().print(table)


Name = Annotated[str, argument("EXPERIMENT", "A TOML file, or the name of a ready experiment.")]
Output = Annotated[
    Path | None, option("FOLDER", "Where all goes; ./palio-sim/NAME by default.", "--output", "-o")
]
Quick = Annotated[bool, flag("--quick", "A small version: a first look, no result.")]
First = Annotated[
    int, typer.Option("--first", min=1, help="The first seed of each point; others confirm a finding.")
]
Resume = Annotated[bool, flag("--resume", "Keep the finished runs of the folder and make the others.")]


def run_experiment(
    *,
    experiment: Name,
    output: Output = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, help="Processes; as many as cores by default.")
    ] = None,
    spark: Annotated[
        str | None, option("MASTER", "Let Spark make the runs: local[4], spark://…, sc://…")
    ] = None,
    quick: Quick = False,
    first: First = 1,
    resume: Resume = False,
) -> None:
    """Run an experiment: all of its runs, a Parquet file of them, and a report.

    The folder gets runs.parquet with a row a run, report.md, and each plot as
    PNG and SVG. An interrupt keeps the runs that are finished; --resume goes
    on from there. How the runs are made does not change what comes out.

    Exit code 1: the oracle found a run in which something went wrong.
    """
    chosen = Choice(experiment, output, quick=quick, first=first, resume=resume)
    if spark is None:
        perform(chosen, workers or available_cores())
        return
    # Spark is no part of a bare installation.
    from palio.cli.spark.output import quiet_session  # noqa: PLC0415
    from palio.spark.runtime.session import cores_of  # noqa: PLC0415

    with quiet_session(spark, name="palio sim") as opened:
        perform(chosen, workers or cores_of(opened), opened)


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody wants to be run."""

    experiment: str
    output: Path | None
    quick: bool
    first: int
    resume: bool


def perform(chosen: Choice, workers: int, spark: Any = None) -> None:
    """Make the runs that are missing, and report; exits with 1 if the oracle found something wrong."""
    results.needs_pyarrow()
    plots.needs_matplotlib()
    definition = load(chosen.experiment)
    runs = expand(definition, quick=chosen.quick, first_seed=chosen.first)
    folder = Folder(chosen.output or Path("palio-sim") / definition.name, simulator_of(definition))
    known = folder.prepare(keep=chosen.resume)
    finished = [known[run.key] for run in runs if run.key in known]
    missing = [run for run in runs if run.key not in known]
    try:
        for one in _shown(missing, len(finished), workers, spark):
            folder.append([one])
            finished.append(one)
    except KeyboardInterrupt:
        kept = f"{len(finished):,} of {plural(len(runs), 'run')} are kept in {folder.path}; --resume goes on."
        error_console().print(kept, soft_wrap=True)
        raise
    by_key = {one.run.key: one for one in finished}
    finished = [by_key[run.key] for run in runs]
    folder.complete(finished)
    command = f"palio sim run {chosen.experiment}{' --quick' if chosen.quick else ''}"
    command += f" --first {chosen.first}" if chosen.first > 1 else ""
    with error_console().status("drawing"):
        report = write_report(definition, finished, folder.path, quick=chosen.quick, command=command)
    _show(definition, report, len(finished))
    if report.violations:
        raise typer.Exit(ExitCode.NO)


def _shown(missing: list[PlannedRun], done: int, workers: int, spark: Any) -> Iterable[Finished]:
    """The finished runs as they come, with a bar that moves along."""
    total = done + len(missing)
    with progress_bar(error_console(), plural(total, "run"), total) as advance:
        advance(done)
        for number, one in enumerate(make_runs(missing, workers=workers, spark=spark), done + 1):
            advance(number)
            yield one


def _show(experiment: Experiment, report: ExperimentReport, runs: int) -> None:
    console = output_console()
    console.print(Text(experiment.title, style="bold"))
    for finding in report.findings:
        verdict = Text(f"{finding.verdict:>16}  ", style=_COLOURS[finding.verdict])
        console.print(verdict + Text(finding.claim.title, style="not bold default"), soft_wrap=True)
    for growth in report.growths:
        if growth.law is not None:
            law = f"{growth.law.factor:.3g} · x^{growth.law.exponent:.2f}"
            text = f"{experiment.short_label(growth.fit.y)}, {growth.variant}: {law}"
            lead = Text(f"{'growth':>16}  ", style="cyan")
            console.print(lead + Text(text, style="not bold default"), soft_wrap=True)
    if report.violations:
        found = plural(report.violations, "violation")
        console.print(f"The oracle found {found}; see the report.", style="red")
    console.print(Text(f"{plural(runs, 'run')}; the report is {report.path}", style="dim"), soft_wrap=True)
