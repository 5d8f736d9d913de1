"""`palio spark`: the jobs of the data pipeline, one module each."""

from __future__ import annotations

import typer

from palio.cli.program.loading import CommandEntry, LazyGroup
from palio.cli.program.terminal import help_epilog

# Each by its module, of whose name that of the command is the end.
_SUMMARIES = {
    "spark.archive": "Write what was published to a lake of Parquet files, each event exactly once.",
    "spark.backtest": "Say what a filter would have delivered of all that was published, and when.",
    "spark.forget": "Remove events from the lake: for erasure, or because they are old enough.",
    "spark.match": "Match many events against many subscriptions: pairs (event_id, subscription_id).",
    "spark.documents": "Show the current XML documents of a lake or of journals, with values of XPaths.",
    "spark.experiments": "Run an experiment of the simulator on a cluster: each of its runs is a task.",
    "spark.package": "Build an archive of palio and what it needs, for executors that do not have it.",
    "spark.reach_back": "Show what a lake has of a filter, and keep all that follows in a new durable "
    "subscription.",
    "spark.patterns": "Find patterns in all events of a source, and say of which events each match consists.",
    "spark.stats": "Report on everything that was published: traffic, values, what subscriptions find and "
    "could save.",
}
JOBS = {
    module.removeprefix("spark.").replace("_", "-"): CommandEntry(module, said)
    for module, said in _SUMMARIES.items()
}


class JobGroup(LazyGroup):
    """The jobs."""

    entries = JOBS


app = typer.Typer(
    cls=JobGroup,
    help="Work on everything that was published, with Spark.",
    no_args_is_help=True,
    epilog=help_epilog(
        "palio spark archive sqlite:///palio-data/palio.db --lake palio-lake",
        "palio spark match -e examples/events.jsonl -f examples/filters.jsonl",
        "palio spark experiments examples/experiment.toml -o /tmp/palio-example",
        "palio spark patterns palio-lake -p examples/patterns.jsonl",
        "palio spark backtest 'price > 100' --against 'price > 120' --picture d.png",
        "palio spark stats examples/events.jsonl -f examples/filters.jsonl",
        notes="All of them run here unless --master or --remote names a cluster; docs/spark.md says more.",
    ),
)


@app.callback()
def spark() -> None:
    """Work on everything that was published, with Spark."""
