"""`palio bench`: measurements, each beside a yardstick of the same run. One command a subject."""

from __future__ import annotations

import typer

from palio.cli import bench_filters
from palio.cli.terminal import help_epilog

app = typer.Typer(
    help="Measure, each time beside a yardstick of the same run.",
    no_args_is_help=True,
    epilog=help_epilog("palio bench filters --seconds 0.02"),
)
app.command("filters", epilog=bench_filters.EPILOG)(bench_filters.filters)


@app.callback()
def bench() -> None:
    """Measure, each time beside a yardstick of the same run."""
