"""`palio spark experiments`: the sweeps of `palio sim run`, a run on each core of a cluster."""

from __future__ import annotations

from palio.cli.program.terminal import help_epilog
from palio.cli.sim.experiments import Choice, First, Name, Output, Quick, Resume, perform
from palio.cli.spark.options import Master, Remote, Settings, opened
from palio.spark.runtime.session import cores_of

EPILOG = help_epilog(
    "palio spark experiments examples/experiment.toml -o /tmp/palio-example",
    notes="What comes out is the same as without Spark, and so are the folder and --resume.",
)


def experiments(
    *,
    experiment: Name,
    output: Output = None,
    quick: Quick = False,
    first: First = 1,
    resume: Resume = False,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Run an experiment of the simulator on a cluster: each of its runs is a task.

    The folder gets runs.parquet with a row a run, report.md, and each plot as
    PNG and SVG. An interrupt keeps the runs that are finished; --resume goes
    on from there.

    Exit code 1: the oracle found a run in which something went wrong.
    """
    chosen = Choice(experiment, output, quick=quick, first=first, resume=resume)
    with opened(master, remote, conf, "experiments") as spark:
        perform(chosen, cores_of(spark), spark)
