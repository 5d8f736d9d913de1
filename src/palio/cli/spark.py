"""`palio spark`: the jobs of the data pipeline, one module each."""

from __future__ import annotations

import typer

from palio.cli import (
    spark_archive,
    spark_backtest,
    spark_experiments,
    spark_forget,
    spark_match,
    spark_package,
    spark_patterns,
    spark_reach_back,
    spark_stats,
)
from palio.cli.terminal import help_epilog

app = typer.Typer(
    help="Work on everything that was published, with Spark.",
    no_args_is_help=True,
    epilog=help_epilog(
        "palio spark archive sqlite:///palio-data/palio.db --lake palio-lake",
        "palio spark match -e examples/events.jsonl -f examples/filters.jsonl",
        "palio spark experiments examples/experiment.toml -o /tmp/palio-example",
        "palio spark patterns palio-lake -p examples/patterns.jsonl",
        "palio spark backtest 'price > 100' --against 'price > 120' -p difference.png",
        "palio spark stats examples/events.jsonl -f examples/filters.jsonl",
        notes="All of them run here unless --master or --remote names a cluster; docs/spark.md says more.",
    ),
)
app.command("archive", epilog=spark_archive.EPILOG)(spark_archive.archive)
app.command("backtest", epilog=spark_backtest.EPILOG)(spark_backtest.backtest)
app.command("forget", epilog=spark_forget.EPILOG)(spark_forget.forget)
app.command("match", epilog=spark_match.EPILOG)(spark_match.match)
app.command("experiments", epilog=spark_experiments.EPILOG)(spark_experiments.experiments)
app.command("package", epilog=spark_package.EPILOG)(spark_package.package)
app.command("reach-back", epilog=spark_reach_back.EPILOG)(spark_reach_back.reach_back)
app.command("patterns", epilog=spark_patterns.EPILOG)(spark_patterns.patterns)
app.command("stats", epilog=spark_stats.EPILOG)(spark_stats.stats)


@app.callback()
def spark() -> None:
    """Work on everything that was published, with Spark."""
